package lint_test

import "testing"

// What an expression gives by its schema has to be what is wanted where it stands.
func TestDemands(t *testing.T) {
	const patch = "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	condition := func(cel string) string { return deployments + "condition: \"" + cel + "\"" + patch }
	lookup := func(field string) string {
		return deployments + "lookups:\n  - name: l\n    resource: {version: v1, resource: configmaps}\n    " + field + "\ncondition: size(lookups.l) > 0" + patch
	}
	const text = ", which cannot be put into a string: only strings, numbers, bools, timestamps and durations can"
	testCheck(t, "cel-type", []schemaCase{
		{name: "a string as condition", spec: condition("object.metadata.namespace"), want: []string{"6:15: the condition must be bool, but this is string"}},
		{name: "a number as condition", spec: condition("object.spec.replicas"), want: []string{"6:15: the condition must be bool, but this is int"}},
		{name: "an object as condition", spec: condition("object.spec"), want: []string{"6:15: the condition must be bool, but this is DeploymentSpec"}},
		{name: "a default that is no bool", spec: condition("object.spec.?replicas.orValue(1)"), want: []string{"6:15: the condition must be bool, but this is int"}},
		{name: "a variable as condition", spec: deployments + "variables: [{name: v, expression: object.metadata.name}]\ncondition: variables.v" + patch, want: []string{"7:14: the condition must be bool, but this is string"}},
		{name: "a number beside &&", spec: condition("has(object.spec.paused) && object.spec.replicas"), want: []string{"6:54: bool is needed on both sides of && and ||, but this is int"}},
		{name: "an element that is no bool", spec: condition("object.spec.template.spec.containers.exists(c, c.name)"), want: []string{"6:64: bool is needed on both sides of && and ||, but this is string"}},
		{name: "bools", spec: condition("object.spec.?paused.orValue(false) || object.spec.paused")},
		{name: "a bool that only the object knows", spec: condition("object.metadata.?annotations.?a.orValue(false)")},
		{name: "nothing is known", spec: "resource: {group: example.org, version: v1, resource: things}\ncondition: object.spec.paused" + patch},
		{name: "of two kinds one has another type", crds: widgetCRD + "---\n" + gadgetCRD, spec: "resources: [{group: example.io, version: v1, resource: widgets}, {group: example.io, version: v1, resource: gadgets}]\ncondition: object.spec.size" + patch,
			want: []string{"6:14: the condition must be bool, but this is int (of widgets)"}},

		{name: "a text with an object in it", spec: deployments + "patch: {merge: {metadata: {annotations: {a: \"x-${object.spec}\", b: \"x-${object.spec.?replicas}\"}}}}", want: []string{"6:52: this is DeploymentSpec" + text}},
		{name: "a message with a list in it", spec: deployments + "event: {message: \"${object.spec.template.spec.containers} ${object.spec.?selector} ${object.spec.replicas} ${now}\"}\nrecheckAfter: 1h" + patch,
			want: []string{"6:23: this is list(Container)" + text, "6:63: this is optional(LabelSelector)" + text}},
		{name: "keys", spec: deployments + "patch: {merge: {metadata: {annotations: {\"${object.spec.replicas}\": a, \"${object.metadata.name}\": b, \"${object.metadata.?generateName}\": c, \"n-${object.spec.replicas}\": d}}}}",
			want: []string{"6:47: a key must be a string, but this is int: use string()"}},

		{name: "a namespace", spec: lookup("namespace: ${object.spec.replicas}"), want: []string{"9:20: namespace must be a string, but this is int"}},
		{name: "where", spec: lookup("where: {data.a: \"${object.spec.template}\", data.b: \"${object.spec.replicas}\", data.c: \"${object.spec.template.spec.containers.map(c, c.name)}\", data.d: [\"${object.spec.?paused}\"]}"),
			want: []string{"9:26: a value of where must be a string, number or bool, or a list of them, but this is PodTemplateSpec"}},
		{name: "a list of objects", spec: lookup("where: {data.a: \"${object.spec.template.spec.containers}\"}"),
			want: []string{"9:26: a value of where must be a string, number or bool, or a list of them, but this is list(Container)"}},
		{name: "a selector", spec: lookup("labelSelector: ${object.metadata.name}"), want: []string{"9:24: labelSelector must be a mapping, but this is string"}},
		{name: "a selector of the object", spec: lookup("labelSelector: ${object.spec.selector}")},
		{name: "labels", spec: lookup("labelSelector: {matchLabels: \"${object.spec.selector.matchLabels}\"}")},
		{name: "a label", spec: lookup("labelSelector: {matchLabels: {a: \"${object.spec.replicas}\"}}"), want: []string{"9:43: a value of matchLabels must be a string, but this is int"}},

		{name: "a merge patch", spec: deployments + "patch: {merge: \"${object.metadata.name}\"}", want: []string{"6:21: merge must be a mapping, but this is string"}},
		{name: "a configuration", spec: deployments + "patch: {applyConfiguration: \"${object.spec.replicas}\"}", want: []string{"6:34: applyConfiguration must be a mapping, but this is int"}},
		{name: "operations", spec: deployments + "patch: {json: \"${object.metadata.labels}\"}", want: []string{"6:20: json must be a list of operations, but this is map(string, string)"}},
		{name: "an operation", spec: deployments + "patch: {json: [\"${object.metadata.name}\"]}", want: []string{"6:21: an operation must be a mapping, but this is string"}},
		{name: "a pointer", spec: deployments + "patch: {json: [{op: add, path: \"${object.spec.replicas}\", value: \"${object.spec.replicas}\"}]}", want: []string{"6:37: path must be a string, but this is int"}},
		{name: "fields of those names", spec: "resource: {group: example.io, version: v1, resource: things}\npatch: {merge: {path: \"${1}\", where: \"${2}\", json: \"${'x'}\"}}"},
		{name: "patches", spec: deployments + "patches: [{merge: \"${Object{spec: Object.spec{paused: true}}}\"}, {json: \"${[JSONPatch{op: 'remove', path: '/spec/paused'}]}\"}, {json: [\"${{'op': 'remove', 'path': '/spec/paused'}}\"]}]"},
	})
}

const gadgetCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: boolean}}}}}}
`
