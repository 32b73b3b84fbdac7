package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var hpas = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

const hpaYAML = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %[1]s}
spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[2]s}}
`

// FGT-01: a Deployment that an autoscaler targets is left alone, from within a
// second of the autoscaler's creation until it is gone.
func TestTheReplicaRuleYieldsToAnAutoscaler(t *testing.T) {
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "1", 1)
	f.start(expectedReplicas(t))
	f.wantReadyz(soon, "horizontalpodautoscalers: synced")

	f.create(hpas, hpaYAML, "web", "web")
	f.awaitCache(hpas, "web")
	f.merge(deployments, "web", `{"spec":{"replicas":4}}`)
	f.settle("deployments")
	if _, all := f.writes("deployments"); all != 0 {
		t.Errorf("%d writes to a Deployment that has an autoscaler", all)
	}
	if err := f.client.Resource(hpas).Namespace(f.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually(soon, deployments, "web", int64(1), "spec", "replicas")
}

// awaitCache waits until the engine has seen an object.
func (f *fixture) awaitCache(gvr schema.GroupVersionResource, name string) {
	f.Helper()
	testcluster.Eventually(f, soon, func() error {
		if _, ok := f.engine.informers.Get(gvr, f.ns, name); !ok {
			return fmt.Errorf("%s is not in the cache", name)
		}
		return nil
	})
}

// RBC-05: a rule that cannot see the autoscalers does not write, and says so;
// it starts by itself when it can.
func TestARuleThatCannotLookUpDoesNotWrite(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	f.grant("configmaps", "list", "watch", "patch")
	f.grantIn("apps", "deployments", "list", "watch")
	f.grantIn("apps", "deployments/scale", "patch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	f.create(deployments, deploymentYAML, "web", "5", 3)
	for i := range 2 * DefaultWorkers { // none may keep a worker
		f.create(deployments, deploymentYAML, fmt.Sprintf("web-%d", i), "5", 3)
	}
	f.startAs(config, Options{}, expectedReplicas(t), rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.wantReadyz(soon, "rule expected-replicas on apps/v1/deployments: parked: it looks up autoscaling/v2/horizontalpodautoscalers, which is not available: list horizontalpodautoscalers.autoscaling at cluster scope",
		"v1/namespaces: Forbidden: list namespaces at cluster scope; opt-outs on Namespaces are not seen")
	f.canary("other")
	f.settle("deployments")
	if _, all := f.writes("deployments"); all != 0 {
		t.Errorf("%d writes without sight of the autoscalers", all)
	}
	if got := logs.matching("horizontalpodautoscalers"); len(got) != 1 {
		t.Errorf("%d lines about the autoscalers, want 1:\n%s", len(got), strings.Join(got, ""))
	}
	if events := f.eventsOn("web"); len(events) > 0 {
		t.Errorf("what no object can help is told on an object: %q", events)
	}
	f.grantIn("autoscaling", "horizontalpodautoscalers", "list", "watch")
	f.eventually(40*time.Second, deployments, "web", int64(5), "spec", "replicas")
}

// SEC-03: who may annotate may scale, up to the bound of the rule; what is above is
// refused as a whole, and told once.
func TestTheReplicaRuleHasABound(t *testing.T) {
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "greedy", "100000", 3)
	f.create(deployments, deploymentYAML, "web", "5", 3)
	f.start(expectedReplicas(t))
	f.eventually(soon, deployments, "web", int64(5), "spec", "replicas")
	f.wantEvent("greedy", "Warning EvaluationFailed: rule expected-replicas: ")
	for i := range 5 {
		f.merge(deployments, "greedy", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
	}
	f.quietQueue()
	for _, e := range f.requests("deployments") {
		if e.ObjectRef.Name == "greedy" {
			t.Errorf("a %s of the Deployment that asks for too much", e.Verb)
		}
	}
	if events := f.eventsOn("greedy"); len(events) != 1 || !strings.Contains(events[0], "is above 1000: 100000") {
		t.Errorf("want one Warning that names the bound, got %q", events)
	}
}

// A change of what is looked up re-evaluates what depends on it, and nothing
// else: told by what it costs.
func TestOnlyDependentsAreEvaluatedAgain(t *testing.T) {
	f := newFixture(t)
	const n = 50
	for i := range n {
		f.create(deployments, deploymentYAML, fmt.Sprintf("web-%d", i), "1", 2)
		f.create(hpas, hpaYAML, fmt.Sprintf("web-%d", i), fmt.Sprintf("web-%d", i))
	}
	f.start(expectedReplicas(t))
	f.wantReadyz(soon, "deployments: synced", "horizontalpodautoscalers: synced")
	f.quietQueue()

	before := f.engine.syncs.Load()
	for i := range 20 {
		f.merge(hpas, "web-7", fmt.Sprintf(`{"status":{"currentReplicas":%d,"desiredReplicas":%d}}`, i, i), "status")
	}
	f.quietQueue()
	if got := f.engine.syncs.Load() - before; got != 0 {
		t.Errorf("%d evaluations for 20 heartbeats of an autoscaler's status", got)
	}

	before = f.engine.syncs.Load()
	f.merge(hpas, "web-7", `{"spec":{"scaleTargetRef":{"name":"elsewhere"}}}`)
	f.eventually(soon, deployments, "web-7", int64(1), "spec", "replicas")
	f.quietQueue()
	// web-7 by the autoscaler's change, and again by its own fix.
	if got := f.engine.syncs.Load() - before; got > 3 {
		t.Errorf("%d evaluations for one autoscaler that went elsewhere", got)
	}
}

// quietQueue waits until the engine has nothing to do.
func (f *fixture) quietQueue() {
	f.Helper()
	last, since := int64(-1), time.Now()
	testcluster.Eventually(f, soon, func() error {
		if n := f.engine.syncs.Load(); n != last || f.queued() > 0 {
			last, since = n, time.Now()
		}
		if time.Since(since) < 300*time.Millisecond {
			return fmt.Errorf("still at work")
		}
		return nil
	})
}

const teamRule = `
resource: {version: v1, resource: configmaps}
match:
  names: [watched-NS]
  namespaceSelector: {matchLabels: {env: prod}}
condition: object.?data.?team.orValue('') != namespaceObject.metadata.labels.team
patch: {merge: {data: {team: "${namespaceObject.metadata.labels.team}"}}}`

// A label on a Namespace makes rules look at the objects in it, within a
// second and without any event on these objects.
func TestNamespaceLabelsCount(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: watched-%s}}`, f.ns)
	f.start(rule("team", teamRule))
	f.wantReadyz(soon, "v1/namespaces: synced", "v1/configmaps: synced")
	f.settle("configmaps")
	if _, all := f.writes("configmaps"); all != 0 {
		t.Errorf("%d writes in a Namespace that is not selected", all)
	}
	f.labelNamespace(`{"metadata":{"labels":{"env":"prod","team":"a"}}}`)
	f.eventually(soon, configmaps, "watched-"+f.ns, "a", "data", "team")
	f.labelNamespace(`{"metadata":{"labels":{"team":"b"}}}`)
	f.eventually(soon, configmaps, "watched-"+f.ns, "b", "data", "team")
}

func (f *fixture) labelNamespace(patch string) {
	f.Helper()
	_, err := f.client.Resource(namespaces).Patch(f.Context(), f.ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		f.Fatal(err)
	}
}

// Objects and Namespaces that ask to be left alone are; the end of an opt-out
// needs no event.
func TestOptOuts(t *testing.T) {
	f := newFixture(t)
	f.labelNamespace(`{"metadata":{"annotations":{"rectifier.dev/skip":"other, mark"}}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: skipped, annotations: {rectifier.dev/skip: "*"}}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: later, annotations: {rectifier.dev/skip-until: %q}}}`,
		time.Now().Add(3*time.Second).UTC().Format(time.RFC3339))
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: odd, annotations: {rectifier.dev/skip-until: tomorrow}}}`)
	f.start(rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`), rule("always", `
resource: {version: v1, resource: configmaps}
optOut: Forbidden
patch: {merge: {data: {always: "yes"}}}`))
	f.eventually(soon, configmaps, "skipped", "yes", "data", "always")
	f.settle("configmaps")
	for _, name := range []string{"plain", "skipped"} {
		if data := f.get(configmaps, name).Object["data"].(map[string]any); data["fixed"] != nil {
			t.Errorf("%s was changed although it, or its Namespace, asks to be left alone", name)
		}
	}
	f.labelNamespace(`{"metadata":{"annotations":{"rectifier.dev/skip":null}}}`)
	f.eventually(soon, configmaps, "plain", "yes", "data", "fixed")
	f.eventually(soon, configmaps, "later", "yes", "data", "fixed")
	f.wantEvent("odd", "Warning BadOptOut: rule mark: the annotation rectifier.dev/skip-until on the object is not a time")
	if data := f.get(configmaps, "odd").Object["data"].(map[string]any); data["fixed"] != nil {
		t.Error("a malformed opt-out was ignored")
	}
}

// CEL-10: a rule about time needs no event.
func TestRecheckAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: ages}}`)
	f.start(rule("old", `
resource: {version: v1, resource: configmaps}
recheckAfter: 1s
condition: now - timestamp(object.metadata.creationTimestamp) > duration('4s') && object.metadata.name == 'ages'
patch: {merge: {metadata: {labels: {old: "true"}}}}`))
	f.wantReadyz(soon, "v1/configmaps: synced")
	if l := f.get(configmaps, "ages").GetLabels(); l["old"] != "" {
		t.Skip("the machine is so slow that the object is old already")
	}
	f.eventually(soon, configmaps, "ages", "true", "metadata", "labels", "old")
}
