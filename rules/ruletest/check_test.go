package ruletest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// ruleSet holds three rules about ConfigMaps (one of them in Audit) and one
// about Secrets.
const ruleSet = `
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: color}
spec:
  resource: {version: v1, resource: configmaps}
  condition: object.data.color != 'blue'
  patch: {merge: {data: {color: blue}}}
  event: {reason: Painted, message: "was ${object.data.color}"}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: list}
spec:
  resource: {version: v1, resource: configmaps}
  match: {names: [web]}
  condition: "!has(object.data.list)"
  patch: {json: [{op: add, path: /data/list, value: a}]}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: audited}
spec:
  mode: Audit
  resource: {version: v1, resource: configmaps}
  match: {names: [audited]}
  patch: {merge: {data: {audited: "yes"}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: secret}
spec:
  resource: {version: v1, resource: secrets}
  condition: object.data.password != 'bmV3'
  patch: {merge: {data: {password: bmV3}, metadata: {labels: {copy: "${object.data.password}"}}}}
`

func evaluator(t *testing.T) Evaluate {
	t.Helper()
	set, problems := rules.Load(rules.Source{Name: "rules", Data: []byte(ruleSet)})
	for _, p := range problems {
		t.Fatal(p.Detail())
	}
	return func(object map[string]any) Evaluation {
		resource := map[any]string{"ConfigMap": "configmaps", "Secret": "secrets"}[object["kind"]]
		all := set.For(schema.GroupVersionResource{Version: "v1", Resource: resource})
		if len(all) == 0 {
			return Evaluation{Unmatched: "no rule is about it", UnknownKind: object["kind"] == "Podd"}
		}
		r := rules.Evaluate(all, rules.Input{Resource: all[0].Resources[0], Object: object, Now: time.Unix(0, 0), Explain: true})
		return Evaluation{Result: r, Seen: object}
	}
}

// parseCase reads a case: object and expect in flow style.
func parseCase(t *testing.T, object, expect string) *Case {
	t.Helper()
	text := "apiVersion: rectifier.dev/v1alpha1\nkind: RuleTest\nmetadata: {name: t}\nspec:\n  rules: [r]\n  cases:\n  - name: c\n    object: " + object + "\n    expect: " + expect + "\n"
	f := parse(input.File{Name: "t.yaml", Data: []byte(text)})
	for _, p := range f.Problems {
		t.Fatal(p.Detail())
	}
	return f.Tests[0].Cases[0]
}

// What is expected of an object, and the failures, as text. Line 9 is expect.
func TestCheck(t *testing.T) {
	const web = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: red, other: x}}`
	const blue = `{apiVersion: v1, kind: ConfigMap, metadata: {name: api}, data: {color: blue}}`
	const broken = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}`
	const audited = `{apiVersion: v1, kind: ConfigMap, metadata: {name: audited}, data: {color: blue}}`
	const secret = `{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: czNjcjN0, user: YWxpY2U=}}`
	for _, tc := range []struct{ name, object, expect, want string }{
		{"all that there is", web, `{outcome: Patch, rules: [color, list], object: {data: {color: blue}}, event: {reason: Painted, message: was red}, patch: [{op: replace, path: /data/color, value: blue}, {op: add, path: /data/list, value: a}]}`, ""},
		{"all of the object", web, `{outcome: Patch, exactObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: null}, data: {color: blue, other: x, list: a}}}`, ""},
		{"pass", blue, `{outcome: Pass}`, ""},
		{"skip", `{apiVersion: v1, kind: Pod}`, `{outcome: Skip, object: {kind: Pod}}`, ""},
		{"skip of a kind that there is not", `{apiVersion: v1, kind: Podd}`, `{outcome: Skip}`, "t.yaml:7:5: no rule is about it\n"},
		{"error", broken, `{outcome: Error, rules: [color, list], error: "no such key: d.ta"}`, ""},
		{"other outcome", web, `{outcome: Pass, object: {data: {color: green}}}`, "t.yaml:9:23: expect.outcome: the outcome is Patch, not Pass: patched by color, list\n"},
		{"not matched", `{apiVersion: v1, kind: Pod}`, `{outcome: Patch}`, "t.yaml:9:23: expect.outcome: the outcome is Skip, not Patch: no rule is about it\n"},
		{"no change", blue, `{outcome: Patch}`, "t.yaml:9:23: expect.outcome: the outcome is Pass, not Patch: rule audited: its name is not among match.names; rule color: the condition is false; rule list: its name is not among match.names\n"},
		{"failed", broken, `{outcome: Patch}`, "t.yaml:9:23: expect.outcome: the outcome is Error, not Patch: rule audited: its name is not among match.names; rule color failed: evaluate the condition: no such key: data; rule list failed: evaluate the condition: no such key: data\n"},
		{"fewer rules", web, `{outcome: Patch, rules: [color]}`, "t.yaml:9:38: expect.rules: rule list has patched, too\n"},
		{"other rules", web, `{outcome: Patch, rules: [color, list, audited, secret]}`, "t.yaml:9:51: expect.rules: rule audited has not patched: its name is not among match.names\nt.yaml:9:60: expect.rules: rule secret has not patched: it is not about objects of this kind\n"},
		{"rules that did not fail", broken, `{outcome: Error, rules: [color]}`, "t.yaml:9:38: expect.rules: rule list has failed, too\n"},
		{"another value", web, `{outcome: Patch, object: {data: {color: green}}}`, "t.yaml:9:53: expect.object: data.color is not as expected (-want +got)\n  - green\n  + blue\n"},
		{"a number for a string", web, `{outcome: Patch, object: {data: {color: 3}}}`, "t.yaml:9:53: expect.object: data.color is not as expected (-want +got)\n  - 3\n  + blue\n"},
		{"a value that is not there", web, `{outcome: Patch, object: {metadata: {labels: {a.b/c: x}}}}`, "t.yaml:9:58: expect.object: metadata.labels is not as expected (-want +got)\n  - a.b/c: x\n  + (nothing)\n"},
		{"a value that must not be there", web, `{outcome: Patch, object: {data: {other: null}}}`, "t.yaml:9:53: expect.object: data.other is not expected (-want +got)\n  - (nothing)\n  + x\n"},
		{"more than expected", web, `{outcome: Patch, exactObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: blue}}}`, "t.yaml:9:106: expect.exactObject: data.list is not expected (-want +got)\n  - (nothing)\n  + a\nt.yaml:9:106: expect.exactObject: data.other is not expected (-want +got)\n  - (nothing)\n  + x\n"},
		{"other operations", web, `{outcome: Patch, patch: [{op: replace, path: /data/color, value: blue}]}`, "t.yaml:9:37: expect.patch: other operations are sent (-want +got)\n    - {op: replace, path: /data/color, value: \"blue\"}\n  + - {op: add, path: /data/list, value: \"a\"}\n"},
		{"no operation", web, `{outcome: Patch, patch: []}`, "t.yaml:9:37: expect.patch: other operations are sent (-want +got)\n  - (nothing)\n  + - {op: replace, path: /data/color, value: \"blue\"}\n  + - {op: add, path: /data/list, value: \"a\"}\n"},
		{"another event", web, `{outcome: Patch, event: {message: was blue}}`, "t.yaml:9:37: expect.event: no rule tells this event (-want +got)\n  - message: was blue\n  + reason: Painted\n  + message: was red\n  + reason: Rectified\n  + message: changed by rule list\n"},
		{"another error", broken, `{outcome: Error, error: ^data}`, "t.yaml:9:37: expect.error: no error of a rule matches the regular expression (-want +got)\n  - ^data\n  + evaluate the condition: no such key: data\n  + evaluate the condition: no such key: data\n"},
		{"audit", audited, `{outcome: Patch, rules: [audited], object: {data: {audited: null}}, patch: []}`, ""},
		{"audit writes nothing", audited, `{outcome: Patch, object: {data: {audited: "yes"}}}`, "t.yaml:9:55: expect.object: data.audited is not as expected (rule audited has mode Audit: it reports and writes nothing) (-want +got)\n  - \"yes\"\n  + (nothing)\n"},
		{"secret", secret, `{outcome: Patch, object: {data: {password: bmV3, user: YWxpY2U=}}}`, ""},
		{"values of Secrets", secret, `{outcome: Patch, object: {data: {password: b3RoZXI=, user: Ym9i}, metadata: {labels: {copy: x}}}}`,
			"t.yaml:9:56: expect.object: data.password is not as expected (-want +got)\n  - '*** (8 bytes)'\n  + '*** (4 bytes)'\n" +
				"t.yaml:9:72: expect.object: data.user is not as expected (-want +got)\n  - '*** (4 bytes)'\n  + '*** (8 bytes)'\n" +
				"t.yaml:9:105: expect.object: metadata.labels.copy is not as expected (-want +got)\n  - '*** (1 byte)'\n  + '*** (8 bytes)'\n"},
		{"operations on Secrets", secret, `{outcome: Patch, patch: [{op: replace, path: /data/password, value: bmV3}]}`,
			"t.yaml:9:37: expect.patch: other operations are sent (-want +got)\n    - {op: replace, path: /data/password, value: \"*** (4 bytes)\"}\n  + - {op: add, path: /metadata/labels, value: {\"copy\":\"*** (8 bytes)\"}}\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := parseCase(t, tc.object, tc.expect)
			report := Check(c, c.Object.Value, Share(nil), evaluator(t))
			var got strings.Builder
			for _, f := range report.Failures {
				got.WriteString(f.Text())
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, value := range []string{"czNjcjN0", "YWxpY2U="} {
				if strings.Contains(strings.ReplaceAll(got.String(), tc.expect, ""), value) {
					t.Errorf("a value of a Secret is told: %s", got.String())
				}
			}
		})
	}
}

// What each case checks by itself can fail. The evaluators here do what
// rules.Evaluate never should.
func TestCheckByItself(t *testing.T) {
	honest := evaluator(t)
	object := func() map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{"color": "red"}}
	}
	passed := 0
	for _, tc := range []struct {
		name     string
		evaluate Evaluate
		want     string
	}{
		{"honest", honest, ""},
		{"the object is modified", func(o map[string]any) Evaluation {
			e := honest(o)
			o["data"].(map[string]any)["color"] = "pink"
			return e
		}, "modified an object"},
		{"what is beside it is modified", func(o map[string]any) Evaluation {
			beside["data"] = map[string]any{}
			return honest(o)
		}, "modified an object"},
		{"the result is not what is sent", func(o map[string]any) Evaluation {
			e := honest(o)
			e.Result.Object = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web"}, "data": map[string]any{"color": "blue", "list": "b"}}
			return e
		}, "what is sent does not make the result"},
		{"what is sent cannot be applied", func(o map[string]any) Evaluation {
			e := honest(o)
			e.Seen = map[string]any{"metadata": map[string]any{}}
			return e
		}, "what is sent cannot be applied: JSON patch [0].path: /data does not exist"},
		{"the result is changed again", func(o map[string]any) Evaluation {
			passed++
			return honest(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": o["metadata"], "data": map[string]any{"color": "red", "pass": string(rune('a' + passed))}})
		}, "the rules change their own result again: color, list"},
		{"the rules fail on their result", func(o map[string]any) Evaluation {
			e := honest(o)
			for i, v := range e.Verdicts {
				if v.Outcome == rules.Pass {
					e.Verdicts[i] = rules.Verdict{Rule: v.Rule, Outcome: rules.Error, Err: errors.New("no")}
				}
			}
			return e
		}, "the rules fail on their own result: rule color: no; rule list: no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			beside = map[string]any{"kind": "Pod"}
			c := parseCase(t, "{apiVersion: v1, kind: ConfigMap}", "{outcome: Patch}")
			report := Check(c, object(), Share([]map[string]any{beside}), tc.evaluate)
			var got []string
			for _, f := range report.Failures {
				got = append(got, f.Message)
				if f.Field != "" || f.Pos != (yamldoc.Position{File: "t.yaml", Line: 7, Column: 5}) {
					t.Errorf("got %+v", f)
				}
			}
			if tc.want == "" && len(got) > 0 || tc.want != "" && !strings.Contains(strings.Join(got, "\n"), tc.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// beside is what the rules may read beside the object.
var beside map[string]any

func TestMissingAndDifferences(t *testing.T) {
	type m = map[string]any
	type l = []any
	for _, tc := range []struct {
		name           string
		want, got      any
		missing, exact string // paths
	}{
		{"same", m{"a": int64(1)}, m{"a": 1.0}, "", ""},
		{"more in a mapping", m{"a": m{}}, m{"a": m{"b": "c"}}, "", "a.b"},
		{"more in a mapping in a list", m{"a": l{m{"b": "c"}}}, m{"a": l{m{"b": "c", "d": "e"}}}, "", "a[0].d"},
		{"longer list", m{"a": l{"b"}}, m{"a": l{"b", "c"}}, "a", "a"},
		{"other order", l{"a", "b"}, l{"b", "a"}, "[0] [1]", "[0] [1]"},
		{"null and absent", m{"a": nil}, m{}, "", ""},
		{"null and null", m{"a": nil}, m{"a": nil}, "", ""},
		{"null and something", m{"a": nil}, m{"a": false}, "a", "a"},
		{"something and null", m{"a": m{}}, m{"a": nil}, "a", "a"},
		{"empty is not absent", m{"a": l{}}, m{}, "a", "a"},
		{"other types", m{"a": m{"b": "c"}, "d": l{}, "e": "1"}, m{"a": "x", "d": m{}, "e": int64(1)}, "a d e", "a d e"},
		{"keys", m{"metadata": m{"labels": m{"a.b/c": "1"}}}, m{"metadata": m{"labels": m{"a.b/c": "2"}}}, "metadata.labels['a.b/c']", "metadata.labels['a.b/c']"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spell := func(all []difference) string {
				var out []string
				for _, d := range all {
					out = append(out, d.at.String())
				}
				return strings.Join(out, " ")
			}
			got := [2]string{spell(missing(tc.want, tc.got, nil)), spell(differences(tc.want, tc.got, nil))}
			if diff := cmp.Diff([2]string{tc.missing, tc.exact}, got); diff != "" {
				t.Errorf("missing and differences (-want +got):\n%s", diff)
			}
		})
	}
}
