package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PAT-11, PAT-17: a configuration is merged by the keys of lists; what it does
// not name stays; two rules under one field manager do not undo each other.
func TestApplyConfiguration(t *testing.T) {
	f := newFixture(t)
	before := f.create(deployments, threeContainers)
	f.start(
		rule("image", `
resource: {group: apps, version: v1, resource: deployments}
condition: object.spec.template.spec.containers.exists(c, c.name == 'b' && c.image != 'r.example/b:2')
patch: {applyConfiguration: {spec: {template: {spec: {containers: [{name: b, image: "r.example/b:2"}]}}}}}`),
		rule("label-a", `
resource: {group: apps, version: v1, resource: deployments}
patch: {applyConfiguration: "${Object{metadata: Object.metadata{labels: {'a': '1'}}}}"}`),
		rule("label-b", `
resource: {group: apps, version: v1, resource: deployments}
patch: {applyConfiguration: {metadata: {labels: {b: "1"}}}}`),
		rule("selector", `
resource: {group: apps, version: v1, resource: deployments}
patch: {applyConfiguration: {spec: {template: {spec: {nodeSelector: {disk: ssd}}}}}}`),
	)
	f.eventually(10*time.Second, deployments, "web", "1", "metadata", "labels", "b")
	f.settle("deployments")
	after := f.get(deployments, "web")

	want := before.DeepCopy().Object
	template := want["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	template["containers"].([]any)[1].(map[string]any)["image"] = "r.example/b:2"
	if diff := cmp.Diff(want["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1"}, after.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	f.wantEvent("web", "Warning EvaluationFailed: rule selector: evaluate the patch: apply the configuration: spec.template.spec.nodeSelector")
	if accepted, all := f.writes("deployments"); accepted != 1 || all != 1 {
		t.Errorf("%d requests, %d accepted; want one for all rules", all, accepted)
	}
}

// The schema of a custom resource comes from the cluster, when its CRD does.
func TestApplyConfigurationToACustomResource(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.start(rule("parts", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
patch: {applyConfiguration: {spec: {size: 7}}}`, group)))
	f.wantReadyz(10*time.Second, group+"/v1/widgets: WaitingForResource")
	f.crd(group, "")
	f.create(widgets, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, copies: 2}}`, group)
	f.eventually(30*time.Second, widgets, "w", int64(7), "spec", "size")
	f.eventually(soon, widgets, "w", int64(2), "spec", "copies")
}
