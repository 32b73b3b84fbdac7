package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
)

// CEL-16: a rule that does not compile is named in readiness, and the others
// work.
func TestABadRuleStopsNoOther(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	bad := rules.Source{Name: "bad.yaml", Data: []byte(rule("bad", `
resource: {version: v1, resource: configmaps}
condition: object.data.x ==
patch: {merge: {data: {broken: "yes"}}}`))}
	_, problems := rules.Load(bad)
	if len(problems) != 1 {
		t.Fatalf("problems: %v", problems)
	}
	f.startAs(config, Options{Problems: problems}, rule("good", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.eventually(soon, configmaps, "c", "yes", "data", "fixed")
	f.wantReadyz(soon, "rules: 1 loaded, 1 invalid", `rule left out: bad.yaml:`, `rule "bad"`, "\nready")
}

// SUB-05: only what is declared counts, not what the status says.
func TestStatusUpdatesAreNoDrift(t *testing.T) {
	f := newFixture(t)
	f.create(deployments, deploymentYAML, "web", "3", 3)
	f.start(expectedReplicas(t))
	f.wantReadyz(soon, "deployments: synced")
	for i := range 10 {
		f.merge(deployments, "web", fmt.Sprintf(`{"status":{"replicas":%d}}`, i), "status")
	}
	f.settle("deployments")
	if _, all := f.writes("deployments"); all != 0 {
		t.Errorf("%d requests for updates of the status", all)
	}
}

// NUM-06: a request holds what is to change and nothing else.
func TestARequestHoldsOnlyTheChange(t *testing.T) {
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.crd(group, "")
	f.create(widgets, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {size: 9223372036854775807}}`, group)
	f.start(rule("label", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
patch: {merge: {metadata: {labels: {team: web}}}}`, group)))
	f.eventually(soon, widgets, "w", "web", "metadata", "labels", "team")
	f.eventually(soon, widgets, "w", int64(9223372036854775807), "spec", "size")
	for _, e := range f.requests("widgets") {
		if strings.Contains(string(e.RequestObject), "size") {
			t.Errorf("the request holds what does not change: %s", e.RequestObject)
		}
	}
}

// SEL-04: a Namespace that is created later is picked up.
func TestANamespaceThatComesLater(t *testing.T) {
	f := newFixture(t)
	late := f.ns + "-late"
	f.start(rule("mark", fmt.Sprintf(`
resource: {version: v1, resource: configmaps}
match: {namespaces: [%s]}
patch: {merge: {data: {fixed: "yes"}}}`, late)))
	f.wantReadyz(soon, "v1/configmaps: synced")
	ns := f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, late)
	ns.SetNamespace("")
	if _, err := f.client.Resource(namespaces).Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.ns = late
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	f.eventually(soon, configmaps, "c", "yes", "data", "fixed")
}

// SUB-02: a rule on an endpoint that a CRD gets later starts by itself.
func TestAnEndpointThatComesLater(t *testing.T) {
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	crd := f.crd(group, "")
	f.create(widgets, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}`, group)
	f.start(rule("phase", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
patch: {subresource: status, merge: {status: {phase: Ready}}}`, group)))
	f.wantReadyz(soon, "parked: the resource has no status subresource")
	_, err := f.client.Resource(crds).Patch(t.Context(), crd.GetName(), types.JSONPatchType,
		[]byte(`[{"op":"add","path":"/spec/versions/0/subresources","value":{"status":{}}}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.eventually(30*time.Second, widgets, "w", "Ready", "status", "phase")
}

// PAT-08: an index that was computed for an older list is never used on a newer
// one.
func TestAnIndexIsForOneVersion(t *testing.T) {
	f := newFixture(t)
	f.start(rule("release", `
resource: {version: v1, resource: configmaps}
condition: "'example.io/b' in object.metadata.?finalizers.orValue([])"
patch:
  json: |-
    ${lists.range(object.metadata.finalizers.size())
      .filter(i, object.metadata.finalizers[i] == 'example.io/b')
      .map(i, {'op': 'remove', 'path': '/metadata/finalizers/' + string(i)})}`))
	const n = 20
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			name := fmt.Sprintf("c-%d", i)
			u := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, finalizers: [example.io/a, example.io/b, example.io/c]}}`, name)
			if _, err := f.client.Resource(configmaps).Namespace(f.ns).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				t.Error(err)
				return
			}
			_, err := f.client.Resource(configmaps).Namespace(f.ns).Patch(t.Context(), name, types.JSONPatchType,
				[]byte(`[{"op":"test","path":"/metadata/finalizers/0","value":"example.io/a"},{"op":"remove","path":"/metadata/finalizers/0"}]`), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		name := fmt.Sprintf("c-%d", i)
		testcluster.Eventually(t, soon, func() error {
			if got := f.get(configmaps, name).GetFinalizers(); !slices.Equal(got, []string{"example.io/c"}) {
				return fmt.Errorf("%s has the finalizers %v", name, got)
			}
			return nil
		})
		f.merge(configmaps, name, `{"metadata":{"finalizers":null}}`)
	}
}
