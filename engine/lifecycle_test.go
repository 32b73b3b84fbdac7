package engine

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// crd makes a CRD of the test's own: group GROUP.example.io, plural widgets.
func (f *fixture) crd(group, versionBody string) *unstructured.Unstructured {
	f.Helper()
	u := f.object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, copies: {type: integer}}}
          status: {type: object, properties: {phase: {type: string}, copies: {type: integer}}}
%[2]s
`, group, versionBody)
	u.SetNamespace("")
	created, err := f.client.Resource(crds).Create(f.Context(), u, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = f.client.Resource(crds).Delete(f.Context(), u.GetName(), metav1.DeleteOptions{}) })
	gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	testcluster.Eventually(f, soon, func() error {
		_, err := f.client.Resource(gvr).Namespace(f.ns).List(f.Context(), metav1.ListOptions{})
		return err
	})
	return created
}

// lines is a log that can be counted while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) matching(s string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, s) {
			out = append(out, line)
		}
	}
	return out
}

// capturing is whether engines log to where captureLogs looks, and not to their test.
var capturing atomic.Bool

// captureLogs makes everything that is logged countable until the test ends: by
// engines that are started later, too.
func captureLogs(t *testing.T) *lines { return captureLogsAt(t, 0) }

func captureLogsAt(t *testing.T, verbosity int) *lines {
	l := &lines{}
	klog.SetLogger(l.logger(verbosity))
	capturing.Store(true)
	t.Cleanup(func() {
		capturing.Store(false)
		klog.ClearLogger()
	})
	return l
}

// logger logs to the lines.
func (l *lines) logger(verbosity int) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(l), textlogger.Verbosity(verbosity)))
}

// captureLogs makes countable what the fixture's engines log that are started later.
// It changes nothing of the process, and so is the one for tests that run beside
// others; what is logged without a context is not in it.
func (f *fixture) captureLogs() *lines {
	f.logs = &lines{}
	return f.logs
}

// canary proves that another resource is fixed within a second.
func (f *fixture) canary(name string) {
	f.Helper()
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}`, name)
	f.eventually(soon, configmaps, name, "yes", "data", "fixed")
}

// A CRD that comes, goes and comes again, while another resource is served.
func TestACRDThatComesAndGoes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.start(
		rule("size", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
condition: object.spec.?size.orValue(0) != 7
patch: {merge: {spec: {size: 7}}}`, group)),
		rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.wantReadyz(soon, group+"/v1/widgets: WaitingForResource", "parked: size", "\nready")
	f.canary("before")

	widget := `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {size: %d}}`
	for round := range 3 {
		crd := f.crd(group, "")
		f.create(widgets, widget, group, round)
		f.eventually(soon, widgets, "w", int64(7), "spec", "size")
		f.canary(fmt.Sprintf("there-%d", round))
		if err := f.client.Resource(crds).Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		testcluster.Eventually(t, soon, func() error {
			_, err := f.client.Resource(crds).Get(t.Context(), crd.GetName(), metav1.GetOptions{})
			if err == nil {
				return fmt.Errorf("the CRD is still there")
			}
			return nil
		})
		f.canary(fmt.Sprintf("gone-%d", round))
	}
	f.wantReadyz(soon, group+"/v1/widgets: WaitingForResource")
	// Three rounds, each: synced, gone; and some margin. No line a second.
	if got := logs.matching("widgets"); len(got) > 25 {
		t.Errorf("%d log lines about a CRD that came and went three times:\n%s", len(got), strings.Join(got, ""))
	}
}

// RBC-01: what may not be listed parks its own rules, visibly, and starts by
// itself once it may.
func TestAResourceThatMayNotBeListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	logs := f.captureLogs()
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	f.grant("configmaps", "list", "watch", "patch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: s}}`)
	f.startAs(config, Options{},
		rule("secret", `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {fixed: "yes"}}}}`),
		rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.wantReadyz(soon, "v1/secrets: Forbidden: ", "list secrets", "parked: secret", "v1/configmaps: synced", "\nready")
	f.canary("one")

	f.grant("secrets", "list", "watch", "patch")
	f.eventually(40*time.Second, secrets, "s", "yes", "metadata", "labels", "fixed")
	f.wantReadyz(soon, "v1/secrets: synced")
	if got := logs.matching("secrets"); len(got) > 10 {
		t.Errorf("%d log lines about secrets:\n%s", len(got), strings.Join(got, ""))
	}
}

// A missing permission to write costs a request now and then, not one per
// object, and is named.
func TestAMissingPermissionToWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.grant("configmaps", "list", "watch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	began := time.Now()
	f.startAs(config, Options{}, rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.wantReadyz(soon, "v1/configmaps: forbidden: patch configmaps in namespace "+f.ns+"; parked: mark")
	f.settle("configmaps")
	most := 2*DefaultWorkers + int(time.Since(began)/firstParking)
	if _, all := f.writes("configmaps"); all > most {
		t.Errorf("%d requests for 50 objects that may not be written, want at most %d", all, most)
	}
	f.grant("configmaps", "list", "watch", "patch")
	for i := range 50 {
		f.eventually(30*time.Second, configmaps, fmt.Sprintf("c-%d", i), "yes", "data", "fixed")
	}
	testcluster.Eventually(t, soon, func() error {
		if _, body := f.readyz(); strings.Contains(body, "forbidden") {
			return fmt.Errorf("still named:\n%s", body)
		}
		return nil
	})
}

// grant lets the fixture's user do something with a resource of the core group,
// in the whole cluster.
func (f *fixture) grant(resource string, verbs ...string) {
	f.Helper()
	f.grantIn("", resource, verbs...)
}

func (f *fixture) grantIn(group, resource string, verbs ...string) {
	f.Helper()
	name := strings.ReplaceAll(strings.Join(append([]string{f.user, f.ns, resource}, verbs...), "-"), "/", "-")
	rbac := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
	}
	for gvr, y := range map[schema.GroupVersionResource]string{
		rbac("clusterroles"): fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s},
rules: [{apiGroups: [%q], resources: [%s], verbs: [%s]}]}`, name, group, resource, strings.Join(verbs, ",")),
		rbac("clusterrolebindings"): fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s},
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]s}]}`, name, f.user),
	} {
		u := f.object("%s", y)
		u.SetNamespace("")
		if _, err := f.client.Resource(gvr).Create(f.Context(), u, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

// A permission that is missing for one subresource keeps nothing from the
// others, and one that is missing in a Namespace nothing from another Namespace.
func TestAMissingPermissionParksItsOwnOnly(t *testing.T) {
	f := newFixture(t)
	f.grant("namespaces", "list", "watch")
	f.grantIn("apps", "deployments", "list", "watch")
	f.grantIn("apps", "deployments/scale", "patch")
	f.grantIn("autoscaling", "horizontalpodautoscalers", "list", "watch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	f.create(deployments, deploymentYAML, "web", "5", 3)
	f.startAs(config, Options{}, expectedReplicas(t), rule("label", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {metadata: {labels: {team: web}}}}`))
	f.eventually(soon, deployments, "web", int64(5), "spec", "replicas")
	f.wantReadyz(soon, "apps/v1/deployments: forbidden: patch deployments in namespace "+f.ns+"; parked: label")
}

// The engine's Events are not the objects of its rules: each fix would write
// another one.
func TestTheEnginesOwnEventsAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	f.create(eventsGVR, `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: foreign}, type: Normal, reason: Test, action: Test, note: x,
reportingController: example.io/other, reportingInstance: a, eventTime: "2026-01-01T00:00:00.000000Z", regarding: {kind: ConfigMap, apiVersion: v1, name: c, namespace: %s}}`, f.ns)
	f.start(rule("events", `
resource: {group: events.k8s.io, version: v1, resource: events}
patch: {merge: {metadata: {labels: {team: a}}}}`), rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.eventually(soon, eventsGVR, "foreign", "a", "metadata", "labels", "team")
	f.wantEvent("c", "changed by rule mark")
	f.wantEvent("foreign", "changed by rule events")
	f.quietQueue()
	patched := map[string]bool{}
	for _, e := range f.requests("events") {
		if e.Verb == "patch" {
			patched[e.ObjectRef.Name] = true
		}
	}
	if len(patched) != 1 || !patched["foreign"] {
		t.Errorf("patched events: %v; want the foreign one only", patched)
	}
}

// SUB-01, SUB-02, SUB-04: status and scale go to their endpoints, in one
// decision with the object; a resource without them parks the rule.
func TestSubresources(t *testing.T) {
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.crd(group, `    subresources:
      status: {}
      scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}`)
	f.create(widgets, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, copies: 1}}`, group)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	f.start(
		rule("all-three", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
patches:
- merge: {spec: {size: 7}}
- {subresource: status, merge: {status: {phase: Ready}}}
- {subresource: scale, merge: {spec: {replicas: 4}}}`, group)),
		rule("no-such-endpoint", `
resource: {version: v1, resource: configmaps}
patch: {subresource: status, merge: {status: {phase: Ready}}}`))
	f.eventually(soon, widgets, "w", int64(7), "spec", "size")
	f.eventually(soon, widgets, "w", int64(4), "spec", "copies")
	f.eventually(soon, widgets, "w", "Ready", "status", "phase")
	f.settle("widgets")
	if accepted, all := f.writes("widgets"); accepted != 3 || all != 3 {
		t.Errorf("%d requests, %d accepted; want 3, one for each endpoint", all, accepted)
	}
	var endpoints []string
	for _, e := range f.requests("widgets") {
		endpoints = append(endpoints, e.ObjectRef.Subresource)
	}
	if got := strings.Join(endpoints, ","); got != ",status,scale" {
		t.Errorf("requests went to %q, want the object, status, scale", got)
	}
	f.wantReadyz(time.Second, "rule no-such-endpoint on v1/configmaps: parked: the resource has no status subresource")
	if _, all := f.writes("configmaps"); all != 0 {
		t.Errorf("%d requests to an endpoint that is not there", all)
	}
}

// SUB-01: status written through the main endpoint is dropped by the server;
// that is known before, and nothing is sent.
func TestStatusThroughTheMainEndpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.crd(group, "    subresources: {status: {}}")
	f.create(widgets, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}`, group)
	f.start(rule("phase", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
condition: "!has(object.status)"
patch: {merge: {status: {phase: New}}}`, group)))
	f.wantEvent("w", "Warning EvaluationFailed: rule phase")
	f.settle("widgets")
	if _, all := f.writes("widgets"); all != 0 {
		t.Errorf("%d requests, want none", all)
	}
}

// One object that is read in two versions is never written by both at once.
func TestRulesOnTwoVersionsOfAResource(t *testing.T) {
	f := newFixture(t)
	hpas := schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	const n = 10
	f.start(
		rule("one", `
resource: {group: autoscaling, version: v1, resource: horizontalpodautoscalers}
patch: {merge: {spec: {minReplicas: 2}}}`),
		rule("two", `
resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}
patch: {merge: {metadata: {labels: {team: web}}}}`))
	for i := range n {
		f.create(hpas, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h-%d},
spec: {maxReplicas: 5, minReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`, i)
	}
	for i := range n {
		f.eventually(soon, hpas, fmt.Sprintf("h-%d", i), int64(2), "spec", "minReplicas")
		f.eventually(soon, hpas, fmt.Sprintf("h-%d", i), "web", "metadata", "labels", "team")
	}
	f.settle("horizontalpodautoscalers")
	if accepted, all := f.writes("horizontalpodautoscalers"); accepted != 2*n || all != 2*n {
		t.Errorf("%d requests, %d accepted, want %d: none may meet a conflict", all, accepted, 2*n)
	}
}
