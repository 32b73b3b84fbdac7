package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// What a running controller has told about a write that was refused, explain
// tells too; to those who may not list Events, that it cannot.
func TestExplainTellsWhatTheControllerReported(t *testing.T) {
	f := newExplainFixture(t, map[string]string{
		"deployments.apps": "get", "configmaps": "get", "horizontalpodautoscalers.autoscaling": "list", "events.events.k8s.io": "list",
	})
	ruleFile, admin := filepath.Join(t.TempDir(), "refused.yaml"), filepath.Join(t.TempDir(), "admin")
	write(t, ruleFile, []byte(`
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: refused}
spec:
  resource: {group: apps, version: v1, resource: deployments}
  match: {names: [web]}
  patch: {merge: {spec: {replicas: -1}}}
`))
	if err := f.cp.WriteKubeconfig(admin, "system:admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	if code, _, told := invoke(t, "run", "--once", "--kubeconfig", admin, "--rules", ruleFile, "--builtin", "none", "--namespace", f.ns); code != exitFindings {
		t.Fatalf("run: exit code %d\n%s", code, told)
	}
	var out string
	testcluster.Eventually(t, 10*time.Second, func() error { // the right to list Events takes a moment too
		var code int
		code, out, _ = f.explain("--rules", ruleFile, "--rule", "refused", "deployments/web")
		if code != exitFine || strings.Contains(out, "what a controller has reported is not known") {
			return fmt.Errorf("exit code %d\n%s", code, out)
		}
		return nil
	})
	if !regexp.MustCompile(`(?m)^  refused   Patch\n    the controller reported \S+ ago: PatchRefused: `).MatchString(out) {
		t.Errorf("explain:\n%s", out)
	}
	f.onlyReads()
}

// event writes an Event about an object.
func (f *explainFixture) event(uid types.UID, rule, eventType, reason, note, controller string, ago time.Duration, repeated int32) {
	f.Helper()
	admin, err := kubernetes.NewForConfig(f.cp.AdminConfig())
	if err != nil {
		f.Fatal(err)
	}
	at := metav1.NewMicroTime(time.Now().Add(-ago))
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e-", Namespace: f.ns}, EventTime: at,
		ReportingController: controller, ReportingInstance: "i", Type: eventType, Reason: reason, Note: note, Action: rule,
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns, Name: "settings", UID: uid},
	}
	if repeated > 0 {
		e.EventTime = metav1.NewMicroTime(at.Add(-time.Hour))
		e.Series = &eventsv1.EventSeries{Count: repeated, LastObservedTime: at}
	}
	if _, err := admin.EventsV1().Events(f.ns).Create(f.Context(), e, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

func TestExplainOrdersWhatTheControllerReported(t *testing.T) {
	f := newExplainFixture(t, map[string]string{
		"deployments.apps": "get", "configmaps": "get", "horizontalpodautoscalers.autoscaling": "list", "events.events.k8s.io": "list", "pods": "list",
	})
	u, err := testcluster.Dynamic(t).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(f.ns).Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const us, warning, normal = engine.ReportingController, corev1.EventTypeWarning, corev1.EventTypeNormal
	f.event(u.GetUID(), "pods", warning, "Contended", "rule pods: held for 1m0s: data.pods is set back by kubectl", us, 190*time.Minute, 0)
	f.event(u.GetUID(), "pods", warning, "Contended", "rule pods: held for 2m0s: data.pods is set back by kubectl", us, 70*time.Minute+30*time.Second, 4)
	f.event(u.GetUID(), "pods", warning, "PatchRefused", "rule pods: no\nline", us, 400*time.Minute+30*time.Second, 0)
	f.event(u.GetUID(), "pods", normal, "Rectified", "changed by rule pods", us, 700*time.Minute, 0)
	f.event(u.GetUID(), "skipped", warning, "PatchRefused", "rule skipped: outdated by the fix below", us, 700*time.Minute, 0)
	f.event(u.GetUID(), "skipped", normal, "Rectified", "changed by rule skipped", us, 400*time.Minute+30*time.Second, 0)
	f.event(u.GetUID(), "skipped", warning, "Refused", "of another controller", "example.io/other", time.Second, 0)
	f.event("5a0f8a3e-0000-4000-8000-000000000000", "skipped", warning, "Refused", "of another object", us, time.Second, 0)
	f.event(u.GetUID(), "not-loaded", warning, "Refused", "of a rule that is not asked about", us, time.Second, 0)

	_, out, told := f.explain("configmaps/settings")
	want := "    the controller reported 70m ago: Contended, 4 times: held for 2m0s: data.pods is set back by kubectl\n" +
		"    the controller reported 6h40m ago: PatchRefused: no line\n    match"
	if strings.Count(out, "reported") != 2 || !strings.Contains(out, want) {
		t.Errorf("explain: %s\n%s", told, out)
	}
	var report explainReport
	if _, out, _ = f.explain("configmaps/settings", "-o", "json"); json.Unmarshal([]byte(out), &report) != nil {
		t.Fatal(out)
	}
	for _, r := range report.Objects[0].Rules {
		switch {
		case r.Rule != "pods" && len(r.Controller) > 0:
			t.Errorf("%s: %+v", r.Rule, r.Controller)
		case r.Rule == "pods" && (len(r.Controller) != 2 || r.Controller[0].Count != 4 || r.Controller[0].Reason != "Contended" || r.Controller[1].Count != 1):
			t.Errorf("%+v", r.Controller)
		}
	}
}
