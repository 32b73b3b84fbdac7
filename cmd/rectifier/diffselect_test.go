package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// anotherResource makes a rule of labelRule one about other resources.
func anotherResource(rule, resources string) string {
	return strings.Replace(rule, "  resource: {version: v1, resource: configmaps}", "  "+resources, 1)
}

// What is named on the command line is what counts: a rule about something else
// can neither be a finding nor be asked about.
func TestDiffLiveOfAResourceIsNotAboutOthers(t *testing.T) {
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces", "persistentvolumes"}, "get")},
		labelRule("label", "configmaps", "team: shop"),
		anotherResource(labelRule("both", "configmaps", "team: shop"), "resources: [{version: v1, resource: configmaps}, {group: acme.example, version: v1, resource: widgets}]"),
		anotherResource(labelRule("queues", "configmaps", "team: shop"), "resource: {group: acme.example, version: v1, resource: queues}"),
		strings.Replace(labelRule("volumes", "persistentvolumes", "team: shop"), "  match: {namespaces: [NS]}\n", "", 1))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {team: shop}}}`)
	code, out, told := f.diff("configmaps", "-n", f.ns)
	if code != exitFine || out != "" || !strings.Contains(told, "both   0") || !strings.Contains(told, "label  0") {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
	for _, other := range []string{"queues", "volumes", "widgets", "did nothing"} {
		if strings.Contains(told, other) {
			t.Errorf("it tells of %s:\n%s", other, told)
		}
	}
	for _, resource := range f.resources() {
		if resource != "configmaps" && resource != "namespaces" {
			t.Errorf("%s were read", resource)
		}
	}
	// All that the rules are about: what could not be done is a finding, and told
	// apart from what would change.
	code, out, told = f.diff("-n", f.ns, "-o", "json")
	var report struct {
		Summary struct{ Objects, Changed int }
		NotDone []string
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	notDone := strings.Join(report.NotDone, "\n")
	if code != exitFindings || report.Summary.Changed != 0 || report.Summary.Objects != 1 || len(report.NotDone) != 3 ||
		!strings.Contains(notDone, "v1/persistentvolumes: cluster-scoped") || !strings.Contains(notDone, "acme.example/v1/queues") || !strings.Contains(told, notDone[:20]) {
		t.Errorf("of all: exit code %d\n%s%s", code, out, told)
	}
	// It is the same with a rule that is named, and a mistake is still one.
	if code, _, told := f.diff("configmaps", "-n", f.ns, "--rule", "queues"); code != exitUsage || !strings.Contains(told, `no rule is about "configmaps"`) {
		t.Errorf("a rule about something else: exit code %d\n%s", code, told)
	}
}

// A version that is not served is told of, whichever name of the resource is
// given; one that is not asked for is not.
func TestDiffLiveOfAVersionThatIsNotServed(t *testing.T) {
	deployments := func(name, version string) string {
		return anotherResource(labelRule(name, "configmaps", "team: shop"), "resource: {group: apps, version: "+version+", resource: deployments}")
	}
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"namespaces"}, "get"), may("apps", []string{"deployments"})},
		deployments("old", "v1beta1"), deployments("now", "v1"))
	for _, name := range []string{"deployments", "deploy", "Deployment", "deployment.apps"} {
		code, _, told := f.diff(name, "-n", f.ns)
		if code != exitFindings || !strings.Contains(told, "apps/v1beta1/deployments: version not served (available: v1); parked: old") {
			t.Errorf("%s: exit code %d\n%s", name, code, told)
		}
	}
	for _, name := range []string{"deploy.v1.apps", "deployments.v1.apps"} {
		if code, _, told := f.diff(name, "-n", f.ns); code != exitFine || strings.Contains(told, "old") {
			t.Errorf("%s: exit code %d\n%s", name, code, told)
		}
	}
}

// resources are those that the user has read so far, each once.
func (f *diffFixture) resources() []string {
	f.Helper()
	var out []string
	testcluster.Eventually(f, 10*time.Second, func() error {
		events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.User.Username == f.user && e.ObjectRef.Resource != "" })
		out = nil
		watches := 0
		for _, e := range events {
			out = append(out, e.ObjectRef.Resource)
			if e.Verb == "watch" {
				watches++ // it is in the log when it has ended: with the process
			}
		}
		if err == nil && watches == 0 {
			err = fmt.Errorf("no watch has ended")
		}
		return err
	})
	slices.Sort(out)
	return slices.Compact(out)
}
