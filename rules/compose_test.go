package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What one rule makes of an object: each row is the object afterwards, or
// "same", for which nothing may be sent.
func TestPatches(t *testing.T) {
	for _, tc := range []struct {
		name, spec, object string
		want               string
	}{
		{"PAT-02 merge into null", `patch: {merge: {metadata: {annotations: {team: x}}}}`, `{metadata: {annotations: null}}`, `{metadata: {annotations: {team: x}}}`},
		{"PAT-03 escaped slash", `patch: {json: [{op: add, path: /metadata/annotations/example.io~1team, value: x}]}`, `{metadata: {annotations: {keep: "1"}}}`, `{metadata: {annotations: {keep: "1", example.io/team: x}}}`},
		{"PAT-04 escapes are decoded in the right order", `patch: {json: [{op: add, path: /metadata/annotations/a~01b, value: x}, {op: add, path: /metadata/annotations/x~1y~0z, value: x}]}`,
			`{metadata: {annotations: {}}}`, `{metadata: {annotations: {a~1b: x, x/y~z: x}}}`},
		{"PAT-04 escapeKey encodes in the right order", `patch: {json: [{op: add, path: "/metadata/annotations/${jsonpatch.escapeKey('x/y~z')}", value: x}]}`, `{metadata: {annotations: {}}}`, `{metadata: {annotations: {x/y~z: x}}}`},
		{"PAT-05 replace acts like add", `patch: {json: [{op: replace, path: /metadata/x, value: v}]}`, `{metadata: {}}`, `{metadata: {x: v}}`},
		{"PAT-07 a test for absence", `patch: {json: [{op: test, path: /metadata/x, value: null}, {op: add, path: /metadata/x, value: 1}]}`, `{metadata: {}}`, `{metadata: {x: 1}}`},
		{"PAT-11 a list in a merge patch is replaced whole", `patch: {merge: {spec: {containers: [{name: a, resources: {}}]}}}`, `{spec: {containers: [{name: a, image: "1"}, {name: b, image: "2"}]}}`, `{spec: {containers: [{name: a, resources: {}}]}}`},
		{"PAT-11 one element by index leaves the others", `patch: {json: [{op: test, path: /spec/containers/0/name, value: a}, {op: replace, path: /spec/containers/0/image, value: "3"}]}`,
			`{spec: {containers: [{name: a, image: "1"}, {name: b, image: "2"}]}}`, `{spec: {containers: [{name: a, image: "3"}, {name: b, image: "2"}]}}`},
		{"PAT-13 null and an empty value delete", "patch:\n\t  merge:\n\t    metadata:\n\t      labels:\n\t        a: null\n\t        b:", `{metadata: {labels: {a: "1", b: "2", c: "3"}}}`, `{metadata: {labels: {c: "3"}}}`},
		{"PAT-13 nothing to delete", `patch: {merge: {metadata: {labels: {a: null, b: null}}}}`, `{metadata: {labels: {c: "3"}}}`, "same"},
		{"a computed null deletes", `patch: {merge: {spec: {a: "${null}"}}}`, `{spec: {a: 1, b: 2}}`, `{spec: {b: 2}}`},
		{"NUM-10 a whole double is an integer", `patch: {merge: {spec: {replicas: "${double(object.metadata.annotations['count'])}"}}}`, `{metadata: {annotations: {count: "3"}}, spec: {}}`, `{metadata: {annotations: {count: "3"}}, spec: {replicas: 3}}`},
		{"NUM-10 2.5 stays", `patch: {merge: {spec: {ratio: "${double('2.5')}"}}}`, `{spec: {}}`, `{spec: {ratio: 2.5}}`},
		{"YAML-05 numbers of YAML 1.1", `patch: {merge: {spec: {a: 0644, b: 0o644, c: 1_000, d: 0x1F}}}`, `{spec: {}}`, `{spec: {a: 420, b: 420, c: 1000, d: 31}}`},
		{"SUB-05 only the desired count is compared", "condition: object.spec.replicas != int(object.metadata.annotations['want'])\n\tpatch: {subresource: scale, merge: {spec: {replicas: \"${int(object.metadata.annotations['want'])}\"}}}",
			`{metadata: {annotations: {want: "3"}}, spec: {replicas: 3}, status: {replicas: 4}}`, "same"},
		{"an absent optional drops its key", `patch: {merge: {spec: {a: "${object.spec.?x}", b: 1}}}`, `{spec: {}}`, `{spec: {b: 1}}`},
		{"an absent optional drops its element", `patch: {merge: {spec: {l: ["${object.spec.?x}", "${object.spec.?z}"]}}}`, `{spec: {z: 2}}`, `{spec: {l: [2], z: 2}}`},
		{"an absent optional drops the key's name", `patch: {merge: {spec: {"${object.spec.?x}": 1, b: 1}}}`, `{spec: {}}`, `{spec: {b: 1}}`},
		{"an absent optional drops an operation", `patch: {json: ["${object.?x}", {op: add, path: /spec/a, value: 1}]}`, `{spec: {}}`, `{spec: {a: 1}}`},
		{"an absent optional is no patch at all", `patch: {merge: "${object.?x}"}`, `{spec: {}}`, "same"},
		{"an absent optional is no JSON patch at all", `patch: {json: "${object.?x}"}`, `{spec: {}}`, "same"},
		{"types of whole templates", `patch: {merge: {spec: "${{'i': 1, 'd': 0.5, 'b': true, 's': 'x', 'l': [1, {'a': null}], 'm': {}}}"}}`, `{}`, `{spec: {i: 1, d: 0.5, b: true, s: x, l: [1, {}], m: {}}}`},
		{"white space around a template", `patch: {merge: {spec: {a: "  ${1}  "}}}`, `{}`, `{spec: {a: 1}}`},
		{"text around a template", `patch: {merge: {spec: {a: "x-${1}-${true}-${0.5}-${'s'}"}}}`, `{}`, `{spec: {a: x-1-true-0.5-s}}`},
		{"an escaped template", `patch: {merge: {spec: {a: "$${x} $y $", "$${k}": 1}}}`, `{}`, `{spec: {a: "${x} $y $", "${k}": 1}}`},
		{"a template in a key", `patch: {merge: {spec: {"a-${object.metadata.name}": 1}}}`, `{metadata: {name: x}, spec: {}}`, `{metadata: {name: x}, spec: {a-x: 1}}`},
		{"braces and quotes in the CEL", `patch: {merge: {spec: {a: "${{'}': '{'}['}'] + \"}\" + r'\\}' + '''}'''}"}}}`, `{}`, `{spec: {a: "{}\\}}"}}`},
		{"timestamps and durations are text", `patch: {merge: {spec: {a: "${timestamp('2026-01-01T00:00:00Z')}", b: "${duration('90s')}"}}}`, `{}`, `{spec: {a: "2026-01-01T00:00:00Z", b: 90s}}`},
		{"a whole JSON patch is computed", `patch: {json: "${object.spec.l.map(x, {'op': 'replace', 'path': '/spec/' + x, 'value': 3})}"}`, `{spec: {l: [a, b]}}`, `{spec: {l: [a, b], a: 3, b: 3}}`},
		{"a computed JSON patch without operations", `patch: {json: "${[]}"}`, `{spec: {}}`, "same"},
		{"operations that cancel out", `patch: {json: [{op: add, path: /spec/x, value: 1}, {op: remove, path: /spec/x}]}`, `{spec: {}}`, "same"},
		{"move and copy", `patch: {json: [{op: copy, from: /spec/a, path: /spec/c}, {op: move, from: /spec/c, path: /spec/b}]}`, `{spec: {a: 1}}`, `{spec: {a: 1, b: 1}}`},
		{"an empty merge", `patch: {merge: {}}`, `{spec: {}}`, "same"},
		{"empty annotations", `patch: {merge: {metadata: {annotations: {}, labels: {}}}}`, `{metadata: {name: x}}`, "same"},
		{"values are compared, not types of numbers", `patch: {merge: {spec: {a: 1.0}}}`, `{spec: {a: 1}}`, "same"},
		{"the same list", `patch: {merge: {spec: {l: [1, {a: b}]}}}`, `{spec: {l: [1, {a: b}]}}`, "same"},
		{"status", `patch: {subresource: status, merge: {status: {phase: New}}}`, `{spec: {}}`, `{spec: {}, status: {phase: New}}`},
		{"status by JSON patch", `patch: {subresource: status, json: [{op: add, path: /status/phase, value: New}]}`, `{status: {}}`, `{status: {phase: New}}`},
		{"scale", `patch: {subresource: scale, merge: {spec: {replicas: 5}}}`, `{spec: {replicas: 3}}`, `{spec: {replicas: 5}}`},
		{"scale that is right", `patch: {subresource: scale, merge: {spec: {replicas: 3}}}`, `{spec: {replicas: 3}}`, "same"},
		{"scale to zero", `patch: {subresource: scale, merge: {spec: {replicas: 0}}}`, `{spec: {replicas: 3}}`, `{spec: {replicas: 0}}`},
		{"scale of an absent count", `patch: {subresource: scale, merge: {spec: {replicas: 1}}}`, `{spec: {}}`, `{spec: {replicas: 1}}`},
		{"scale by JSON patch", `patch: {subresource: scale, json: [{op: replace, path: /spec/replicas, value: 5}]}`, `{spec: {replicas: 3}}`, `{spec: {replicas: 5}}`},
		{"scale with a whole double", `patch: {subresource: scale, merge: {spec: {replicas: "${5.0}"}}}`, `{spec: {replicas: 3}}`, `{spec: {replicas: 5}}`},
		{"patches see what the ones before changed", "patches:\n\t- merge: {spec: {a: 1}}\n\t- merge: {spec: {b: \"${object.spec.a + 1}\"}}\n\t- json: [{op: copy, from: /spec/b, path: /spec/c}]", `{spec: {}}`, `{spec: {a: 1, b: 2, c: 2}}`},
		{"PAT-18 a patch that fails takes those before it along", "patches:\n\t- merge: {spec: {a: 1}}\n\t- json: [{op: add, path: /spec/x/y, value: 1}]", `{spec: {}}`, "same"},
		{"PAT-18 an operation that fails takes those before it along", `patch: {json: [{op: add, path: /spec/a, value: 1}, {op: add, path: /spec/x/y, value: 1}]}`, `{spec: {}}`, "same"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, rule("r", tc.spec)), tc.object)
			want := tc.want
			if want == "same" {
				want = tc.object
				if len(res.Requests) != 0 {
					t.Errorf("sends %v", sent(t, res))
				}
			}
			if diff := cmp.Diff(object(t, want), res.Object); diff != "" {
				t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
			}
		})
	}
}

// The places where only strings may stand, and results that are none.
func TestLabelsAnnotationsAndDataAreStrings(t *testing.T) {
	for _, tc := range []struct{ name, spec, object, want string }{
		{"an int", `patch: {merge: {metadata: {labels: {a: "${object.x}"}}}}`, `{x: 3}`, "metadata.labels.a must be a string, but the expression gives a number: use string()"},
		{"a bool", `patch: {merge: {metadata: {annotations: {a: "${object.x}"}}}}`, `{x: true}`, "metadata.annotations.a must be a string, but the expression gives a bool: use string()"},
		{"null", `patch: {merge: {metadata: {labels: {a: "${object.x}"}}}}`, `{x: null}`, "metadata.labels.a must be a string, but the expression gives null: use optional.none() to leave it out"},
		{"a list", `patch: {merge: {metadata: {labels: {a: "${object.x}"}}}}`, `{x: [1]}`, "metadata.labels.a must be a string, but the expression gives a list: use string()"},
		{"ConfigMap data", `patch: {merge: {data: {a: "${object.x}"}}}`, `{x: 3}`, "data.a must be a string, but the expression gives a number: use string()"},
		{"a computed key", `patch: {merge: {data: {"${object.k}": "${object.x}"}}}`, `{k: a, x: 3}`, "data.* must be a string, but the expression gives a number: use string()"},
		{"a map of labels", `patch: {merge: {metadata: {labels: "${object.x}"}}}`, `{x: {a: 3}}`, "metadata.labels.a must be a string, but the expression gives a number: use string()"},
		{"a whole merge patch", `patch: {merge: "${object.x}"}`, `{x: {data: {a: 3}}}`, "data.a must be a string, but the expression gives a number: use string()"},
		{"a JSON patch's value", `patch: {json: [{op: add, path: /data/a, value: "${object.x}"}]}`, `{x: 3, data: {}}`, "value must be a string, but the expression gives a number: use string()"},
		{"a whole JSON patch", `patch: {json: "${object.x}"}`, `{x: [{op: add, path: /data/a, value: 3}], data: {}}`, "data.a must be a string, but the expression gives a number: use string()"},
		{"null as a JSON patch's value", `patch: {json: "${object.x}"}`, `{x: [{op: add, path: /data/a, value: null}], data: {}}`, "data.a must be a string, but the expression gives null: use optional.none() to leave it out"},
		{"the labels of a pod template", `patch: {merge: {spec: {template: {metadata: {labels: {a: "${object.x}"}}}}}}`, `{x: 3}`, "spec.template.metadata.labels.a must be a string, but the expression gives a number: use string()"},
		{"a selector's labels", `patch: {merge: {spec: {selector: {matchLabels: {a: "${object.x}"}}}}}`, `{x: 3}`, "spec.selector.matchLabels.a must be a string, but the expression gives a number: use string()"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, configMapRule("r", tc.spec)), tc.object)
			if diff := cmp.Diff([]string{"r Error: evaluate the patch: " + tc.want}, outcomes(res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, spec := range map[string]string{
		"string()":                   `patch: {merge: {metadata: {labels: {a: "${string(object.x)}"}}, data: {b: "n-${object.x}"}}}`,
		"data of other kinds":        `patch: {merge: {spec: {data: {a: 3}}}}`,
		"a null of a computed map":   `patch: {merge: {metadata: {labels: "${{'a': 'x', 'gone': null}}"}}}`,
		"a test is not a write":      `patch: {json: [{op: test, path: /data/none, value: null}, {op: add, path: /data/a, value: x}]}`,
		"a label that is called one": `patch: {merge: {metadata: {labels: {labels: x}}}}`,
	} {
		res := evaluate(t, load(t, configMapRule("r", spec)), `{x: 3, data: {}, metadata: {labels: {gone: "1"}}}`)
		if len(res.Requests) != 1 {
			t.Errorf("%s: %v", name, outcomes(res))
		}
	}
}

func TestReplicasElsewhere(t *testing.T) {
	set := load(t, rule("r", `patch: {subresource: scale, merge: {spec: {replicas: 5}}}`))
	elsewhere := func(in *Input) { in.ReplicasPath = []string{"spec", "pool", "size"} }
	for text, want := range map[string]string{
		`{spec: {pool: {size: 3, kind: x}}}`: `{spec: {pool: {size: 5, kind: x}}}`,
		`{spec: {replicas: 3}}`:              `{spec: {replicas: 3, pool: {size: 5}}}`,
	} {
		res := evaluate(t, set, text, elsewhere)
		if diff := cmp.Diff(object(t, want), res.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if diff := cmp.Diff([]string{`/scale merge by r: {"spec":{"replicas":5}}`}, sent(t, res)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// What several rules change goes out as one request per subresource.
func TestComposition(t *testing.T) {
	label := func(name, key, value string) string {
		return rule(name, fmt.Sprintf("patch: {merge: {metadata: {labels: {%s: %q}}}}", key, value))
	}
	for _, tc := range []struct {
		name   string
		rules  []string
		object string
		want   []string
	}{
		{"merge patches become one merge patch", []string{label("a", "x", "1"), label("b", "z", "2")}, `{metadata: {}}`,
			[]string{`/ merge by a b: {"metadata":{"labels":{"x":"1","z":"2"}}}`}},
		{"with a JSON patch among them, one JSON patch", []string{label("a", "x", "1"), rule("b", "patch: {json: [{op: add, path: /metadata/labels/z, value: \"2\"}]}")}, `{metadata: {}}`,
			[]string{`/ json by a b: [{"op":"add","path":"/metadata/labels","value":{"x":"1"}},{"op":"add","path":"/metadata/labels/z","value":"2"}]`}},
		{"a JSON patch alone stays as it was written", []string{rule("a", "patch: {json: [{op: test, path: /spec/a, value: 1}, {op: replace, path: /spec/a, value: 2}]}\n\tcondition: object.spec.a == 1")}, `{spec: {a: 1}}`,
			[]string{`/ json by a: [{"op":"test","path":"/spec/a","value":1},{"op":"replace","path":"/spec/a","value":2}]`}},
		{"rules that change nothing are not named", []string{label("a", "x", "1"), label("b", "z", "2"), rule("c", "condition: \"false\"\n\t"+addsLabel)}, `{metadata: {labels: {x: "1"}}}`,
			[]string{`/ merge by b: {"metadata":{"labels":{"z":"2"}}}`}},
		{"the object, then status, then scale", []string{
			rule("a", "patch: {subresource: scale, merge: {spec: {replicas: 5}}}"), rule("b", "patch: {subresource: status, merge: {status: {phase: x}}}"), label("c", "x", "1")},
			`{spec: {replicas: 1}}`,
			[]string{`/ merge by c: {"metadata":{"labels":{"x":"1"}}}`, `/status merge by b: {"status":{"phase":"x"}}`, `/scale merge by a: {"spec":{"replicas":5}}`}},
		{"one rule, three requests", []string{rule("a", "patches:\n\t- {subresource: scale, merge: {spec: {replicas: 5}}}\n\t- {subresource: status, json: [{op: add, path: /status, value: {phase: x}}]}\n\t- merge: {spec: {a: 1}}")}, `{spec: {replicas: 1}}`,
			[]string{`/ merge by a: {"spec":{"a":1}}`, `/status json by a: [{"op":"add","path":"/status","value":{"phase":"x"}}]`, `/scale merge by a: {"spec":{"replicas":5}}`}},
		{"a later rule sees what an earlier one changed", []string{label("a", "x", "1"), rule("b", "condition: object.metadata.?labels.?x.orValue('') == '1'\n\tpatch: {merge: {spec: {seen: true}}}")}, `{metadata: {}, spec: {}}`,
			[]string{`/ merge by a b: {"metadata":{"labels":{"x":"1"}},"spec":{"seen":true}}`}},
		{"its match block too", []string{label("a", "x", "1"), rule("b", "match: {labelSelector: {matchLabels: {x: \"1\"}}}\n\tpatch: {merge: {spec: {seen: true}}}")}, `{spec: {}}`,
			[]string{`/ merge by a b: {"metadata":{"labels":{"x":"1"}},"spec":{"seen":true}}`}},
		{"an earlier rule does not see what a later one changes", []string{rule("a", "condition: has(object.spec.b)\n\tpatch: {merge: {spec: {a: 1}}}"), rule("b", "patch: {merge: {spec: {b: 1}}}")}, `{spec: {}}`,
			[]string{`/ merge by b: {"spec":{"b":1}}`}},
		{"the later of two values wins where both rest", []string{rule("a", "condition: object.spec.v == 0\n\tpatch: {merge: {spec: {v: 1}}}"), rule("b", "condition: object.spec.v == 1\n\tpatch: {merge: {spec: {v: 2}}}")}, `{spec: {v: 0}}`,
			[]string{`/ merge by a b: {"spec":{"v":2}}`}},
		{"a change that a later rule undoes sends nothing", []string{rule("a", "condition: object.spec.v == 0\n\tpatch: {merge: {spec: {v: 1}}}"), rule("b", "condition: object.spec.v == 1\n\tpatch: {merge: {spec: {v: 0}}}")}, `{spec: {v: 0}}`,
			[]string{}},
		{"what a later rule undoes is left out of the rest", []string{rule("a", "condition: object.spec.v == 0\n\tpatch: {merge: {spec: {v: 1}}}"), rule("b", "condition: object.spec.v == 1 && !has(object.spec.w)\n\tpatch: {merge: {spec: {v: 0, w: 1}}}")}, `{spec: {v: 0}}`,
			[]string{`/ merge by a b: {"spec":{"w":1}}`}},
		{"a merge patch in a JSON patch keeps what rules before it made", []string{
			rule("a", "patch: {merge: {spec: {m: {x: 1}}}}"), rule("b", "patch: {json: [{op: add, path: /spec/j, value: 1}]}"), rule("c", "patch: {merge: {spec: {m: {z: 1}}}}")}, `{spec: {}}`,
			[]string{`/ json by a b c: [{"op":"add","path":"/spec/m","value":{"x":1}},{"op":"add","path":"/spec/j","value":1},{"op":"add","path":"/spec/m/z","value":1}]`}},
		{"a JSON patch that changes nothing makes none of a merge patch", []string{rule("a", "patches:\n\t- json: [{op: replace, path: /spec/v, value: 0}]\n\t- merge: {spec: {w: 1}}")}, `{spec: {v: 0}}`,
			[]string{`/ merge by a: {"spec":{"w":1}}`}},
		{"a JSON patch whose sum is nothing", []string{
			rule("a", "condition: object.spec.v == 0\n\tpatch: {json: [{op: replace, path: /spec/v, value: 1}]}"),
			rule("b", "condition: object.spec.v == 1 && !has(object.status.w)\n\tpatches:\n\t- json: [{op: replace, path: /spec/v, value: 0}]\n\t- {subresource: status, merge: {status: {w: 1}}}")}, `{spec: {v: 0}, status: {}}`,
			[]string{`/status merge by b: {"status":{"w":1}}`}},
		{"the same through scale", []string{rule("a", "condition: object.spec.replicas == 3\n\tpatch: {subresource: scale, merge: {spec: {replicas: 5}}}"), rule("b", "condition: object.spec.replicas == 5\n\tpatch: {subresource: scale, merge: {spec: {replicas: 3}}}")}, `{spec: {replicas: 3}}`,
			[]string{}},
		{"CLI-08 an audit rule changes nothing for the others", []string{
			rule("r1", "mode: Audit\n\tpatch: {merge: {metadata: {labels: {a: \"1\"}}}}"), rule("r2", "condition: object.metadata.?labels.?a.orValue('') == '1'\n\tpatch: {merge: {metadata: {labels: {b: \"1\"}}}}")}, `{metadata: {}}`,
			[]string{}},
		{"a rule that fails leaves the others", []string{rule("a", "condition: object.nothing\n\t"+addsLabel), label("b", "x", "1")}, `{metadata: {}}`,
			[]string{`/ merge by b: {"metadata":{"labels":{"x":"1"}}}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, tc.rules...), tc.object)
			if diff := cmp.Diff(tc.want, sent(t, res)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
			}
		})
	}
}

// CLI-08: what an audit rule would do is told, event included.
func TestAuditRulesReport(t *testing.T) {
	set := load(t, rule("r", "mode: Audit\n\tevent: {message: \"would add to ${object.metadata.name}\"}\n\t"+addsLabel))
	res := evaluate(t, set, `{metadata: {name: a}}`)
	v := onlyVerdict(t, res)
	if v.Outcome != Patch || v.Rule.Mode != Audit || v.Event.Message != "would add to a" || len(res.Requests) != 0 {
		t.Errorf("%+v with %d requests", v, len(res.Requests))
	}
}

func TestRulesThatDoNotConvergeAreNamedAndTheOthersGoOn(t *testing.T) {
	tier := func(name, value string) string {
		return rule(name, fmt.Sprintf("patch: {merge: {metadata: {labels: {tier: %s}}}}", value))
	}
	good := rule("good", addsLabel)
	const goodSent = `/ merge by good: {"metadata":{"labels":{"seen":"yes"}}}`
	for _, tc := range []struct {
		name     string
		rules    []string
		outcomes []string
	}{
		{"FGT-06 two rules about one field", []string{tier("r1", "a"), tier("r2", "b"), good}, []string{"good Patch",
			"r1 Error: the rules r1, r2 do not converge: each would change again what the others leave",
			"r2 Error: the rules r1, r2 do not converge: each would change again what the others leave"}},
		{"FGT-06 three", []string{tier("r1", "a"), tier("r2", "b"), tier("r3", "c"), good}, []string{"good Patch",
			"r1 Error: the rules r1, r2, r3 do not converge: each would change again what the others leave",
			"r2 Error: the rules r1, r2, r3 do not converge: each would change again what the others leave",
			"r3 Error: the rules r1, r2, r3 do not converge: each would change again what the others leave"}},
		{"FGT-05 one that appends", []string{rule("appends", `patch: {json: [{op: add, path: /spec/args/-, value: --x}]}`), good}, []string{
			"appends Error: the rule does not converge: it would change its own result again", "good Patch"}},
		{"one that squares, until the number is too large", []string{rule("squares", `patch: {merge: {spec: {side: "${object.spec.side * object.spec.side}"}}}`), good}, []string{
			"good Patch", "squares Error: the rule does not converge: it would change its own result again"}},
		{"FGT-09 one that counts, beside two that fight", []string{rule("counts", `patch: {merge: {spec: {count: "${object.spec.count + 1}"}}}`), tier("r1", "a"), tier("r2", "b"), good}, []string{
			"counts Error: the rule does not converge: it would change its own result again", "good Patch",
			"r1 Error: the rules r1, r2 do not converge: each would change again what the others leave",
			"r2 Error: the rules r1, r2 do not converge: each would change again what the others leave"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, tc.rules...), `{metadata: {name: a}, spec: {args: [], count: 0, side: 3}}`)
			if diff := cmp.Diff(tc.outcomes, outcomes(res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{goodSent}, sent(t, res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Rules may wait for one another against the order of their names: that takes
// several rounds, and is no fight.
func TestRulesThatNeedSomeRoundsConverge(t *testing.T) {
	var all []string
	for i, name := range []string{"f", "e", "d", "c", "b", "a"} {
		all = append(all, rule(name, fmt.Sprintf("condition: object.spec.step == %d\n\tpatch: {merge: {spec: {step: %d}}}", i, i+1)))
	}
	set := load(t, all...)
	text := `{spec: {step: 0}}`
	for step := 1; step <= 6; step++ {
		res := evaluate(t, set, text)
		text = fmt.Sprintf("{spec: {step: %d}}", step)
		if diff := cmp.Diff(object(t, text), res.Object); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", outcomes(res), diff)
		}
		if v := onlyVerdict(t, res); v.Outcome != Patch {
			t.Errorf("step %d: %v", step, outcomes(res))
		}
	}
}

// A JSON patch for one endpoint may read what goes to another one in another
// request: what it does with it is sent.
func TestOperationsReadWhatGoesToAnotherEndpoint(t *testing.T) {
	set := load(t, rule("a", "condition: \"!has(object.metadata.labels)\"\n\tpatches: [{merge: {metadata: {labels: {x: \"1\"}}}}, {subresource: scale, merge: {spec: {replicas: 9}}}]"),
		rule("b", "condition: \"!has(object.status.x)\"\n\tpatch: {subresource: status, json: [{op: test, path: /metadata/labels/x, value: \"1\"}, {op: add, path: /status/x, value: \"1\"}]}"),
		rule("c", "condition: object.spec.replicas == 9\n\tpatch: {json: [{op: copy, from: /spec/replicas, path: /spec/count}]}"))
	res := evaluate(t, set, `{metadata: {}, spec: {replicas: 3}, status: {}}`)
	if diff := cmp.Diff([]string{
		`/ json by a c: [{"op":"add","path":"/metadata/labels","value":{"x":"1"}},{"op":"add","path":"/spec/count","value":9}]`,
		`/status json by b: [{"op":"add","path":"/status/x","value":"1"}]`,
		`/scale merge by a: {"spec":{"replicas":9}}`,
	}, sent(t, res)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
	}
}

// The request for scale is sent last, whatever the order of patches.
func TestReplicasWrittenThroughScaleAndThenOtherwise(t *testing.T) {
	set := load(t, rule("a", "patches: [{subresource: scale, merge: {spec: {replicas: 1}}}, {merge: {spec: {replicas: 5}}}]"),
		rule("b", "patch: {merge: {metadata: {labels: {x: \"1\"}}}}"))
	res := evaluate(t, set, `{metadata: {}, spec: {replicas: 3}}`)
	got := outcomes(res)
	if want := "a Error: evaluate the patch: " + errReplicasOverwritten.Error(); len(got) != 2 || got[0] != want || got[1] != "b Patch" {
		t.Errorf("got %q", got)
	}
}

func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		name, event string
		want        Event
	}{
		{"default", ``, Event{"Rectified", "changed by rule r"}},
		{"of the object before the change", `event: {reason: Scaled, message: "from ${object.spec.v} to ${variables.want}"}`, Event{"Scaled", "from 1 to 5"}},
		{"without templates", `event: {message: plain $${text}}`, Event{"Rectified", "plain ${text}"}},
		{"one template that is a number", `event: {message: "${object.spec.v}"}`, Event{"Rectified", "1"}},
		{"a message that fails", `event: {message: "${object.spec.none}"}`, Event{"Rectified", "changed by rule r (its message could not be evaluated: no such key: none)"}},
		{"a message that is absent", `event: {message: "x ${object.spec.?none}"}`, Event{"Rectified", "changed by rule r (its message could not be evaluated: ${object.spec.?none} is absent: it cannot be put into a string)"}},
		{"a message that is too long", `event: {message: "${'ä'.format([]) + ['äääääääääääääääääääääääääääääääääääääääääääääääääääää'].map(x, x+x+x+x+x+x+x+x+x+x+x+x).join('')}"}`, Event{"Rectified", strings.Repeat("ä", 510) + "…"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := load(t, rule("r", "variables: [{name: want, expression: \"5\"}]\n\tpatch: {merge: {spec: {v: \"${variables.want}\"}}}\n\t"+strings.ReplaceAll(tc.event, "plain $${text}", `"plain $${text}"`)))
			res := evaluate(t, set, `{spec: {v: 1}}`)
			if diff := cmp.Diff(tc.want, onlyVerdict(t, res).Event); diff != "" {
				t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
			}
			if len(res.Requests) != 1 {
				t.Error("the fix was held back")
			}
		})
	}
}

// The Scale that the API server answers with leaves out a count of 0.
func TestScaleToZeroIsHeldByAnAnswerWithoutACount(t *testing.T) {
	res := evaluate(t, load(t, rule("r", "patch: {subresource: scale, merge: {spec: {replicas: 0}}}")), `{spec: {replicas: 3}}`)
	for text, want := range map[string]bool{`{spec: {}}`: true, `{}`: true, `{spec: {replicas: 0}}`: true, `{spec: {replicas: 3}}`: false} {
		if got := res.Requests[0].HeldBy(object(t, text)); got != want {
			t.Errorf("%s: held %v, want %v", text, got, want)
		}
	}
}
