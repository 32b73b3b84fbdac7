package importer

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/rules"
)

// base is a policy of which everything can be carried over.
const base = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules:
      - apiGroups: [apps]
        apiVersions: [v1]
        operations: [CREATE, UPDATE]
        resources: [deployments]
  matchConditions:
    - {name: c, expression: "true"}
  variables:
    - {name: v, expression: "object.spec.replicas"}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: b}
spec:
  policyName: p
`

const kyverno = `apiVersion: policies.kyverno.io/v1alpha1
kind: MutatingPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{}"}
`

// TestLost has one input for each thing that cannot be carried over. A § in
// the input marks where it must be reported.
func TestLost(t *testing.T) {
	const (
		condition = `{name: c, expression: "true"}`
		variable  = `{name: v, expression: "object.spec.replicas"}`
		apply     = `"Object{}"`
		groups    = `apiGroups: [apps]`
		versions  = `apiVersions: [v1]`
		ops       = `operations: [CREATE, UPDATE]`
		resources = `resources: [deployments]`
		bound     = "  policyName: p\n"
	)
	for _, tc := range []struct {
		name     string
		in       string // base if empty
		old, new string // replaced in it
		want     string // the beginning of the message
		rules    int    // that come of the rest
	}{
		{name: "request", old: condition, new: `{name: c, expression: "object.spec.x > 1 && §request.operation == 'CREATE'"}`, want: "request: there is none, and no operation"},
		{name: "request.namespace", old: condition, new: `{name: c, expression: "§request.namespace == 'a'"}`, want: "request: there is none when an object is only there; object.metadata.namespace says the same"},
		{name: "request.userInfo in a list", old: variable, new: `{name: v, expression: "object.l.exists(g, g in §request.userInfo.groups)"}`, want: "request: there is none, and no user"},
		{name: "oldObject", old: condition, new: `{name: c, expression: "§oldObject == null"}`, want: "oldObject: it is the object before an update"},
		{name: "oldObject within has", old: condition, new: `{name: c, expression: "!has(§oldObject.spec)"}`, want: "oldObject:"},
		{name: "authorizer", old: condition, new: `{name: c, expression: "§authorizer.group('').resource('pods').check('get').allowed()"}`, want: "authorizer: it asks about the user"},
		{name: "params in a mutation", old: "{expression: " + apply + "}", new: "\n        expression: |-\n          Object{\n            spec: §params.spec}", want: "params: a rule has no parameters"},
		{name: "paramKind", old: "spec:\n  match", new: "spec:\n  paramKind: §{apiVersion: v1, kind: ConfigMap}\n  match", want: "paramKind: a rule has no parameters"},
		{name: "paramRef", old: bound, new: bound + "  paramRef: §{name: x}\n", want: "paramRef: a rule has no parameters"},
		{name: "generateName", old: condition, new: `{name: c, expression: "has(§object.metadata.generateName)"}`, want: "metadata.generateName: it matters before an object has its name"},
		{name: "generateName as an optional", old: condition, new: `{name: c, expression: "§object.?metadata.?generateName.orValue('') == ''"}`, want: "metadata.generateName:"},
		{name: "a timestamp of the namespace", old: condition, new: `{name: c, expression: "§namespaceObject.metadata.creationTimestamp > timestamp('2026-01-01T00:00:00Z')"}`, want: "namespaceObject.metadata.creationTimestamp is a timestamp in admission"},
		{name: "a library", old: condition, new: `{name: c, expression: "§math.greatest(1, 2) == 2"}`, want: "there is no math in a rule"},
		{name: "a function", old: condition, new: `{name: c, expression: "§sha256(object.metadata.name) == ''"}`, want: "the function sha256 is not part of Kubernetes' CEL"},
		{name: "a method", old: condition, new: `{name: c, expression: "object.metadata.name.§shout() == ''"}`, want: "the function shout is not part of Kubernetes' CEL"},
		{name: "syntax", old: condition, new: `{name: c, expression: "object.spec == §"}`, want: "Syntax error"},
		{name: "type error", old: condition, new: `{name: c, expression: "1 §+ 'a' == ''"}`, want: "found no matching overload"},
		{name: "a condition that is no bool", old: condition, new: `{name: c, expression: §"1 + 1"}`, want: "a match condition must be bool, but the expression gives int"},
		{name: "a variable in a condition", old: condition, new: `{name: c, expression: "§variables.v == 1"}`, want: "there is no variable v here"},
		{name: "a variable before it is there", old: variable, new: `{name: v, expression: "§variables.w"}` + "\n    - {name: w, expression: '1'}", want: "there is no variable w here"},
		{name: "the name of a variable", old: variable, new: `{name: §a-b, expression: "1"}`, want: `"a-b" is not the name of a variable`},
		{name: "a variable twice", old: variable, new: variable + "\n    - {name: §v, expression: '1'}", want: `the variable "v" is given twice`},
		{name: "loops three deep", old: apply, new: `"§Object{spec: object.a.map(x, x.map(y, y.map(z, z)))}"`, want: "comprehensions are nested 3 deep"},
		{name: "a member of JSONPatch", old: "ApplyConfiguration\n      applyConfiguration: {expression: " + apply + "}", new: "JSONPatch\n      jsonPatch: {expression: '[JSONPatch{op: \"add\", pth§: \"/a\"}]'}", want: "undefined field 'pth'"},
		{name: "wildcard group", old: groups, new: `apiGroups: [§"*"]`, want: `apiGroups "*": a rule names each resource`},
		{name: "wildcard version", old: versions, new: `apiVersions: [v1, §"*"]`, want: `apiVersions "*": a rule names each resource`, rules: 1},
		{name: "wildcard resource", old: resources, new: `resources: [§"*"]`, want: `resources "*": a rule names each resource`},
		{name: "subresource", old: resources, new: `resources: [deployments, §deployments/scale]`, want: `"deployments/scale": requests to a subresource cannot be carried over`, rules: 1},
		{name: "only a subresource", old: resources, new: `resources: [§pods/ephemeralcontainers]`, want: `"pods/ephemeralcontainers": requests to a subresource`},
		{name: "all subresources", old: resources, new: `resources: [§deployments/*]`, want: `"deployments/*": requests to subresources cannot be carried over; deployments themselves are`, rules: 1},
		{name: "CONNECT", old: ops, new: `operations: [§CONNECT]`, want: "operation CONNECT: a rule acts on objects that exist"},
		{name: "DELETE beside UPDATE", old: ops, new: `operations: [UPDATE, §DELETE]`, want: "operation DELETE: a rule acts on objects that exist", rules: 1},
		{name: "unknown operation", old: ops, new: `operations: [§PATCH]`, want: `the operation "PATCH" is not known`},
		{name: "no operations", old: "      - " + groups + "\n        " + versions + "\n        " + ops, new: "      - §" + groups + "\n        " + versions, want: "spec.matchConstraints.resourceRules: apiGroups, apiVersions, resources and operations are needed"},
		{name: "no matchConstraints", old: "    resourceRules:\n      - " + groups + "\n        " + versions + "\n        " + ops + "\n        " + resources, new: "", in: "§" + base, want: "spec.matchConstraints is missing"},
		{name: "no mutations", old: "  mutations:\n    - patchType: ApplyConfiguration\n      applyConfiguration: {expression: " + apply + "}\n", new: "", in: "§" + base, want: "spec.mutations is missing"},
		{name: "unknown field", old: "  variables:", new: "  §validations: []\n  variables:", want: `unknown field "validations" in spec`},
		{name: "unknown field of a rule", old: groups, new: groups + "\n        §wherever: x", want: `unknown field "wherever" in spec.matchConstraints.resourceRules`},
		{name: "unknown field of a selector", old: "    resourceRules:", new: "    objectSelector: {§matchLabel: {a: b}}\n    resourceRules:", want: `unknown field "matchLabel" in spec.matchConstraints.objectSelector`},
		{name: "bad selector", old: "    resourceRules:", new: "    objectSelector: §{matchExpressions: [{key: a, operator: Like, values: [x]}]}\n    resourceRules:", want: `spec.matchConstraints.objectSelector: "Like" is not a valid label selector operator`},
		{name: "a label that is a bool", old: "    resourceRules:", new: "    objectSelector: {matchLabels: {a: §yes}}\n    resourceRules:", want: `spec.matchConstraints.objectSelector.matchLabels.a must be a string`},
		{name: "matchPolicy", old: "    resourceRules:", new: "    matchPolicy: §Fuzzy\n    resourceRules:", want: `matchPolicy is Equivalent or Exact, not "Fuzzy"`},
		{name: "scope", old: groups, new: groups + "\n        scope: §Galaxy", want: `scope is Namespaced, Cluster or *, not "Galaxy"`},
		{name: "patch type", old: "- patchType: ApplyConfiguration", new: "- §patchType: JSONPatch", want: "a mutation is of patchType ApplyConfiguration with"},
		{name: "a variable that a mutation changes", old: apply + "}", new: `"Object{spec: Object.spec{replicas: 3}}"}` + "\n    - patchType: JSONPatch\n      jsonPatch: {expression: \"[JSONPatch{op: 'add', path: '/x', value: §variables.v}]\"}",
			want: "variables.v reads object.spec.replicas, which a mutation before this one changes"},
		{name: "no binding", old: bound, new: "  policyName: other\n", in: "§" + base, want: "no MutatingAdmissionPolicyBinding among the input names this policy"},
		{name: "no policy", old: bound, new: "  policyName: §other\n", want: `the MutatingAdmissionPolicy "other" is not among the input`},
		{name: "no policyName", old: "---\napi", new: "---\n§api", in: strings.Replace(base, bound, "  matchResources: {}\n", 1), want: "spec.policyName is missing"},
		{name: "no name", old: "metadata: {name: p}", new: "metadata: {}", in: "§" + base, want: "metadata.name is missing"},
		{name: "two of one name", old: "---\n", new: "---\n" + strings.Replace(strings.Split(base, "---")[0], "name: p", "name: §p", 1) + "---\n", want: "there is another MutatingAdmissionPolicy of this name at policy.yaml:3:18", rules: 1},
		{name: "unknown version", old: "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\n", new: "apiVersion: §admissionregistration.k8s.io/v3\nkind: MutatingAdmissionPolicy\n", want: "the version v3 is not known"},
		{name: "another kind", in: "§apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: x}\n", want: "ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1 cannot be imported"},
		{name: "Kyverno's older kind", in: "§apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: x}\n", want: "ClusterPolicy of kyverno.io/v1 cannot be imported"},
		{name: "Kyverno's namespaced kind", in: "§apiVersion: policies.kyverno.io/v1\nkind: NamespacedMutatingPolicy\nmetadata: {name: x}\n", want: "NamespacedMutatingPolicy of policies.kyverno.io/v1 cannot be imported"},

		{name: "Kyverno: resource library", in: kyverno, old: `"Object{}"`, new: `"Object{spec: §resource.Get('v1', 'configmaps', 'a', 'b').data}"`, want: "there is no resource in a rule (Kyverno's own libraries"},
		{name: "Kyverno: http library", in: kyverno, old: `"Object{}"`, new: `"Object{spec: §http.Get('https://example.com')}"`, want: "there is no http in a rule (Kyverno's"},
		{name: "Kyverno: image function", in: kyverno, old: `"Object{}"`, new: `"Object{spec: §image(object.x).tag()}"`, want: "the function image is not part of Kubernetes' CEL (Kyverno's"},
		{name: "Kyverno: paramKind", in: kyverno, old: "  mutations", new: "  §paramKind: {apiVersion: v1, kind: ConfigMap}\n  mutations", want: `unknown field "paramKind" in spec`},
		{name: "Kyverno: autogen", in: kyverno, old: "  mutations", new: "  autogen: {podControllers: {controllers: §[deployments]}}\n  mutations", want: "autogen: what Kyverno generates for the controllers of pods is not carried over", rules: 1},
		{name: "Kyverno: autogen by default", in: kyverno, old: "resourceRules:\n      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]", new: "§resourceRules:\n      - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]", want: "autogen: for a policy on pods Kyverno makes rules for their controllers too", rules: 1},
		{name: "Kyverno: targets", in: kyverno, old: "  mutations", new: "  targetMatchConstraints: §{resourceRules: []}\n  mutations", want: "targetMatchConstraints: a rule changes the object that it matches"},
		{name: "Kyverno: JSON mode", in: kyverno, old: "  mutations", new: "  evaluation: {mode: §JSON}\n  mutations", want: "evaluation.mode JSON: a rule acts on Kubernetes objects"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := tc.in
			if in == "" {
				in = base
			}
			if tc.old != "" && !strings.Contains(in, tc.old) {
				t.Fatalf("the input does not hold %q", tc.old)
			}
			in = strings.Replace(in, tc.old, tc.new, 1)
			result, at := importMarked(in)
			var lost []Finding
			for _, f := range result.Findings {
				if f.Severity == Lost {
					lost = append(lost, f)
				}
			}
			if len(result.Unreadable) > 0 || len(lost) == 0 || !result.Lost() {
				t.Fatalf("nothing is lost: %v %v", result.Unreadable, result.Findings)
			}
			i := slices.IndexFunc(lost, func(f Finding) bool { return strings.HasPrefix(f.Msg, tc.want) })
			if i < 0 {
				t.Fatalf("no message %q… among\n%v", tc.want, lost)
			}
			if got := lost[i].Pos.String(); at != got {
				t.Errorf("reported at %s, want %s: %s", got, at, lost[i].Msg)
			}
			if len(result.Rules) != tc.rules {
				t.Errorf("%d rules, want %d:\n%s", len(result.Rules), tc.rules, result.YAML())
			}
		})
	}
}

// importMarked imports a text without its mark, and says where the mark was.
func importMarked(in string) (result *Result, at string) {
	if before, _, found := strings.Cut(in, "§"); found {
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		at = "policy.yaml:" + strconv.Itoa(line) + ":" + strconv.Itoa(column)
	}
	in = strings.Replace(in, "§", "", 1)
	return Import([]input.File{{Name: "policy.yaml", Data: []byte(in)}}, Options{}), at
}

func TestTheBasesLoseNothing(t *testing.T) {
	for _, in := range []string{base, kyverno} {
		result, _ := importMarked(in)
		if result.Lost() || len(result.Rules) != 1 {
			t.Errorf("%v, %d rules", result.Findings, len(result.Rules))
		}
	}
}

// TestWhatARuleCanSay has what looks like admission but means the same to a rule.
func TestWhatARuleCanSay(t *testing.T) {
	for name, expression := range map[string]string{
		"the object is not null":        `object != null && object.metadata.name != ''`,
		"a bound name":                  `object.l.all(request, request > 0) || object.l.exists(params, params == 1)`,
		"a field":                       `object.request.params == 1`,
		"a string":                      `object.x == 'request.operation'`,
		"a map of two-variable loops":   `object.m.transformMap(oldObject, v, v).size() > 0`,
		"an optional that binds a name": `object.?a.optMap(params, params + 1).orValue(2) == 2`,
		"a function with a namespace":   `sets.contains(object.a, [1]) && optional.of(1).hasValue()`,
		"a type":                        `type(object.x) == int || type(object.x) == google.protobuf.Timestamp`,
		"the labels of the namespace":   `'a' in namespaceObject.metadata.labels`,
		"libraries of Kubernetes":       `quantity('1Gi').isGreaterThan(quantity('1Mi')) && url('https://a').getHost() == 'a' && ip('::1').family() == 6`,
	} {
		t.Run(name, func(t *testing.T) {
			result, _ := importMarked(strings.Replace(base, `"true"`, `"`+expression+`"`, 1))
			if result.Lost() || len(result.Rules) != 1 {
				t.Errorf("%v", result.Findings)
			}
		})
	}
}

func TestConditionsKeepTheirOrderAndTheirComments(t *testing.T) {
	result, _ := importMarked(strings.Replace(base, `{name: c, expression: "true"}`,
		"{name: guard, expression: \"has(object.spec.a) // there\"}\n    - {name: use, expression: \"object.spec.a == 'http://x'\"}", 1))
	if len(result.Rules) != 1 {
		t.Fatal(result.Findings)
	}
	want := "  condition: |-\n    // guard\n    (has(object.spec.a) // there\n    )\n    // use\n    && (object.spec.a == 'http://x'\n    )\n"
	if !strings.Contains(result.YAML(), want) {
		t.Errorf("got\n%swant\n%s", result.YAML(), want)
	}
}

func TestUnboundPoliciesCanBeImported(t *testing.T) {
	only, _, _ := strings.Cut(base, "---")
	files := []input.File{{Name: "policy.yaml", Data: []byte(only)}}
	if r := Import(files, Options{}); len(r.Rules) != 0 || !r.Lost() {
		t.Errorf("without a binding: %d rules, %v", len(r.Rules), r.Findings)
	}
	if r := Import(files, Options{Unbound: true}); len(r.Rules) != 1 || r.Lost() {
		t.Errorf("unbound: %d rules, %v", len(r.Rules), r.Findings)
	}
}

// TestFilesMayComeInAnyOrder has the binding before the policy, and other
// objects in a folder, which are passed over without a word.
func TestFilesMayComeInAnyOrder(t *testing.T) {
	p, b, _ := strings.Cut(base, "---\n")
	r := Import([]input.File{
		{Name: "binding.yaml", Data: []byte(b), Listed: true},
		{Name: "other.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\n"), Listed: true},
		{Name: "broken.yaml", Data: []byte("a: [\n"), Listed: true},
		{Name: "policy.yaml", Data: []byte(p), Listed: true},
	}, Options{})
	if len(r.Rules) != 1 || len(r.Findings) != 0 || len(r.Unreadable) != 1 {
		t.Errorf("%d rules, %v, %v", len(r.Rules), r.Findings, r.Unreadable)
	}
	if want := "at policy.yaml:1\n# with the binding b at binding.yaml:1\n"; len(r.Rules) == 1 && !strings.Contains(r.Rules[0].Text, want) {
		t.Errorf("no %q in\n%s", want, r.Rules[0].Text)
	}
}

// FuzzImport holds that no input makes it panic, and that what it makes of any
// policy is a rule file that parses.
func FuzzImport(f *testing.F) {
	f.Add(base)
	f.Add(kyverno)
	f.Add(strings.Replace(base, "operations: [CREATE, UPDATE]", "operations: [[], {}]", 1))
	f.Add(strings.Replace(base, "resourceRules:", "namespaceSelector: {matchLabels: {y: {}, [a]: b, <<: {c: d}}}", 1))
	f.Fuzz(func(t *testing.T, in string) {
		r := Import([]input.File{{Name: "f", Data: []byte(in)}}, Options{Unbound: true})
		_, problems := rules.Load(rules.Source{Name: "rules.yaml", Data: []byte(r.YAML())})
		for _, p := range problems {
			if strings.Contains(p.Msg, "YAML") || strings.Contains(p.Msg, "must be a string") || strings.Contains(p.Msg, "is not a rule name") {
				t.Fatalf("%s\n%s", p.Detail(), r.YAML())
			}
		}
	})
}
