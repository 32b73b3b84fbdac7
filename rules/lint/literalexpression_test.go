package lint_test

import "testing"

func TestLiteralExpression(t *testing.T) {
	write := func(value string) string {
		return deployments + "patch: {merge: {metadata: {annotations: {a: " + value + "}}}}"
	}
	found := func(column, source string) []string {
		return []string{"6:" + column + ": this is written as it stands, but looks like CEL: write ${" + source + "}"}
	}
	foreign := func(at, signs, source string) []string {
		return []string{at + ": " + signs + " is no template here, and written as it stands: write ${" + source + "}"}
	}
	with := deployments + "lookups: [{name: pods, resource: {version: v1, resource: pods}, namespace: \"${object.metadata.namespace}\"}]\nvariables: [{name: size, expression: \"1\"}]\ncondition: size(lookups.pods) > variables.size\n"
	annotation := func(value string) string {
		return with + "patch: {merge: {metadata: {annotations: {a: " + value + "}}}}"
	}
	testCheck(t, "literal-expression", []schemaCase{
		{name: "a path", spec: write("object.metadata.namespace"), want: found("47", "object.metadata.namespace")},
		{name: "an optional path", spec: write("\"object.spec.?replicas.orValue(1)\""), want: found("47", "object.spec.?replicas.orValue(1)")},
		{name: "a key", spec: write("\"object.metadata.labels['a/b']\""), want: found("47", "object.metadata.labels['a/b']")},
		{name: "a conversion", spec: write("string(object.spec.replicas)"), want: found("47", "string(object.spec.replicas)")},
		{name: "the Namespace", spec: write("namespaceObject.metadata.name"), want: found("47", "namespaceObject.metadata.name")},
		{name: "of admission", spec: write("request.object.metadata.name"), want: found("47", "object.metadata.name")},
		{name: "a block", spec: deployments + "patch:\n  merge:\n    metadata:\n      annotations:\n        a: |\n          object.metadata.name", want: []string{"10:14: this is written as it stands, but looks like CEL: write ${object.metadata.name}"}},
		{name: "a variable", spec: annotation("variables.size"), want: []string{"9:47: this is written as it stands, but looks like CEL: write ${variables.size}"}},
		{name: "a lookup", spec: annotation("\"lookups.pods[0].metadata.name\""), want: []string{"9:47: this is written as it stands, but looks like CEL: write ${lookups.pods[0].metadata.name}"}},
		{name: "a key of a mapping", spec: deployments + "patch: {merge: {metadata: {annotations: {object.metadata.name: a}}}}", want: found("44", "object.metadata.name")},
		{name: "an operation", spec: deployments + "patch: {json: [{op: add, path: /metadata/labels, value: {a: object.metadata.name}}]}", want: found("63", "object.metadata.name")},
		{name: "a configuration", spec: deployments + "patch: {applyConfiguration: {metadata: {labels: {a: object.metadata.name}}}}", want: found("55", "object.metadata.name")},
		{name: "a message", spec: deployments + "event: {message: object.metadata.name}\npatch: {merge: {spec: {paused: true}}}", want: found("20", "object.metadata.name")},
		{name: "a message with other templates", spec: deployments + "event: {message: \"${object.metadata.name} is {{ object.spec.replicas }} not {{ object.spec.paused }}\"}\npatch: {merge: {spec: {paused: true}}}",
			want: foreign("6:48", "{{ }}", "object.spec.replicas")},
		{name: "of a shell", spec: annotation("\"x-$(variables.size)\""), want: foreign("9:50", "$( )", "variables.size")},
		{name: "trimmed", spec: write("\"{{- object.metadata.name -}}\""), want: foreign("6:48", "{{ }}", "object.metadata.name")},
		{name: "where and labels", spec: deployments + "lookups:\n  - name: l\n    resource: {version: v1, resource: configmaps}\n    where: {metadata.name: object.metadata.name}\n    labelSelector: {matchLabels: {a: object.metadata.name}}\npatch: {merge: {spec: {paused: true}}}",
			want: []string{"9:30: this is written as it stands, but looks like CEL: write ${object.metadata.name}", "10:40: this is written as it stands, but looks like CEL: write ${object.metadata.name}"}},

		{name: "with braces", spec: write("\"${object.metadata.name}\"")},
		{name: "a map in CEL", spec: deployments + "patch: {merge: \"${{object.metadata.name: {}}}\"}"},
		{name: "an escape", spec: write("\"$${object.metadata.name}\"")},
		{name: "a word", spec: write("object")},
		{name: "a host", spec: write("object.storage.example.com")},
		{name: "a sentence", spec: write("object.spec.replicas must not be above 3")},
		{name: "a comparison", spec: write("object.spec.replicas > 3")},
		{name: "a file", spec: write("object.metadata.name.txt/x")},
		{name: "no variable of the rule", spec: annotation("variables.other")},
		{name: "templates of others", spec: write("\"{{ .object.metadata.name }} {{ $labels.pod }} {{ args.x }} {{ object.title }} $(date) $(OBJECT) $(variables.other)\"")},
		{name: "a description", spec: deployments + "description: object.spec.replicas\npatch: {merge: {spec: {paused: true}}}"},
		{name: "an expression of another policy", spec: "resource: {group: example.org, version: v1, resource: policies}\npatch: {merge: {spec: {validations: [{rule: object.spec.x}], celExpression: object.spec.y}}}"},
		{name: "an admission policy", spec: "resource: {group: admissionregistration.k8s.io, version: v1, resource: validatingadmissionpolicies}\npatch: {merge: {spec: {variables: [{name: a, expression: object.spec.x}]}}}"},
		{name: "a path of the looked-up object", spec: deployments + "lookups: [{name: l, resource: {group: example.org, version: v1, resource: things}, where: {object.spec.name: x}}]\npatch: {merge: {spec: {paused: true}}}"},
	})
}
