package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
)

// reload puts rules in force as a reload of their files does.
func (f *fixture) reload(ruleYAML ...string) rules.Changes {
	f.Helper()
	var sources []rules.Source
	for i, y := range ruleYAML {
		sources = append(sources, rules.Source{Name: fmt.Sprintf("rule-%d.yaml", i), Data: []byte(strings.ReplaceAll(y, "NS", f.ns))})
	}
	set, problems := rules.Reload(f.engine.rules(), sources...)
	changes, err := f.engine.SetRules(set, problems)
	if err != nil {
		f.Fatal(err)
	}
	return changes
}

// valueRule is a rule that sets data.value of the test's ConfigMaps, "keep" excepted.
func valueRule(v string) string {
	return rule("value", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.name != "keep"
patch: {merge: {data: {value: "`+v+`"}}}`)
}

// reads returns the engine's lists and watches of a resource that have ended, as
// a server with streaming lists sees them: elsewhere it refuses the stream that an
// informer begins with, and that one and the list which follows are left out.
func (f *fixture) reads(resource string) []controlplane.AuditEvent {
	f.Helper()
	refused := 0
	events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		switch {
		case e.User.Username != f.user || e.ObjectRef.Resource != resource || e.Verb != "list" && e.Verb != "watch":
			return false
		case e.ResponseStatus.Code == http.StatusUnprocessableEntity && strings.Contains(e.RequestURI, "sendInitialEvents="):
			refused++
			return false
		case e.Verb == "list" && refused > 0:
			refused--
			return false
		}
		return true
	})
	if err != nil {
		f.Fatal(err)
	}
	return events
}

// wantOneInformer stops the engine and fails the test unless a resource was
// listed and watched once from begin to end.
func (f *fixture) wantOneInformer(resource string) {
	f.Helper()
	f.wantInformers(resource, 1)
}

// wantInformers is wantOneInformer where a resource was read several times.
func (f *fixture) wantInformers(resource string, n int) {
	f.Helper()
	f.stop()
	var reads []controlplane.AuditEvent
	testcluster.Eventually(f, 10*time.Second, func() error {
		if reads = f.reads(resource); len(reads) < n {
			return fmt.Errorf("%d watches of %s are logged, not %d", len(reads), resource, n)
		}
		return nil
	})
	if len(reads) != n {
		f.Errorf("%d lists and watches of %s", len(reads), resource)
		for _, e := range reads {
			f.Log(e.Verb, e.RequestURI)
		}
	}
}

// allHave waits until all ConfigMaps of the test, "keep" excepted, have a value.
func (f *fixture) allHave(timeout time.Duration, want string) {
	f.Helper()
	testcluster.Eventually(f, timeout, func() error {
		list, err := f.client.Resource(configmaps).Namespace(f.ns).List(f.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, u := range list.Items {
			got, _, _ := unstructured.NestedString(u.Object, "data", "value")
			if u.GetName() != "keep" && got != want {
				return fmt.Errorf("%s has value %q, not %q", u.GetName(), got, want)
			}
		}
		return nil
	})
}

func (f *fixture) wantWrites(resource string, want int) {
	f.Helper()
	f.settle(resource)
	if _, got := f.writes(resource); got != want {
		f.Errorf("%d writes to %s so far, want %d", got, resource, want)
	}
}

// WCH-07, CEL-06: a rule that comes, is edited, breaks, is mended and goes, over
// 100 objects that nobody touches and one that it excludes.
func TestTheLifeOfARule(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: keep}}`)
	const n = 100
	for i := range n {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	other := rule("other", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.name == "nobody"
patch: {merge: {data: {other: "yes"}}}`)
	f.startAs(config, Options{Registerer: prometheus.NewRegistry()}, other)
	f.wantReadyz(10*time.Second, "configmaps: synced", "rules: 1 loaded, 0 invalid")
	f.wantWrites("configmaps", 0)

	if diff := cmp.Diff(rules.Changes{Added: []string{"value"}}, f.reload(other, valueRule("one"))); diff != "" {
		t.Errorf("changes: %s", diff)
	}
	f.allHave(20*time.Second, "one")
	f.wantWrites("configmaps", n)
	f.reload(other, valueRule("two"))
	f.allHave(20*time.Second, "two")
	f.wantWrites("configmaps", 2*n)

	// It breaks: the old version goes on, and readyz says where to look.
	before := f.engine.syncs.Load()
	broken := valueRule("three") + "  nosuchfield: 1\n"
	if changes := f.reload(other, broken); !changes.None() {
		t.Errorf("a rule that keeps its version is among the changes: %+v", changes)
	}
	f.wantReadyz(time.Second, "rules: 2 loaded, 1 invalid", `rule not loaded anew: rule-1.yaml:9:3: rule "value": unknown field "nosuchfield"`, "it keeps its last good version", "\nready")
	if got := f.engine.syncs.Load() - before; got != 0 {
		t.Errorf("%d evaluations by a reload that changes no rule", got)
	}
	f.merge(configmaps, "c-7", `{"data":{"value":"drifted"}}`)
	f.eventually(5*time.Second, configmaps, "c-7", "two", "data", "value")
	f.wantMetrics(`rectifier_rule_reloads_total{result="success"} 2`, `rectifier_rule_reloads_total{result="partial"} 1`, `rectifier_rule_reloads_total{result="failure"} 0`, "rectifier_invalid_rules 1")

	f.reload(other, valueRule("three"))
	f.allHave(20*time.Second, "three")
	f.wantWrites("configmaps", 3*n+1)
	f.wantReadyz(time.Second, "rules: 2 loaded, 0 invalid")

	// Nothing changes: nothing happens.
	before = f.engine.syncs.Load()
	if changes := f.reload("# moved\n"+valueRule("three"), other); !changes.None() {
		t.Errorf("rules that moved are among the changes: %+v", changes)
	}
	f.wantWrites("configmaps", 3*n+1)
	if got := f.engine.syncs.Load() - before; got != 0 {
		t.Errorf("%d evaluations by a reload that changes nothing", got)
	}

	// It goes: what drifts now is nobody's business.
	f.reload(other)
	f.merge(configmaps, "c-7", `{"data":{"value":"drifted"}}`)
	f.wantWrites("configmaps", 3*n+1)
	f.wantMetrics(`rectifier_rule_reloads_total{result="success"} 5`, `rectifier_rule_reloads_total{result="partial"} 1`, "rectifier_invalid_rules 0")
	f.wantInformers("configmaps", 2) // once more for what the second rule reads
}

// metrics is what /metrics answers.
func (f *fixture) metrics() string {
	w := httptest.NewRecorder()
	f.engine.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// wantMetrics checks lines of /metrics.
func (f *fixture) wantMetrics(want ...string) {
	f.Helper()
	body := f.metrics()
	for _, line := range want {
		if !strings.Contains(body, line+"\n") {
			f.Errorf("/metrics has no %q:\n%s", line, body)
		}
	}
}

// Objects of rules that have not changed are not looked at.
func TestWhatAReloadIsAbout(t *testing.T) {
	f := &fixture{T: t}
	on := func(name, value string, resources ...string) string {
		return rule(name, "resources: [{version: v1, resource: "+strings.Join(resources, "}, {version: v1, resource: ")+"}]\npatch: {merge: {metadata: {labels: {value: "+value+"}}}}\nmatch: {namespaces: [a]}")
	}
	before := f.options(nil, Options{}, on("same", "x", "pods"), on("moves", "x", "secrets", "services"), on("goes", "x", "nodes")).Rules
	next := f.options(nil, Options{}, on("same", "x", "pods"), on("moves", "x", "services", "endpoints"), on("comes", "x", "configmaps")).Rules
	var got []string
	for _, resource := range affected(before, next, next.ChangesFrom(before)) {
		got = append(got, resource.Resource)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"configmaps", "endpoints", "nodes", "secrets", "services"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := affected(before, before, before.ChangesFrom(before)); got != nil {
		t.Errorf("a reload that changes nothing is about %v", got)
	}
}

// All rules go: the engine keeps running, says so, and takes new ones.
func TestAllRulesGo(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.startAs(config, Options{Registerer: prometheus.NewRegistry()}, valueRule("one"))
	f.eventually(10*time.Second, configmaps, "c", "one", "data", "value")
	f.reload()
	f.wantReadyz(time.Second, "[!] rules: 0 loaded, 0 invalid", "\nready")
	if s := f.engine.informers.Status(); len(s) != 0 {
		t.Errorf("informers without rules: %+v", s)
	}
	f.engine.KeepRules(errors.New("open rules: no such file or directory"))
	f.wantReadyz(time.Second, "[!] rules: not loaded anew: open rules: no such file or directory; those that were loaded before stay in force")
	f.reload(valueRule("two"))
	f.eventually(10*time.Second, configmaps, "c", "two", "data", "value")
	if _, body := f.readyz(); strings.Contains(body, "not loaded anew") {
		t.Errorf("readyz tells of an error that is over:\n%s", body)
	}
	f.wantMetrics(`rectifier_rule_reloads_total{result="success"} 2`, `rectifier_rule_reloads_total{result="failure"} 1`)
}

// A rule that the server refused for an object is tried again at once when it
// has changed, and what is known of the objects of rules that went is dropped.
func TestChangedRulesBeginAnew(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	label := func(v string) string {
		return rule("label", `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {example.io/x: "`+v+`"}}}}`)
	}
	f.start(label("not a label!"))
	f.wantEvent("c", "rule label: the API server refuses the change")
	f.quietQueue()
	f.reload(label("fine"))
	f.eventually(5*time.Second, configmaps, "c", "fine", "metadata", "labels", "example.io/x")

	f.reload(label("wrong again!"))
	testcluster.Eventually(t, 5*time.Second, func() error { return f.remembers(1, 0) })
	f.reload()
	testcluster.Eventually(t, 5*time.Second, func() error { return f.remembers(0, 0) })
}

// remembers checks of how many objects there is a state, and how many are known
// to depend on others.
func (f *fixture) remembers(states, dependent int) error {
	e := f.engine
	e.objects.mu.Lock()
	defer e.objects.mu.Unlock()
	e.dependents.mu.Lock()
	defer e.dependents.mu.Unlock()
	if len(e.objects.states) != states || len(e.dependents.of) != dependent {
		return fmt.Errorf("states of %d objects, dependencies of %d; want %d and %d", len(e.objects.states), len(e.dependents.of), states, dependent)
	}
	return nil
}

// DSC-05: a version that is not served any more is told, and the rule that is
// edited to the one that is goes on without a restart.
func TestARuleMovesToAnotherVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: "widgets"}
	}
	crd := f.versionedCRD(group)
	size := func(version, size string) string {
		return rule("size", fmt.Sprintf(`
resource: {group: %s, version: %s, resource: widgets}
patch: {merge: {spec: {size: %s}}}`, group, version, size))
	}
	f.start(size("v1alpha1", "1"))
	f.create(widgets("v1"), `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {}}`, group)
	f.eventually(20*time.Second, widgets("v1"), "w", int64(1), "spec", "size")

	_, err := f.client.Resource(crds).Patch(t.Context(), crd.GetName(), types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/versions/1/served","value":false}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.wantReadyz(30*time.Second, group+"/v1alpha1/widgets: WaitingForResource: version not served (available: v1); parked: size")
	f.reload(size("v1", "2"))
	f.eventually(20*time.Second, widgets("v1"), "w", int64(2), "spec", "size")
	if _, body := f.readyz(); strings.Contains(body, "v1alpha1") {
		t.Errorf("readyz tells of a version that no rule names:\n%s", body)
	}
}

// A decision by rules that are not in force any more is not written.
func TestADecisionByOldRulesIsNotWritten(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(f.options(config, Options{}, valueRule("one")))
	if err != nil {
		t.Fatal(err)
	}
	f.engine = e
	object := f.get(configmaps, "c")
	key := Key{Resource: configmaps.GroupResource(), Namespace: f.ns, Name: "c"}
	d := &decision{Engine: e, policy: e.policy.Load(), key: key, view: view{configmaps, object}, lookups: &lookups{Engine: e, object: key}}
	result := d.evaluate(d.policy.rules.For(configmaps), object.Object)
	f.reload(valueRule("two"))
	if err := d.send(t.Context(), result); !errors.Is(err, errOutdated) {
		t.Errorf("the old decision got %v", err)
	}
	if err := d.writeTogether(t.Context(), d.policy.rules.For(configmaps)); !errors.Is(err, errOutdated) {
		t.Errorf("an old decision that is made again got %v", err)
	}
	d.policy = e.policy.Load()
	if err := d.writeTogether(t.Context(), d.policy.rules.For(configmaps)); err != nil || !d.wrote {
		t.Errorf("the new decision was not written: %v", err)
	}
	f.eventually(5*time.Second, configmaps, "c", "two", "data", "value")
	f.wantWrites("configmaps", 1)
}

// Rules that are set before Run, as on a standby, are those it runs.
func TestRulesAreSetBeforeRun(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(f.options(config, Options{}, valueRule("one")))
	if err != nil {
		t.Fatal(err)
	}
	f.engine = e
	f.reload(valueRule("two"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	f.eventually(10*time.Second, configmaps, "c", "two", "data", "value")
	f.wantWrites("configmaps", 1)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
