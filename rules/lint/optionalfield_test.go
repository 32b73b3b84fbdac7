package lint_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/rules"
)

func TestOptionalField(t *testing.T) { testCheck(t, "optional-field", unguarded()) }

// What is guarded, in all the ways in which rules do it, is not reported.
func TestOptionalFieldIsSilent(t *testing.T) { testCheck(t, "optional-field", guarded()) }

// unguarded are rules with a read that is to be reported.
func unguarded() []schemaCase {
	patch := "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	condition := func(cel string) string { return deployments + "condition: |-\n  " + cel + patch }
	const labels = "object.metadata.labels may be absent: ask has(object.metadata.labels) first, or write object.metadata.?labels.?team.orValue('')"
	const replicas = "object.spec.replicas may be absent: ask has(object.spec.replicas) first, or write object.spec.?replicas.orValue(1)"
	return []schemaCase{
		{name: "labels", spec: condition("object.metadata.labels.team == 'a'"), want: []string{"7:21: " + labels}},
		{name: "a key of annotations", spec: condition("has(object.metadata.annotations) && object.metadata.annotations['a/b'] == 'a'"),
			want: []string{"7:68: object.metadata.annotations['a/b'] may be absent: ask 'a/b' in object.metadata.annotations first, or write object.metadata.annotations[?'a/b'].orValue('')"}},
		{name: "an optional field of the schema", spec: condition("object.spec.replicas == 3"), want: []string{"7:17: " + replicas}},
		{name: "each field is told once", spec: condition("object.spec.replicas > 3 && object.spec.replicas < 5"), want: []string{"7:17: " + replicas}},
		{name: "has() of what is within", spec: condition("has(object.spec.template.spec.securityContext.runAsUser)"), want: []string{
			"7:35: object.spec.template.spec.securityContext may be absent: ask has(object.spec.template.spec.securityContext) first, or write object.spec.template.spec.?securityContext.?runAsUser.hasValue()"}},
		{name: "an element", spec: condition("object.spec.template.spec.containers.exists(c, c.args.size() > 3)"), want: []string{"7:54: c.args may be absent: ask has(c.args) first, or write c.?args.orValue([])"}},
		{name: "a guard of another element", spec: condition("object.spec.template.spec.containers.exists(c, has(c.args)) && object.spec.template.spec.containers.exists(c, c.args.size() > 3)"),
			want: []string{"7:117: c.args may be absent: ask has(c.args) first, or write c.?args.orValue([])"}},
		{name: "a default lacks it", spec: condition("object.spec.template.spec.?securityContext.orValue({}).runAsUser == 0"),
			want: []string{"7:60: object.spec.template.spec.?securityContext.orValue({}).runAsUser may be absent: write object.spec.template.spec.?securityContext.orValue({}).?runAsUser.orValue(…)"}},
		{name: "the wrong branch", spec: condition("has(object.spec.replicas) ? true : object.spec.replicas == 1"), want: []string{"7:52: " + replicas}},
		{name: "the wrong way round", spec: condition("!has(object.spec.replicas) && object.spec.replicas == 1"), want: []string{"7:47: " + replicas}},
		{name: "|| does not guard", spec: condition("has(object.spec.replicas) || object.spec.replicas == 1"), want: []string{"7:46: " + replicas}},
		{name: "a default that passes", spec: condition("object.spec.?replicas.orValue(5) > 3 && object.spec.replicas < 7"), want: []string{"7:57: " + replicas}},
		{name: "a variable where it is read", spec: deployments + "variables:\n  - {name: team, expression: object.metadata.labels.team}\ncondition: variables.team == 'a'" + patch, want: []string{"7:48: " + labels}},
		{name: "a patch", spec: deployments + "patch:\n  merge: {metadata: {labels: {a: \"${object.metadata.labels.team}\"}}}", want: []string{"7:55: " + labels}},
		{name: "a lookup", spec: deployments + "lookups:\n  - name: s\n    resource: {version: v1, resource: services}\n    where: {metadata.name: \"${object.metadata.labels.team}\"}\ncondition: lookups.s.size() == 0" + patch,
			want: []string{"9:49: " + labels}},
		{name: "an object that was looked up", spec: deployments + "lookups:\n  - name: s\n    resource: {version: v1, resource: services}\n    namespace: a\ncondition: lookups.s.exists(s, s.spec.selector.app == 'a')" + patch,
			want: []string{"10:41: s.spec.selector may be absent: ask has(s.spec.selector) first, or write s.spec.?selector.?app.orValue('')"}},
		{name: "status of a custom resource", crds: backupCRD, spec: backups + "condition: object.status.phase == 'a'" + patch, want: []string{
			"6:21: object.status may be absent: ask has(object.status) first, or write object.?status.?phase.orValue('')"}},
		{name: "status where nothing is known", spec: "resource: {group: unknown.io, version: v1, resource: things}\ncondition: object.status.phase == 'a'" + patch, want: []string{
			"6:21: object.status may be absent: ask has(object.status) first, or write object.?status.?phase.orValue(…)"}},
		{name: "the Namespace", spec: deployments + "condition: namespaceObject.metadata.labels.team == 'a'" + patch, want: []string{
			"6:46: namespaceObject.metadata.labels.team may be absent: ask 'team' in namespaceObject.metadata.labels first, or write namespaceObject.metadata.labels.?team.orValue('')"}},
		{name: "a selector that does not need the label", spec: deployments + "match: {labelSelector: {matchExpressions: [{key: team, operator: NotIn, values: [a]}]}}\ncondition: object.metadata.labels.team == 'b'" + patch, want: []string{"7:30: " + labels}},
	}
}

// guarded are rules in which nothing is to be reported.
func guarded() []schemaCase {
	patch := "\npatch: {merge: {metadata: {labels: {a: b}}}}"
	var cases []schemaCase
	for _, cel := range []string{
		"object.metadata.name == 'a' && object.metadata.namespace == 'b' && object.kind == 'c' && object.metadata.generation > 1",
		"object.spec.selector == null && object.spec.template.spec.containers[0].name == 'a' && object.spec.template.metadata == null",
		"object.spec.template.spec.containers.all(c, c.image == 'a')",
		"has(object.spec.replicas) && object.spec.replicas == 3",
		"object.spec.replicas == 3 && has(object.spec.replicas)", // CEL takes either order
		"!has(object.spec.replicas) || object.spec.replicas == 3",
		"has(object.spec.replicas) ? object.spec.replicas == 3 : false",
		"!has(object.spec.replicas) ? false : object.spec.replicas == 3",
		"object.spec.?replicas.hasValue() && object.spec.replicas == 3",
		"object.spec.?replicas.orValue(0) > 0 && object.spec.replicas < 3",
		"object.spec.?paused.orValue(false) && object.spec.paused",
		"has(object.spec.paused) == true && object.spec.paused",
		"!(has(object.spec.paused) == false) && object.spec.paused",
		"has(object.metadata.labels) && 'a' in object.metadata.labels && object.metadata.labels['a'] == 'b'",
		"'a' in object.metadata.?labels.orValue({}) && object.metadata.labels['a'] == 'b'",
		"'a' in object.metadata.?labels.orValue({}) && object.metadata.labels.a == 'b'",
		"object.metadata.?labels[?'a'].orValue('') == 'b' && object.metadata.labels.a.size() == 1",
		"object.metadata.?labels[?'a'].orValue('').matches('^b$') && object.metadata.labels.a.size() == 1",
		"object.metadata.?labels[?'a'].orValue('') in ['b', 'c'] && object.metadata.labels.a.size() == 1",
		"object.metadata.?labels[?'a'].orValue('').startsWith('b') && object.metadata.labels.a.size() == 1",
		"object.metadata.?finalizers.orValue([]).size() > 0 && object.metadata.finalizers[0] == 'a'",
		"size(object.metadata.?finalizers.orValue([])) != 0 && object.metadata.finalizers[0] == 'a'",
		"object.metadata.?finalizers.orValue([]).exists(f, f == 'a') && object.metadata.finalizers[0] == 'a'",
		"has(object.spec.template.spec.?securityContext.orValue({}).runAsUser) && object.spec.template.spec.securityContext.runAsUser == 0",
		"object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'a' && o.name == 'b')",
		"object.?metadata.labels.team.orValue('') == 'a'", // ? reaches to the end of the chain
		"object.metadata.?labels.optMap(l, l.size() > 3).orValue(false)",
		"object.metadata.?labels.optMap(l, 'a' in l && l.a == 'b').orValue(false)",
		"object.spec.template.spec.containers.filter(c, has(c.args)).exists(c, c.args.size() > 3)",
		"object.spec.template.spec.containers.filter(c, has(c.args)).map(x, x.args).size() > 0",
		"object.spec.template.spec.containers.map(c, has(c.args), c.args).size() > 0",
		"object.spec.template.spec.containers.transformList(i, c, has(c.args), c.args).size() > 0",
		"object.spec.template.spec.containers.exists(c, has(c.args) && c.args.exists(a, a == c.args[0]))",
		"object.metadata.?labels.orValue({}).all(k, object.metadata.labels[k] != '')",
		"has(object.status.conditions) && object.status.conditions.exists(c, c.type == 'a' && c.status == 'True' && c.lastTransitionTime != null)",
		"has(object.spec.template.spec.securityContext) && has(object.spec.template.spec.securityContext.runAsUser) && object.spec.template.spec.securityContext.runAsUser == 0",
		"object.spec.template.spec.?securityContext.?runAsUser.orValue(1) == 0 && object.spec.template.spec.securityContext.runAsUser == 0",
	} {
		cases = append(cases, schemaCase{name: cel, spec: deployments + "condition: |-\n  " + cel + patch})
	}
	for name, spec := range map[string]string{
		"a variable that is read behind a guard": deployments + "variables:\n  - {name: team, expression: object.metadata.labels.team}\ncondition: \"'team' in object.metadata.?labels.orValue({}) && variables.team == 'a'\"" + patch,
		"a guard in a variable":                  deployments + "variables:\n  - {name: has, expression: has(object.spec.replicas)}\ncondition: variables.has && object.spec.replicas == 1" + patch,
		"a variable that nothing reads":          deployments + "variables:\n  - {name: team, expression: object.metadata.labels.team}\ncondition: object.metadata.name == 'a'" + patch,
		"a patch behind the condition":           deployments + "condition: has(object.spec.replicas)\npatch:\n  merge: {metadata: {annotations: {a: \"${string(object.spec.replicas)}\"}}}",
		"a message of an Event":                  deployments + "patch: {merge: {metadata: {annotations: {a: b}}}}\nevent: {message: \"${object.metadata.labels.team}\"}",
		"a part of the object under a name":      deployments + "variables:\n  - {name: pod, expression: object.spec.template.spec}\ncondition: has(object.spec.template.spec.nodeName) && variables.pod.nodeName == 'a'" + patch,
		"a list that was filtered elsewhere":     deployments + "variables:\n  - {name: some, expression: \"object.spec.template.spec.containers.filter(c, has(c.args))\"}\ncondition: variables.some.exists(c, c.args.size() > 1)" + patch,
		"labels that are matched":                deployments + "match: {labelSelector: {matchLabels: {team: a}}}\ncondition: object.metadata.labels.team == 'a'" + patch,
		"labels that must exist":                 deployments + "match: {namespaceSelector: {matchExpressions: [{key: team, operator: Exists}]}}\ncondition: namespaceObject.metadata.labels.team == 'a'" + patch,
		"a field that is matched":                deployments + "match: {fieldSelector: spec.template.spec.nodeName=a}\ncondition: object.spec.template.spec.nodeName == 'a'" + patch,
		"a lookup finds nothing without it":      deployments + "lookups:\n  - name: s\n    resource: {version: v1, resource: services}\n    where: {metadata.name: \"${object.metadata.?labels.?team}\"}\ncondition: lookups.s.size() == 1 && object.metadata.labels.team == 'a'" + patch,
		"nothing is known of the schema":         "resource: {group: unknown.io, version: v1, resource: things}\ncondition: object.spec.a.b == 1" + patch,
	} {
		cases = append(cases, schemaCase{name: name, spec: spec})
	}
	return append(cases, schemaCase{name: "required, or with a default, in a CRD", crds: backupCRD, spec: backups + "condition: object.spec.target.name == 'a' && object.spec.keep == 1" + patch})
}

// The check says what evaluation does: a rule fails on none of a number of
// Deployments that lack one field each, or all, if and only if nothing is
// reported.
func TestOptionalFieldAgreesWithEvaluation(t *testing.T) {
	objects := sparseDeployments(t)
	evaluated := 0
	for _, tc := range append(unguarded(), guarded()...) {
		if tc.crds != "" || !strings.HasPrefix(tc.spec, deployments) || strings.Contains(tc.spec, "\nlookups:") || strings.Contains(tc.spec, "\nmatch:") {
			continue // the objects are no such, or do not match
		}
		evaluated++
		set, problems := rules.Load(rule(tc.spec))
		if problems != nil {
			t.Fatalf("%s: %v", tc.name, problems[0])
		}
		var failure error
		for _, object := range objects {
			result := rules.Evaluate(set.All(), rules.Input{
				Resource: set.Resources()[0], Object: object, Explain: true,
				NamespaceObject: map[string]any{"metadata": map[string]any{"name": "b", "labels": map[string]any{}}},
			})
			for _, v := range result.Verdicts {
				if v.Err != nil {
					failure = v.Err
				}
			}
		}
		if (failure != nil) != (tc.want != nil) {
			t.Errorf("%s: lint reports %v, evaluation %v", tc.name, tc.want, failure)
		}
	}
	if evaluated < 50 {
		t.Errorf("only %d rules were evaluated", evaluated)
	}
}

// sparseDeployments are a Deployment with all fields that the rules read, one
// that has only what each must have, and all between that lack one of them.
func sparseDeployments(t *testing.T) []map[string]any {
	t.Helper()
	read := func(text string) map[string]any {
		var out map[string]any
		if err := yaml.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	full := `{apiVersion: apps/v1, kind: c, metadata: {name: a, namespace: b, generation: 2, labels: {a: b, team: a}, annotations: {a/b: a}, finalizers: [a], ownerReferences: [{kind: a, name: b}]},
		spec: {replicas: 3, paused: true, selector: null, template: {metadata: null, spec: {nodeName: a, securityContext: {runAsUser: 0}, containers: [{name: a, image: a, args: [a, b]}, {name: b, image: b}]}}},
		status: {conditions: [{type: a, status: "True", lastTransitionTime: x}]}}`
	least := `{apiVersion: apps/v1, kind: c, metadata: {name: a, namespace: b, generation: 2},
		spec: {selector: null, template: {metadata: null, spec: {containers: [{name: a, image: a}]}}}, status: {}}`
	objects := []map[string]any{read(full), read(least)}
	for _, path := range []string{"metadata.labels", "metadata.labels.a", "metadata.labels.team", "metadata.annotations", "metadata.annotations.a/b", "metadata.finalizers", "metadata.ownerReferences",
		"spec.replicas", "spec.paused", "spec.template.spec.nodeName", "spec.template.spec.securityContext", "spec.template.spec.securityContext.runAsUser", "status.conditions"} {
		object := read(full)
		keys := strings.Split(path, ".")
		at := object
		for _, key := range keys[:len(keys)-1] {
			at = at[key].(map[string]any)
		}
		if _, ok := at[keys[len(keys)-1]]; !ok {
			t.Fatalf("there is no %s", path)
		}
		delete(at, keys[len(keys)-1])
		objects = append(objects, object)
	}
	return objects
}

const backups = "resource: {group: example.io, version: v1, resource: backups}\n"

const backupCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.io}
spec:
  group: example.io
  names: {kind: Backup, plural: backups}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [target]
              properties:
                target: {type: object, required: [name], properties: {name: {type: string}}}
                keep: {type: integer, default: 3}
                ratio: {type: number}
                size: {x-kubernetes-int-or-string: true}
            status:
              type: object
              properties: {phase: {type: string}}
`
