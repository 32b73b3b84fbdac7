package lint_test

import "testing"

// DSC-09: what the older version does not know is lost by a write through it.
func TestOlderVersion(t *testing.T) {
	const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
  - {name: v2, served: false, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}
`
	patch := "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	testCheck(t, "older-version", []schemaCase{
		{name: "an older version", crds: crd, spec: "resource: {group: example.io, version: v1alpha1, resource: widgets}" + patch,
			want: []string{"5:42: what only v1 of widgets knows may be lost by a write through v1alpha1: name v1"}},
		{name: "one of several", crds: crd, spec: "resources:\n- {version: v1, resource: configmaps}\n- {group: example.io, version: v1alpha1, resource: widgets}" + patch,
			want: []string{"7:34: what only v1 of widgets knows may be lost by a write through v1alpha1: name v1"}},
		{name: "the stored one", crds: crd, spec: "resource: {group: example.io, version: v1beta1, resource: widgets}" + patch},
		{name: "the preferred one", crds: crd, spec: "resource: {group: example.io, version: v1, resource: widgets}" + patch},
		{name: "nothing is written", crds: crd, spec: "resource: {group: example.io, version: v1alpha1, resource: widgets}\nmode: Audit" + patch},
		{name: "built in", spec: "resource: {group: autoscaling, version: v1, resource: horizontalpodautoscalers}" + patch},
		{name: "nothing is known", spec: "resource: {group: example.io, version: v1alpha1, resource: widgets}" + patch},
	})
}
