package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// 200 Deployments drifted at once: all right by exactly 200 PATCH requests, nothing
// else, and silence afterwards. How long that takes is told, and measured elsewhere
// (docs/benchmarks.md).
func TestOneRequestPerFix(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = 200
	for i := range n {
		f.create(deployments, deploymentYAML, fmt.Sprintf("web-%d", i), "5", 3)
	}
	began := time.Now()
	f.start(expectedReplicas(t))
	testcluster.Eventually(t, 2*time.Minute, func() error {
		list, err := f.client.Resource(deployments).Namespace(f.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		wrong := 0
		for _, d := range list.Items {
			if r, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas"); r != 5 {
				wrong++
			}
		}
		if wrong > 0 {
			return fmt.Errorf("%d of %d are wrong", wrong, n)
		}
		return nil
	})
	t.Logf("all %d right after %v", n, time.Since(began).Round(time.Millisecond))
	f.settle("deployments")
	if accepted, all := f.writes("deployments"); accepted != n || all != n {
		t.Errorf("%d PATCH requests, %d of them accepted; want %d", all, accepted, n)
	}
	// 200 Events at ten a second, in no particular order.
	f.wantEventWithin(2*time.Minute, "web-0", "Normal ReplicasAdjusted: adjust replicas from 3 to 5")
}

// Zero is a replica count like any other, although the API leaves it out.
func TestScaleToZero(t *testing.T) {
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "0", 3)
	f.start(expectedReplicas(t))
	f.wantEvent("web", "adjust replicas from 3 to 0")
	f.settle("deployments")
	if got := f.eventsOn("web"); len(got) != 1 {
		t.Errorf("events: %q; want the fix only", got)
	}
}

// One rule that the server refuses does not keep another from its work.
func TestACulpritIsFoundAndTheOthersLand(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	f.start(
		rule("a-bad", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {spec: {selector: {matchLabels: {app: other}}}}}`),
		rule("b-good", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {metadata: {labels: {team: web}}}}`),
		rule("c-good", `
resource: {group: apps, version: v1, resource: deployments}
patch: {json: [{op: add, path: /spec/template/metadata/labels/tier, value: front}]}`),
	)
	f.eventually(soon, deployments, "web", "web", "metadata", "labels", "team")
	f.eventually(soon, deployments, "web", "front", "spec", "template", "metadata", "labels", "tier")
	f.settle("deployments")
	f.wantEvent("web", "Warning PatchRefused: rule a-bad: the API server refuses the change: Invalid")
	f.wantEvent("web", "Normal Rectified: changed by rule b-good")
	if accepted, all := f.writes("deployments"); accepted != 2 {
		t.Errorf("%d requests, %d accepted; want 2 accepted", all, accepted)
	}
	f.wantGrowingWaits(f.refused("deployments"), 2) // together, and by itself
	refusals := 0
	for _, e := range f.eventsOn("web") {
		if strings.HasPrefix(e, "Warning") {
			refusals++
		}
	}
	if refusals != 1 {
		t.Errorf("%d Warnings, want 1: %q", refusals, f.eventsOn("web"))
	}

	// RTY-02: a status that changes all the time must not turn the mistake
	// into a request each time.
	for i := range 20 {
		f.merge(deployments, "web", fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, i+10), "status")
	}
	f.settle("deployments")
	f.wantGrowingWaits(f.refused("deployments"), 2)
}

// refused are the engine's requests to a resource that were answered with 422.
func (f *fixture) refused(resource string) []controlplane.AuditEvent {
	f.Helper()
	return slices.DeleteFunc(f.requests(resource), func(e controlplane.AuditEvent) bool { return e.ResponseStatus.Code != http.StatusUnprocessableEntity })
}

const threeContainers = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: data, emptyDir: {}}, {name: conf, configMap: {name: conf, optional: true}}]
      containers:
      - {name: a, image: "r.example/a:1", env: [{name: MODE, value: "1"}], volumeMounts: [{name: data, mountPath: /data}]}
      - {name: b, image: "r.example/b:1", livenessProbe: {httpGet: {path: /healthz, port: 80}}, env: [{name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}
      - {name: c, image: "r.example/c:1", readinessProbe: {tcpSocket: {port: 81}}, volumeMounts: [{name: conf, mountPath: /conf}]}
`

// A fix of one image leaves all else of all containers as it was.
func TestOneContainerOfThree(t *testing.T) {
	f := newFixture(t)
	before := f.create(deployments, threeContainers)
	f.start(rule("pin-b", `
resource: {group: apps, version: v1, resource: deployments}
condition: object.spec.template.spec.containers.exists(c, c.name == 'b' && c.image != 'r.example/b:2')
patch:
  json: |-
    ${lists.range(object.spec.template.spec.containers.size())
      .filter(i, object.spec.template.spec.containers[i].name == 'b')
      .map(i, {'op': 'replace', 'path': '/spec/template/spec/containers/' + string(i) + '/image', 'value': 'r.example/b:2'})}`))
	f.wantEvent("web", "Normal Rectified: changed by rule pin-b")
	after := f.get(deployments, "web")

	want := before.DeepCopy().Object
	template := want["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	template["containers"].([]any)[1].(map[string]any)["image"] = "r.example/b:2"
	if diff := cmp.Diff(want["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestObjectsBeingDeletedAreLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: going, finalizers: [example.io/hold]}}`)
	if err := f.client.Resource(configmaps).Namespace(f.ns).Delete(t.Context(), "going", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.start(rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: canary}}`)
	f.eventually(soon, configmaps, "canary", "yes", "data", "fixed")
	f.settle("configmaps")
	if data := f.get(configmaps, "going").Object["data"]; data != nil {
		t.Errorf("an object that is being deleted was changed: %v", data)
	}
}

// PAT-14: an object that is deleted between the decision and the write stays
// deleted, and one that takes its place is decided on anew.
func TestNothingIsEverCreated(t *testing.T) {
	f := newFixture(t)
	f.start(rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			name := fmt.Sprintf("brief-%d", i)
			f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}`, name)
			if err := f.client.Resource(configmaps).Namespace(f.ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.settle("configmaps")
	list, err := f.client.Resource(configmaps).Namespace(f.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		if strings.HasPrefix(item.GetName(), "brief-") {
			t.Errorf("%s is back", item.GetName())
		}
	}
	if n := f.queued(); n != 0 {
		t.Errorf("%d keys are still queued", n)
	}
	for _, e := range f.requests("configmaps") {
		if c := e.ResponseStatus.Code; c != 200 && c != 404 && c != 409 && c != 422 {
			t.Errorf("a request was answered with %d", c)
		}
	}
}

func (f *fixture) queued() int { return f.engine.queue.Len() }

// FGT-11: a decision that has become old is dropped and made again; the other
// writer's change stays.
func TestAStaleDecisionIsMadeAgain(t *testing.T) {
	f := newFixture(t)
	f.start(rule("count", `
resource: {version: v1, resource: configmaps}
condition: object.data.state == 'wrong'
patch: {merge: {data: {state: right}}}`))
	const n = 30
	for i := range n {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}, data: {state: wrong, other: "0"}}`, i)
		f.merge(configmaps, fmt.Sprintf("c-%d", i), `{"data":{"other":"1"}}`)
	}
	for i := range n {
		f.eventually(soon, configmaps, fmt.Sprintf("c-%d", i), "right", "data", "state")
		f.eventually(soon, configmaps, fmt.Sprintf("c-%d", i), "1", "data", "other")
	}
	f.settle("configmaps")
	if accepted, _ := f.writes("configmaps"); accepted != n {
		t.Errorf("%d accepted writes, want %d", accepted, n)
	}
}

// FGT-05, FGT-06, FGT-09: what would never come to rest is found before the
// first write.
func TestRulesThatDoNotConvergeWriteNothing(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {num: "1"}}`)
	f.start(
		rule("append", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {num: "${object.data.num + '1'}"}}}`),
		rule("tier-a", `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {tier: a}}}}`),
		rule("tier-b", `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {tier: b}}}}`),
		rule("good", `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {team: web}}}}`),
	)
	f.eventually(soon, configmaps, "c", "web", "metadata", "labels", "team")
	f.wantEvent("c", "Warning NotConverging: rule append: the rule does not converge")
	f.wantEvent("c", "Warning NotConverging: rule tier-a: the rules tier-a, tier-b do not converge")
	f.settle("configmaps")
	if accepted, all := f.writes("configmaps"); accepted != 1 || all != 1 {
		t.Errorf("%d requests, %d accepted; want the good rule's only", all, accepted)
	}
}

// FGT-03: a value that the server stores in another form is not written again
// and again.
func TestAnIneffectiveWriteIsHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	f.start(rule("cpu", `
resource: {group: apps, version: v1, resource: deployments}
condition: object.spec.template.spec.containers[0].?resources.?requests.?cpu.orValue('') != '1000m'
patch: {json: [{op: add, path: /spec/template/spec/containers/0/resources, value: {requests: {cpu: 1000m}}}]}`))
	f.wantEvent("web", "Warning Ineffective: rule cpu")
	for i := range 5 {
		f.merge(deployments, "web", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
	}
	f.settle("deployments")
	f.wantPaced("deployments", "web", 5)
}

// A rule that reacts to what a later one has changed gets its turn: that is no
// write without effect.
func TestARuleThatReactsToALaterOne(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	f.start(
		rule("a", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {seen: "${string('z' in object.metadata.?labels.orValue({}))}"}}}`),
		rule("z", `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {labels: {z: "1"}}}}`))
	f.eventually(soon, configmaps, "c", "true", "data", "seen")
	f.settle("configmaps")
	for _, e := range f.eventsOn("c") {
		if strings.HasPrefix(e, "Warning") {
			t.Errorf("event %q", e)
		}
	}
}

// SEC-01: nothing of a Secret is logged or told, whatever the server answers
// and whatever fails.
func TestSecretsStaySecret(t *testing.T) {
	f := newFixture(t)
	logs := captureLogs(t)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: czNjcjN0}}`)
	f.start(
		rule("a-refused", `
resource: {version: v1, resource: secrets}
patch: {merge: {type: other}}`),
		rule("b-unknown-field", `
resource: {version: v1, resource: secrets}
patch: {merge: {dta: {x: eA==}}}`),
		rule("c-fails", `
resource: {version: v1, resource: secrets}
condition: "{'': true}[object.data.password]"
patch: {merge: {metadata: {labels: {x: "1"}}}}`),
		rule("d-good", `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {fixed: "yes"}}}}`))
	f.eventually(soon, secrets, "s", "yes", "metadata", "labels", "fixed")
	f.wantEvent("s", "Warning PatchRefused: rule a-refused: the API server refuses the change: Invalid (type: FieldValueInvalid")
	f.wantEvent("s", "Warning PatchRefused: rule b-unknown-field")
	f.wantEvent("s", "Warning EvaluationFailed: rule c-fails: evaluate the condition: it failed")
	for _, e := range append(f.eventsOn("s"), logs.matching("")...) {
		if strings.Contains(e, "czNjcjN0") || strings.Contains(e, "s3cr3t") {
			t.Errorf("published: %s", e)
		}
	}
}

// CEL-06, CEL-07, CEL-16, FGT-08: the condition is honoured on every path, and
// what cannot be evaluated is no match and is told once.
func TestConditionsAreHonoured(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: keep, labels: {tier: web}}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, labels: {tier: web}}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: odd, labels: {owner: ops}}}`)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.startAs(config, Options{Resync: time.Second}, rule("fix", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.labels.tier == 'web' && object.metadata.name != 'keep'
patch: {merge: {data: {x: "1"}}}`))
	f.eventually(soon, configmaps, "other", "1", "data", "x")
	f.merge(configmaps, "keep", `{"data":{"y":"1"}}`)
	f.wantEvent("odd", "Warning EvaluationFailed: rule fix: evaluate the condition: no such key: tier")
	for i := range 3 {
		f.merge(configmaps, "odd", fmt.Sprintf(`{"data":{"y":"%d"}}`, i))
	}
	f.settle("configmaps")
	for _, e := range f.requests("configmaps") {
		if e.ObjectRef.Name != "other" {
			t.Errorf("a request to %s", e.ObjectRef.Name)
		}
	}
	if accepted, all := f.writes("configmaps"); accepted != 1 || all != 1 {
		t.Errorf("%d requests, want 1", all)
	}
	if got := f.eventsOn("odd"); len(got) != 1 {
		t.Errorf("events on odd: %q; want one", got)
	}
}

// Once looks at every object, however many there are and however often it is
// asked; it counts each of them once.
// What Once could not do, it says: a missing right, a resource that is not
// there. It does not wait for either.
// Many rules, workers and writers on the same objects: no race, nothing of the
// cache modified (the detector of client-go panics), everything right in the
// end. WCH-04.
func TestManyWritersOnTheSameObjects(t *testing.T) {
	f := newFixture(t)
	const n = 20
	for i := range n {
		f.create(deployments, deploymentYAML, fmt.Sprintf("web-%d", i), "4", 1)
	}
	f.start(
		expectedReplicas(t),
		rule("label", `
resource: {group: apps, version: v1, resource: deployments}
condition: object.metadata.?labels.?team.orValue('') != 'web'
patch: {merge: {metadata: {labels: {team: web}}}}`),
		rule("policy", `
resource: {group: apps, version: v1, resource: deployments}
condition: object.spec.template.spec.containers.exists(c, c.imagePullPolicy != 'Always')
patch:
  json: "${object.spec.template.spec.containers.map(c, {'op': 'replace', 'path': '/spec/template/spec/containers/0/imagePullPolicy', 'value': 'Always'})}"`),
	)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("web-%d", i)
			for j := range 10 {
				body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": fmt.Sprint(j)}}, "spec": map[string]any{"replicas": j}})
				_, err := f.client.Resource(deployments).Namespace(f.ns).Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
				if err != nil && !apierrors.IsConflict(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range n {
		name := fmt.Sprintf("web-%d", i)
		f.eventually(soon, deployments, name, int64(4), "spec", "replicas")
		f.eventually(soon, deployments, name, "web", "metadata", "labels", "team")
	}
	f.settle("deployments")
	if n := f.queued(); n != 0 {
		t.Errorf("%d keys are still queued", n)
	}
}
