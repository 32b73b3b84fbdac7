package lint_test

import "testing"

func TestFieldPath(t *testing.T) {
	const (
		deployments = "resource: {group: apps, version: v1, resource: deployments}\n"
		widgets     = "resource: {group: example.io, version: v1, resource: widgets}\n"
		patch       = "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	)
	selector := func(text string) string { return "match:\n  fieldSelector: " + text + patch }
	where := func(resource, clauses string) string {
		return deployments + "lookups:\n- name: h\n  resource: " + resource + "\n  where:\n    " + clauses + "\ncondition: lookups.h.size() == 0" + patch
	}
	const (
		hpas      = "{group: autoscaling, version: v2, resource: horizontalpodautoscalers}"
		services  = "{version: v1, resource: services}"
		theWidget = "{group: example.io, version: v1, resource: widgets}"
	)
	testCheck(t, "field-path", []schemaCase{
		{name: "a typo in a fieldSelector", spec: deployments + selector("spec.replcas=3"), want: []string{"7:20: undefined field 'replcas' in spec (did you mean 'replicas'?)"}},
		{name: "the second part of one, which asks for another value", spec: deployments + selector("metadata.name=x,sepc.paused!=true"), want: []string{"7:36: undefined field 'sepc' (did you mean 'spec'?)"}},
		{name: "letters for an int", spec: deployments + selector("spec.replicas=three"), want: []string{"7:20: spec.replicas is never 'three': it is an int, and compares as such as 3"}},
		{name: "an int that is written otherwise", spec: deployments + selector("spec.replicas=03"), want: []string{"7:20: spec.replicas is never '03': it is an int, and compares as such as 3"}},
		{name: "a word for a bool", spec: deployments + selector("spec.paused!=yes"), want: []string{"7:20: spec.paused is never 'yes': it is true or false"}},
		{name: "a word that looks like a slip", spec: deployments + selector("spec.strategy.type=recreate"), want: []string{"7:20: spec.strategy.type is never 'recreate' (did you mean 'Recreate'?)"}},
		{name: "a mapping", spec: deployments + selector("spec.template=x"), want: []string{"7:20: spec.template is a mapping: only text, numbers and bools are compared"}},
		{name: "an element of a list", spec: deployments + selector("spec.template.spec.containers.name=x"), want: []string{"7:20: spec.template.spec.containers is a list: no path leads to its elements, filter them in CEL"}},
		{name: "a field of a number", spec: deployments + selector("spec.replicas.max=3"), want: []string{"7:20: spec.replicas is an int: it has no field 'max'"}},
		{name: "all well", spec: deployments + selector("spec.replicas=3,spec.paused!=true,metadata.labels.a=b,metadata.namespace!=x,spec.strategy.type=Brandnew,spec.paused=,kind=Deployment")},
		{name: "nothing is known of the resource", spec: "resource: {group: example.org, version: v1, resource: things}\n" + selector("spec.anything=3")},
		{name: "a comma in a value", spec: deployments + selector(`metadata.name=a\,b,spec.replcas=1`), want: []string{"7:39: undefined field 'replcas' in spec (did you mean 'replicas'?)"}},
		{name: "several resources, of which one has the field", spec: "resources: [{group: apps, version: v1, resource: deployments}, {group: apps, version: v1, resource: daemonsets}]\n" + selector("spec.replicas=3"), want: []string{"7:20: undefined field 'replicas' in spec (of daemonsets)"}},
		{name: "and the value is another one", spec: "resources: [{group: apps, version: v1, resource: deployments}, {group: apps, version: v1, resource: daemonsets}]\n" + selector("spec.replicas!=3")},
		{name: "custom resource", crds: widgetCRD, spec: widgets + selector("spec.mode=Quick,spec.ratio=half,spec.ratio!=0.5,spec.ratio!=0.50,spec.open.any=x,spec.free.a.b=x,spec.port=http,spec.tags=a"), want: []string{
			"7:20: spec.mode is never 'Quick': it is one of Fast, Slow",
			"7:36: spec.ratio is never 'half': it is a number, and compares as such as 0.5",
			"7:68: spec.ratio is never '0.50': it is a number, and compares as such as 0.5",
			"7:132: spec.tags is a list: only text, numbers and bools are compared",
		}},

		{name: "a typo in a lookup", spec: where(hpas, "spec.scaleTargetReference.name: ${object.metadata.name}"), want: []string{"10:7: undefined field 'scaleTargetReference' in spec (did you mean 'scaleTargetRef'?), so the lookup is always empty"}},
		{name: "in its last key", spec: where(hpas, "{spec.scaleTargetRef.nam: x, spec.minReplicas: x}"), want: []string{
			"10:8: undefined field 'nam' in spec.scaleTargetRef (did you mean 'name'?), so the lookup is always empty",
			"10:54: spec.minReplicas is never 'x': it is an int, and compares as such as 3",
		}},
		{name: "a list in a lookup", spec: where(services, "spec.ports: 80"), want: []string{"10:7: spec.ports is a list: only text, numbers and bools are compared, so the lookup is always empty"}},
		{name: "several values", spec: where(services, "spec.type: [ClusterIP, Nodeport]\n    spec.healthCheckNodePort: [1, \"2\", x, 1.5, true, \"${object.metadata.name}\"]"), want: []string{
			"10:30: spec.type is never 'Nodeport' (did you mean 'NodePort'?)",
			"11:42: spec.healthCheckNodePort is never 'x': it is an int, and compares as such as 3",
			"11:45: spec.healthCheckNodePort is never '1.5': it is an int, and compares as such as 3",
			"11:50: spec.healthCheckNodePort is never 'true': it is an int, and compares as such as 3",
		}},
		{name: "a lookup as it should be", spec: where(services, "{spec.selector.app: x, spec.publishNotReadyAddresses: true, metadata.name: \"${object.metadata.name}\", spec.type: \"${object.spec.strategy.type}\"}")},
		{name: "a lookup of a custom resource", crds: widgetCRD, spec: where(theWidget, "{spec.mode: Medium, spec.size: 3, spec.parts.name: x, metadata.namespce: y}"), want: []string{
			"10:19: spec.mode is never 'Medium': it is one of Fast, Slow",
			"10:41: spec.parts is a list: no path leads to its elements, filter them in CEL, so the lookup is always empty",
			"10:61: undefined field 'namespce' in metadata (did you mean 'namespace'?), so the lookup is always empty",
		}},
		{name: "a lookup of what is not known", spec: where("{group: example.org, version: v1, resource: things}", "spec.anything: 3")},
	})
}

func TestInvalidLabel(t *testing.T) {
	const (
		configMaps  = "resource: {version: v1, resource: configmaps}\n"
		deployments = "resource: {group: apps, version: v1, resource: deployments}\n"
		value       = " is not set to a label value: at most 63 letters, digits, -, _ and ., with a letter or digit at both ends"
		form        = ": NAME or PREFIX/NAME, the name of at most 63 letters, digits, -, _ and ., with a letter or digit at both ends, the prefix such as example.com"
	)
	testCheck(t, "invalid-label", []schemaCase{
		{name: "a value", spec: configMaps + "patch: {merge: {metadata: {labels: {a: \"not a label value!\"}}}}", want: []string{"6:42: metadata.labels.a" + value}},
		{name: "a key", spec: configMaps + "patch: {merge: {metadata: {labels: {a/b/c: x}}}}", want: []string{"6:39: \"a/b/c\" is not the key of a label" + form}},
		{name: "the key of an annotation", spec: configMaps + "patch: {merge: {metadata: {annotations: {\"my note\": \"any text!\", A.B/c: \"\"}}}}", want: []string{"6:44: \"my note\" is not the key of an annotation" + form}},
		{name: "an operation", spec: configMaps + "patch: {json: [{op: add, path: /metadata/labels/a, value: -x}, {op: add, path: /metadata/labels, value: {\"b c\": x}}]}", want: []string{
			"6:61: metadata.labels.a" + value,
			"6:108: \"b c\" is not the key of a label" + form,
		}},
		{name: "a configuration", spec: configMaps + "patch: {applyConfiguration: {metadata: {labels: {a: x-}}}}", want: []string{"6:55: metadata.labels.a" + value}},
		{name: "CEL", spec: configMaps + "patch: {applyConfiguration: \"${Object{metadata: Object.metadata{labels: {'a': object.metadata.name == 'x' ? 'a b' : 'c'}}}}\"}", want: []string{"6:111: metadata.labels.a" + value}},
		{name: "partly computed", spec: configMaps + "patch: {merge: {metadata: {labels: {a: \"team ${object.metadata.name}\", b: \"-${object.metadata.name}\", c: \"${object.metadata.name}\"}}}}", want: []string{"6:42: metadata.labels.a" + value}},
		{name: "a pod template", spec: deployments + "patch: {merge: {spec: {template: {metadata: {labels: {a: x y}}}}}}", want: []string{"6:60: spec.template.metadata.labels.a" + value}},
		{name: "labels that the server does not know as such", crds: widgetCRD, spec: "resource: {group: example.io, version: v1, resource: widgets}\npatch: {merge: {spec: {free: {metadata: {labels: {a b: x y}}}}}}"},
		{name: "one that is removed", spec: configMaps + "patch: {merge: {metadata: {labels: {a b: null}}}}"},
		{name: "all well", spec: configMaps + "patch: {merge: {metadata: {labels: {example.com/a.B_c: \"\", a: A-1.x_y, \"${object.metadata.name}\": x}}}}"},
	})
}

// A CRD says all the words that a field has.
func TestClosedEnums(t *testing.T) {
	const widgets = "resource: {group: example.io, version: v1, resource: widgets}\n"
	const patch = "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	testCheck(t, "cel-type", []schemaCase{
		{name: "another word", crds: widgetCRD, spec: widgets + "condition: object.spec.mode == 'medium'" + patch, want: []string{"6:34: mode is never 'medium': it is one of Fast, Slow"}},
		{name: "one of several", crds: widgetCRD, spec: widgets + "condition: object.spec.mode in ['Fast', 'medium']" + patch, want: []string{"6:43: mode is never 'medium': it is one of Fast, Slow"}},
		{name: "a variable", crds: widgetCRD, spec: widgets + "variables: [{name: m, expression: object.spec.mode}]\ncondition: variables.m != 'medium'" + patch, want: []string{"7:29: variables.m is never 'medium': it is one of Fast, Slow"}},
		{name: "a default", crds: widgetCRD, spec: widgets + "condition: object.spec.?mode.orValue('none') == 'none'" + patch},
		{name: "one side of ?:", crds: widgetCRD, spec: widgets + "variables: [{name: m, expression: \"has(object.spec.mode) ? object.spec.mode : 'none'\"}]\ncondition: variables.m == 'none'" + patch},
		{name: "another default", crds: widgetCRD, spec: widgets + "condition: object.spec.?mode.orValue('none') == 'medium'" + patch, want: []string{"6:51: mode is never 'medium': it is one of Fast, Slow"}},
		{name: "a built-in kind", spec: "resource: {version: v1, resource: services}\ncondition: object.spec.type == 'Brandnew'" + patch},
	})
}
