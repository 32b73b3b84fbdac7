package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules/patch"
)

// rule writes a rule for Deployments around the rest of its spec.
func rule(name, spec string) string {
	return fmt.Sprintf(`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: %s}
spec:
  resource: {group: apps, version: v1, resource: deployments}
%s
`, name, strings.ReplaceAll("  "+strings.TrimSpace(spec), "\n\t", "\n  "))
}

// configMapRule is rule for ConfigMaps.
func configMapRule(name, spec string) string {
	return strings.Replace(rule(name, spec), "group: apps, version: v1, resource: deployments", "version: v1, resource: configmaps", 1)
}

// onlyVerdict is the verdict of a set of one rule, evaluated with Explain.
func onlyVerdict(t *testing.T, res Result) Verdict {
	t.Helper()
	if len(res.Verdicts) != 1 {
		t.Fatalf("%d verdicts: %v", len(res.Verdicts), outcomes(res))
	}
	return res.Verdicts[0]
}

const addsLabel = `patch: {merge: {metadata: {labels: {seen: "yes"}}}}`

func TestMatch(t *testing.T) {
	const web = `{metadata: {name: web-1, namespace: team-a, labels: {tier: web, n: "3"}}, spec: {replicas: 3, ratio: 2.5, big: 12345678.5, paused: true, name: x, list: [1]}}`
	for _, tc := range []struct {
		name, match, object string
		want                bool
	}{
		{"nothing given", ``, web, true},
		{"namespace glob", `namespaces: ["team-*"]`, web, true},
		{"one of several globs", `namespaces: [other, "team-?"]`, web, true},
		{"a glob covers the whole name", `namespaces: ["team"]`, web, false},
		{"another namespace", `namespaces: ["prod-*"]`, web, false},
		{"excluded namespace", `namespaces: ["*"], excludeNamespaces: [team-a]`, web, false},
		{"another excluded namespace", `excludeNamespaces: ["kube-*"]`, web, true},
		{"name glob", `names: ["web-[0-9]"]`, web, true},
		{"another name", `names: ["db-*"]`, web, false},
		{"excluded name", `excludeNames: ["*-1"]`, web, false},
		{"empty lists restrict nothing", `namespaces: [], excludeNames: []`, web, true},
		{"labels", `labelSelector: {matchLabels: {tier: web}}`, web, true},
		{"another label", `labelSelector: {matchLabels: {tier: db}}`, web, false},
		{"an empty label selector", `labelSelector: {}`, web, true},
		{"In", `labelSelector: {matchExpressions: [{key: tier, operator: In, values: [db, web]}]}`, web, true},
		{"NotIn", `labelSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [web]}]}`, web, false},
		{"SEL-02 NotIn on an absent label", `labelSelector: {matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}`, web, true},
		{"SEL-02 NotIn on no labels at all", `labelSelector: {matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}`, `{metadata: {name: a}}`, true},
		{"Exists", `labelSelector: {matchExpressions: [{key: env, operator: Exists}]}`, web, false},
		{"DoesNotExist", `labelSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}`, web, true},
		{"a label that is no string is absent", `labelSelector: {matchExpressions: [{key: tier, operator: DoesNotExist}]}`, `{metadata: {name: a, labels: {tier: 3}}}`, true},
		{"labels that are null", `labelSelector: {matchLabels: {tier: web}}`, `{metadata: {name: a, labels: null}}`, false},
		{"field equals", `fieldSelector: metadata.name=web-1`, web, true},
		{"field equals, two signs", `fieldSelector: metadata.name==web-1`, web, true},
		{"field differs", `fieldSelector: metadata.name!=web-1`, web, false},
		{"a field that is a number", `fieldSelector: spec.replicas=3`, web, true},
		{"a field that is a fraction", `fieldSelector: spec.ratio=2.5`, web, true},
		{"a field that is a large fraction", `fieldSelector: spec.big=12345678.5`, web, true},
		{"a field that is a bool", `fieldSelector: spec.paused=true`, web, true},
		{"an absent field is the empty text", `fieldSelector: spec.nodeName=`, web, true},
		{"an absent field is not another text", `fieldSelector: spec.nodeName!=x`, web, true},
		{"a path through a scalar is absent", `fieldSelector: spec.name.more=`, web, true},
		{"a list is the empty text", `fieldSelector: spec.list=`, web, true},
		{"all fields", `fieldSelector: "metadata.name=web-1,spec.replicas!=3"`, web, false},
		{"SEL-01 all parts are ANDed, labels fail", `names: [web-1], namespaces: [team-a], fieldSelector: spec.replicas=3, labelSelector: {matchLabels: {tier: db}}`, web, false},
		{"SEL-01 all parts are ANDed, namespace fails", `names: [web-1], namespaces: [team-b], labelSelector: {matchLabels: {tier: web}}`, web, false},
		{"SEL-01 all parts are ANDed, all hold", `names: [web-1], namespaces: [team-a], fieldSelector: spec.replicas=3, labelSelector: {matchLabels: {tier: web}}`, web, true},
		{"deleted objects are left alone", ``, `{metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, false},
		{"unless asked for", `deleting: true`, `{metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, true},
		{"deleting matches other objects too", `deleting: true`, web, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := load(t, rule("r", "match: {"+tc.match+"}\n\t"+addsLabel))
			v := onlyVerdict(t, evaluate(t, set, tc.object, explain))
			if (v.Outcome == Patch) != tc.want || (v.Outcome == Skip) == tc.want {
				t.Errorf("%s (%s), want a match: %v", v.Outcome, v.Reason, tc.want)
			}
			if v.Outcome == Skip && v.Reason == "" {
				t.Error("nothing says why")
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name, spec, object string
		want               string
	}{
		{"no condition means always", addsLabel, `{metadata: {name: a}}`, "r Patch"},
		{"condition holds", "condition: object.metadata.name == 'a'\n\t" + addsLabel, `{metadata: {name: a}}`, "r Patch"},
		{"condition is false", "condition: object.metadata.name == 'b'\n\t" + addsLabel, `{metadata: {name: a}}`, "r Pass: the condition is false"},
		{"CEL-07 a condition that fails is no match", "condition: object.metadata.labels.tier == 'web'\n\t" + addsLabel, `{metadata: {labels: {owner: ops}}}`, "r Error: evaluate the condition: no such key: tier"},
		{"a condition that is no bool after all", "condition: object.metadata.name\n\t" + addsLabel, `{metadata: {name: a}}`, "r Error: evaluate the condition: the value is string, not bool"},
		{"nothing to change", addsLabel, `{metadata: {labels: {seen: "yes", other: x}}}`, "r Pass: the object already is as the patch wants it"},
		{"an operation that does not apply", `patch: {json: [{op: remove, path: /spec/x}]}`, `{spec: {}}`, "r Pass: JSON patch [0].path: /spec/x: not applicable: there is no such value"},
		{"a template that fails", `patch: {merge: {spec: {a: "${object.spec.b}"}}}`, `{spec: {}}`, "r Error: evaluate the patch: no such key: b"},
		{"PAT-01 missing parent", `patch: {json: [{op: add, path: /metadata/annotations/team, value: x}]}`, `{metadata: {name: a}}`,
			"r Error: evaluate the patch: JSON patch [0].path: /metadata/annotations does not exist, and a JSON patch cannot create it on the way: use a merge patch"},
		{"PAT-02 parent that is null", `patch: {json: [{op: add, path: /metadata/annotations/team, value: x}]}`, `{metadata: {name: a, annotations: null}}`,
			"r Error: evaluate the patch: JSON patch [0].path: /metadata/annotations does not exist, and a JSON patch cannot create it on the way: use a merge patch"},
		{"PAT-07 failed test", `patch: {json: [{op: test, path: /metadata/x, value: null}, {op: add, path: /metadata/x, value: 1}]}`, `{metadata: {x: 5}}`,
			"r Pass: JSON patch [0].path: test failed: /metadata/x has another value"},
		{"computed path with a raw slash", `patch: {json: [{op: add, path: "${'/metadata/annotations/' + 'a.io/b'}", value: x}]}`, `{metadata: {annotations: {}}}`,
			"r Error: evaluate the patch: JSON patch [0].path: a / in a label's or annotation's key is written ~1: /metadata/annotations/a.io~1b"},
		{"PAT-10 computed merge that changes identity", `patch: {merge: "${{'metadata': {'name': 'other'}}}"}`, `{metadata: {name: a}}`,
			"r Error: evaluate the patch: /metadata/name identifies the object or is kept by the API server: no rule may write it"},
		{"PAT-10 computed key that changes identity", `patch: {merge: {"${'kind'}": Secret}}`, `{kind: Deployment}`,
			"r Error: evaluate the patch: /kind identifies the object or is kept by the API server: no rule may write it"},
		{"PAT-10 computed merge that is null", `patch: {merge: "${null}"}`, `{kind: Deployment}`, "r Error: evaluate the patch: the patch must be a mapping, but the expression gives null"},
		{"PAT-10 computed operation on the whole document", `patch: {json: "${[{'op': 'replace', 'path': '', 'value': {}}]}"}`, `{kind: Deployment}`,
			"r Error: evaluate the patch: JSON patch [0].path: bad JSON pointer at offset 0: the empty pointer addresses the whole document, which no rule may replace"},
		{"scale", "patch: {subresource: scale, merge: {spec: {replicas: 3}}}", `{spec: {replicas: 1}}`, "r Patch"},
		{"scale with a fraction", `patch: {subresource: scale, merge: {spec: {replicas: "${2.5}"}}}`, `{spec: {replicas: 1}}`, "r Error: evaluate the patch: spec.replicas must be an integer, but the patch gives a number"},
		{"scale with a negative count", `patch: {subresource: scale, merge: {spec: {replicas: "${-1}"}}}`, `{spec: {replicas: 1}}`, "r Error: evaluate the patch: spec.replicas must not be negative, but the patch gives -1"},
		{"scale with a text", `patch: {subresource: scale, merge: {spec: {replicas: "3"}}}`, `{spec: {replicas: 1}}`, "r Error: evaluate the patch: spec.replicas must be an integer, but the patch gives a string"},
		{"scale without a count", `patch: {subresource: scale, merge: {spec: {replicas: null}}}`, `{spec: {replicas: 1}}`, "r Error: evaluate the patch: spec.replicas must be an integer, but the patch gives null"},
		{"FGT-05 appends for ever", `patch: {json: [{op: add, path: /spec/args/-, value: --x}]}`, `{spec: {args: []}}`, "r Error: the rule does not converge: it would change its own result again"},
		{"FGT-09 counts", `patch: {merge: {spec: {count: "${object.spec.count + 1}"}}}`, `{spec: {count: 1}}`, "r Error: the rule does not converge: it would change its own result again"},
		{"patches that undo one another", `patches: [{merge: {spec: {a: 1}}}, {merge: {spec: {a: null}}}]`, `{spec: {b: 2}}`, "r Pass: the object already is as the patch wants it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, rule("r", tc.spec)), tc.object, explain)
			if diff := cmp.Diff([]string{tc.want}, outcomes(res)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			v := onlyVerdict(t, res)
			if (v.Outcome == Patch) != (len(res.Requests) > 0) {
				t.Errorf("%s with %d requests", v.Outcome, len(res.Requests))
			}
			if (v.Outcome == Error) != (v.Err != nil) {
				t.Errorf("%s with error %v", v.Outcome, v.Err)
			}
			if v.Outcome == Patch && v.Event == (Event{}) || v.Outcome != Patch && v.Event != (Event{}) {
				t.Errorf("%s with event %v", v.Outcome, v.Event)
			}
		})
	}
}

func TestWithoutExplainOnlyWhatMattersIsTold(t *testing.T) {
	set := load(t, rule("a", "condition: \"false\"\n\t"+addsLabel), rule("b", "match: {names: [x]}\n\t"+addsLabel), rule("c", addsLabel), rule("d", "condition: object.x\n\t"+addsLabel))
	got := outcomes(evaluate(t, set, `{metadata: {name: a}}`))
	if diff := cmp.Diff([]string{"c Patch", "d Error: evaluate the condition: no such key: x"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsHaveTypes(t *testing.T) {
	scaled := load(t, rule("r", "patch: {subresource: scale, merge: {spec: {replicas: 3}}}"))
	res := evaluate(t, scaled, `{spec: {replicas: 1}}`, func(in *Input) { in.ReplicasPath = nil })
	var evaluation *EvaluationError
	if err := res.Verdicts[0].Err; !errors.Is(err, ErrReplicasUnknown) || !errors.As(err, &evaluation) || evaluation.Part != "patch" {
		t.Errorf("unknown replica count: %v", err)
	}
	var missing *patch.MissingParentError
	res = evaluate(t, load(t, rule("r", "patch: {json: [{op: add, path: /spec/a/b, value: 1}]}")), `{spec: {}}`)
	if err := res.Verdicts[0].Err; !errors.As(err, &missing) {
		t.Errorf("missing parent: %v", err)
	}
	var endless *NotConvergingError
	res = evaluate(t, load(t, rule("r", `patch: {merge: {spec: {count: "${object.spec.count + 1}"}}}`)), `{spec: {count: 1}}`)
	if err := res.Verdicts[0].Err; !errors.As(err, &endless) || !slices.Equal(endless.Rules, []string{"r"}) {
		t.Errorf("not converging: %v", err)
	}
}

func TestVariables(t *testing.T) {
	for _, tc := range []struct {
		name, spec, object string
		want               any // spec.out after it, or an error
	}{
		{"each sees those before it", `
	variables:
	- {name: a, expression: object.spec.count + 1}
	- {name: b, expression: variables.a * 10}
	patch: {merge: {spec: {out: "${variables.b + variables.a}"}}}`, `{spec: {count: 1}}`, int64(22)},
		{"one that is not read is not evaluated", `
	variables: [{name: bad, expression: object.no.such.thing}]
	condition: "true || variables.bad == 1"
	patch: {merge: {spec: {out: ok}}}`, `{spec: {}}`, "ok"},
		{"one that fails is an error where it is read", `
	variables: [{name: bad, expression: object.spec.missing}]
	condition: variables.bad == 1
	patch: {merge: {spec: {out: ok}}}`, `{spec: {}}`, errors.New("evaluate the condition: no such key: missing")},
		{"one that fails through another", `
	variables: [{name: bad, expression: object.spec.missing}, {name: worse, expression: variables.bad}]
	patch: {merge: {spec: {out: "${variables.worse}"}}}`, `{spec: {}}`, errors.New("evaluate the patch: no such key: missing")},
		{"a map with null and lists", `
	variables: [{name: m, expression: "{'a': [1, 2.0, null, {'b': true}]}"}]
	patch: {merge: {spec: {out: "${variables.m.a}"}}}`, `{spec: {}}`, []any{int64(1), int64(2), nil, map[string]any{"b": true}}},
		{"has", `
	variables: [{name: m, expression: "object.spec"}]
	condition: has(variables.m.count)
	patch: {merge: {spec: {out: ok}}}`, `{spec: {count: 1}}`, "ok"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := evaluate(t, load(t, rule("r", tc.spec)), tc.object)
			if want, ok := tc.want.(error); ok {
				if diff := cmp.Diff([]string{"r Error: " + want.Error()}, outcomes(res)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(tc.want, res.Object["spec"].(map[string]any)["out"]); diff != "" {
				t.Errorf("%v (-want +got):\n%s", outcomes(res), diff)
			}
		})
	}
}

// A variable is read after the first patch for the first time, and still holds
// what the object was before it: its value does not depend on who reads it when.
func TestVariablesDoNotDependOnWhenTheyAreRead(t *testing.T) {
	for _, condition := range []string{"variables.old != 7", "object.spec.count != 7"} {
		set := load(t, rule("r", `
	variables: [{name: old, expression: object.spec.count}]
	condition: `+condition+`
	patches:
	- merge: {spec: {count: 7}}
	- merge: {spec: {old: "${variables.old}", now: "${object.spec.count}"}}`))
		got := evaluate(t, set, `{spec: {count: 1}}`).Object
		if diff := cmp.Diff(object(t, `{spec: {count: 7, old: 1, now: 7}}`), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", condition, diff)
		}
	}
}

func TestVariableIsEvaluatedAtMostOnce(t *testing.T) {
	set := load(t, rule("r", `
	variables: [{name: a, expression: object.spec.count}]
	condition: variables.a == variables.a
	patch: {merge: {spec: {out: "${variables.a + variables.a}"}}}`))
	s := &scope{rule: set.All()[0], object: object(t, `{spec: {count: 1}}`)}
	s.start = s.object
	if _, err := s.condition(); err != nil {
		t.Fatal(err)
	}
	s.start = map[string]any{} // a second evaluation would fail
	if v, err := s.Resolve("variables.a"); err != nil {
		t.Errorf("evaluated again: %v, %v", v, err)
	}
	s.vars[0].err = errors.New("kept")
	if _, err := s.Resolve("variables.a"); err == nil || err.Error() != "kept" {
		t.Errorf("an error is not kept: %v", err)
	}
}

// Evaluate writes nothing that two goroutines could meet on: this test is of
// use under the race detector.
func TestEvaluateIsPure(t *testing.T) {
	set := load(t, rule("a", `
	variables: [{name: count, expression: object.spec.count + 1}]
	condition: object.spec.list.exists(x, x == 2) && variables.count > 0
	patch: {merge: {spec: {m: "${variables.count}", same: "${object.spec.list}"}}}`), rule("b", `
	condition: "!('x' in object.spec.list)"
	patch: {json: [{op: add, path: /spec/list/-, value: x}]}`), rule("c", "patch: {subresource: scale, merge: {spec: {replicas: 3}}}"))
	shared := object(t, `{metadata: {name: a}, spec: {count: 1, list: [1, 2], replicas: 1}}`)
	want := outcomes(evaluateInput(t, set.All(), Input{Object: shared, ReplicasPath: []string{"spec", "replicas"}}))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				res := Evaluate(set.All(), Input{Object: shared, ReplicasPath: []string{"spec", "replicas"}})
				if got := outcomes(res); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}
