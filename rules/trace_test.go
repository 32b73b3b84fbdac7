package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answers is a Lookups that finds the same for every query, or fails.
type answers struct {
	objects []map[string]any
	err     error
}

func (f answers) Find(Query) ([]map[string]any, error) { return f.objects, f.err }

// traced writes the trace of a verdict as lines.
func traced(v Verdict) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s %s %s", v.Rule.Name, v.Outcome, v.Reason)
	t := v.Trace
	if t == nil {
		return b.String() + "no trace\n"
	}
	if !t.OptedOutUntil.IsZero() {
		line("until %s", t.OptedOutUntil.Format(time.RFC3339))
	}
	read := map[bool]string{true: "", false: " (not read)"}
	for _, l := range t.Lookups {
		query := "nothing"
		if l.Query != nil {
			query = fmt.Sprintf("%q %q %v", l.Query.Namespace, l.Query.Values, l.Query.Selector)
		}
		line("lookup %s: %s: %s%s", l.Name, query, valueText(l.Objects, l.Err), read[l.Read])
	}
	for _, x := range t.Variables {
		line("variable %s: %s%s", x.Name, valueText(x.Value, x.Err), read[x.Read])
	}
	if t.Condition != nil {
		partText(&b, "condition ", t.Condition)
	}
	for _, p := range t.Patches {
		line("patch %s %s: %v %v", p.Kind, p.Subresource, p.NotApplicable, p.Err)
		for _, c := range p.Changes {
			line("  %s %s from %v: %s %v → %s", c.Op.Op, c.Path, c.From, valueText(c.Before, nil), c.Existed, valueText(c.Value, nil))
		}
	}
	for _, x := range t.Failed {
		partText(&b, "failed ", x)
	}
	return b.String()
}

func valueText(v any, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func partText(b *strings.Builder, prefix string, x *TracedExpression) {
	fmt.Fprintf(b, "%s%s: %s", prefix, x.Source, valueText(x.Value, x.Err))
	operandText(b, x)
	if x.ErrOffset >= 0 {
		fmt.Fprintf(b, " @%d", x.ErrOffset)
	}
	if x.NotNeeded {
		b.WriteString(" (not needed)")
	}
	b.WriteString("\n")
	for _, p := range x.Parts {
		partText(b, strings.Repeat(" ", 2+len(prefix)-len(strings.TrimLeft(prefix, " "))), p)
	}
}

func operandText(b *strings.Builder, x *TracedExpression) {
	for _, o := range x.Operands {
		fmt.Fprintf(b, ", %s", valueText(o.Value, o.Err))
		if len(o.Operands) > 0 {
			b.WriteString(" of")
			operandText(b, o)
		}
	}
}

func trace(in *Input) { in.Trace = true }

func TestTrace(t *testing.T) {
	const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team-a, annotations: {want: "5"}}, spec: {replicas: 3}}`
	for _, tc := range []struct {
		name, spec, object, want string
		lookups                  Lookups
	}{
		{"a patch", `
lookups: [{name: pods, resource: {version: v1, resource: pods}, namespace: "${object.metadata.namespace}", where: {spec.owner: "${object.metadata.name}"}}]
	variables:
	- {name: want, expression: "int(object.metadata.annotations.want)"}
	- {name: never, expression: "object.spec.nope"}
	condition: object.spec.replicas != variables.want && (lookups.pods.size() == 0 || variables.never == 1)
	patch: {subresource: scale, merge: {spec: {replicas: "${variables.want}"}}}`, web, `
a Patch 
lookup pods: "team-a" [["web"]] <nil>: null
variable want: 5
variable never: error no such key: nope (not read)
condition object.spec.replicas != variables.want && (lookups.pods.size() == 0 || variables.never == 1): true
  object.spec.replicas != variables.want: true, 3, 5
  lookups.pods.size() == 0 || variables.never == 1: true
    lookups.pods.size() == 0: true, 0 of, [], 0
    variables.never == 1: error no such key: nope, error no such key: nope, 1 @71 (not needed)
patch merge scale: <nil> <nil>
  replace /spec/replicas from : 3 true → 5
`, answers{}},
		{"not matched", "match: {names: [x]}\n\tcondition: object.spec.nope\n\t" + addsLabel, web, `
a Skip its name is not among match.names
`, nil},
		{"opted out", addsLabel, `{metadata: {name: web, annotations: {rectifier.dev/skip: a, rectifier.dev/skip-until: "2026-12-31T00:00:00Z"}}}`, `
a Skip the object has the annotation rectifier.dev/skip
until 2026-12-31T00:00:00Z
`, nil},
		{"what is looked up is not known", `
lookups: [{name: pods, resource: {version: v1, resource: pods}}]
	condition: lookups.pods.size() == 0
	` + addsLabel, web, `
a Error 
lookup pods: "" [] <nil>: error lookup pods of v1/pods is not known: forbidden
condition lookups.pods.size() == 0: error lookup pods of v1/pods is not known: forbidden, error lookup pods of v1/pods is not known: forbidden of, error lookup pods of v1/pods is not known: forbidden, 0 @0
`, answers{err: errors.New("forbidden")}},
		{"a value that a lookup needs is absent", `
lookups: [{name: pods, resource: {version: v1, resource: pods}, where: {spec.x: "${object.spec.?x}"}}]
	condition: lookups.pods.size() > 0
	` + addsLabel, web, `
a Pass the condition is false
lookup pods: nothing: null
condition lookups.pods.size() > 0: false, 0 of, [], 0
`, answers{objects: []map[string]any{{}}}},
		{"a lookup fails", `
lookups: [{name: pods, resource: {version: v1, resource: pods}, where: {spec.x: "${object.spec.x}"}}]
	condition: "true || lookups.pods.size() > 0"
	` + addsLabel, web, `
a Patch 
lookup pods: nothing: error lookup pods: where spec.x: no such key: x (not read)
condition true || lookups.pods.size() > 0: true
  true: true
  lookups.pods.size() > 0: error lookup pods: where spec.x: no such key: x, error lookup pods: where spec.x: no such key: x of, error lookup pods: where spec.x: no such key: x, 0 @8 (not needed)
patch merge : <nil> <nil>
  add /metadata/labels from : null false → {"seen":"yes"}
failed object.spec.x: error no such key: x @12
`, answers{}},
		{"patches: each sees the one before; the second is not applicable, the last fails", `
patches:
	- merge: {spec: {replicas: 7, a: [1]}}
	- json: [{op: remove, path: /spec/nope}]
	- json: [{op: add, path: /spec/a/-, value: "${object.spec.replicas}"}, {op: copy, from: /spec/a, path: /spec/b}]
	- merge: {spec: {replicas: 7}}
	- merge: {spec: {c: "x${object.spec.a.foo}"}}`, web, `
a Error JSON patch [0].path: /spec/nope: not applicable: there is no such value
patch merge : <nil> <nil>
  add /spec/a from : null false → [1]
  replace /spec/replicas from : 3 true → 7
patch json : JSON patch [0].path: /spec/nope: not applicable: there is no such value <nil>
patch json : <nil> <nil>
  add /spec/a/- from : null false → 7
  copy /spec/b from /spec/a: null false → null
patch merge : <nil> <nil>
patch merge : <nil> unsupported index type 'string' in list
failed object.spec.a.foo: error unsupported index type 'string' in list @14
`, nil},
		{"it does not converge", `
condition: object.spec.replicas < 100
	patch: {merge: {spec: {replicas: "${object.spec.replicas + 1}"}}}`, web, `
a Error 
condition object.spec.replicas < 100: true, 3, 100
patch merge : <nil> <nil>
  replace /spec/replicas from : 3 true → 4
`, nil},
		{"the Namespace is not known", `
condition: namespaceObject.metadata.name == 'x'
	` + addsLabel, web, `
a Error 
`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := load(t, rule("a", tc.spec))
			with := func(in *Input) { in.Lookups, in.Now = tc.lookups, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
			res := evaluate(t, set, tc.object, with, trace)
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), traced(onlyVerdict(t, res))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			same(t, evaluate(t, set, tc.object, with, explain), res)
		})
	}
}

// same compares what two evaluations decide.
func same(t *testing.T, plain, traced Result) {
	t.Helper()
	events := func(r Result) (out []string) {
		for _, v := range r.Verdicts {
			out = append(out, fmt.Sprintf("%s %+v %v", v.Rule.Name, v.Event, v.OptedOut))
		}
		return out
	}
	for _, diff := range []string{
		cmp.Diff(outcomes(plain), outcomes(traced)), cmp.Diff(sent(t, plain), sent(t, traced)), cmp.Diff(events(plain), events(traced)),
		cmp.Diff(plain.Object, traced.Object), cmp.Diff(plain.Recheck, traced.Recheck),
	} {
		if diff != "" {
			t.Errorf("the trace changes the result (-without +with)\n%s", diff)
		}
	}
	for _, v := range plain.Verdicts {
		if v.Trace != nil {
			t.Errorf("a trace that nobody asked for: %s", v.Rule.Name)
		}
	}
	for _, v := range traced.Verdicts {
		if v.Trace == nil {
			t.Errorf("no trace of %s", v.Rule.Name)
		}
	}
}

func TestUnracedTraceChangesNoVerdict(t *testing.T) {
	set := load(t, append(restful,
		rule("h", "condition: object.spec.replicas < 9\n\tpatch: {merge: {spec: {replicas: \"${object.spec.replicas + 1}\"}}}"),
		rule("i", "lookups: [{name: p, resource: {version: v1, resource: pods}, where: {a: \"${object.spec.a}\"}}]\n\tcondition: has(object.spec.b) || lookups.p.size() > 0 && object.spec.l[0] == 'x'\n\tpatch: {json: [{op: replace, path: /spec/l/0, value: y}]}"),
		rule("j", "recheckAfter: 1h\n\tvariables: [{name: v, expression: object.spec.a.b}]\n\tcondition: now > timestamp(0) && variables.v == 3\n\tpatch: {merge: {status: {x: 1}}}"),
	)...)
	r := rand.New(rand.NewPCG(5, 6))
	patches, failures := 0, 0
	for range 150 {
		in := Input{Object: randomObject(r), ReplicasPath: []string{"spec", "replicas"}, Lookups: answers{objects: []map[string]any{{"a": "x"}}}, Now: time.Unix(1e9, 0), Explain: true}
		plain := Evaluate(set.All(), in)
		in.Trace = true
		same(t, plain, evaluateInput(t, set.All(), in))
		for _, v := range plain.Verdicts {
			switch v.Outcome {
			case Patch:
				patches++
			case Error:
				failures++
			}
		}
		if t.Failed() {
			t.Fatalf("the object is %v", in.Object)
		}
	}
	if patches < 150 || failures < 50 {
		t.Errorf("%d patches, %d failures: this tests too little", patches, failures)
	}
}

// Without Trace nothing is kept, and nothing more is allocated.
func TestTraceCostsNothingWhereItIsOff(t *testing.T) {
	set := load(t, rule("a", "variables: [{name: v, expression: object.spec.replicas}]\n\tcondition: variables.v > 3\n\t"+addsLabel))
	in := Input{Object: object(t, `{metadata: {name: web}, spec: {replicas: 3}}`)}
	got := testing.AllocsPerRun(200, func() { Evaluate(set.All(), in) })
	// As measured before there were traces: the scope, its values, the activation.
	if got > 6 {
		t.Errorf("%v allocations", got)
	}
	t.Logf("%v allocations", got)
}

// SEC-01: nothing of a Secret's data is in a trace, whatever the rule does with it.
func TestTraceHidesDataOfSecrets(t *testing.T) {
	const secret = "c2VjcmV0LXZhbHVl"
	inSecret := `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: n, labels: {team: a}, annotations: {x: y, kubectl.kubernetes.io/last-applied-configuration: "{data: ` + secret + `}"}}, data: {password: ` + secret + `}}`
	for _, spec := range []string{
		"condition: object.data.password != 'x'\n\tpatch: {merge: {metadata: {labels: {seen: 'yes'}}}}",
		"condition: size(object.data) == 1 && object.size() > 2\n\tpatch: {json: [{op: copy, from: /data/password, path: /data/copy}, {op: replace, path: /data/password, value: eHg=}]}",
		"variables: [{name: all, expression: object}, {name: meta, expression: object.metadata}, {name: pw, expression: 'object.data.password'}]\n\tcondition: variables.all.data.password.startsWith('c') && variables.meta.annotations.size() == 2\n\tpatch: {merge: {metadata: {annotations: {copy: \"${variables.pw}\"}}, data: {password: \"${variables.pw + variables.pw}\"}}}",
		"condition: \"{'': 0}[object.data.password] == 0\"\n\tpatch: {merge: {data: {password: eHg=}}}",
		"condition: object.size() > 2 && object.metadata.annotations.size() == 2\n\tpatch: {merge: {data: {password: eHg=}}}",
		"lookups: [{name: others, resource: {version: v1, resource: secrets}}]\n\tcondition: lookups.others.size() == 1\n\tpatch: {merge: {metadata: {labels: {x: \"${object.metadata.name}\"}}}}",
		"condition: int(object.data.password) == 3\n\tpatch: {merge: {data: {password: eHg=}}}",
		"patch: {merge: {metadata: {annotations: null}, data: null, stringData: {a: b}}}",
		"patch: {merge: {metadata: {labels: {k: \"${string(int(object.data.password))}\"}}}}",
		"lookups: [{name: others, resource: {version: v1, resource: secrets}, where: {data.password: \"${object.data.password}\"}}]\n\tcondition: lookups.others.size() == 1 && lookups.others.exists(o, o.data.password == object.data.password)\n\tpatch: {json: [{op: test, path: /data/password, value: \"${object.data.password}\"}, {op: remove, path: /data/password}]}",
		"lookups: [{name: others, resource: {version: v1, resource: secrets}}]\n\tvariables: [{name: m, expression: 'lookups.others.map(o, o.metadata)'}]\n\tcondition: variables.m[0].nope == 1 || lookups.others[0].data.nope == 2\n\tpatch: {merge: {data: {password: eHg=}}}",
	} {
		text := strings.Replace(rule("a", spec), "group: apps, version: v1, resource: deployments", "version: v1, resource: secrets", 1)
		set := load(t, text)
		other := object(t, inSecret)
		res := evaluate(t, set, inSecret, trace, func(in *Input) { in.Lookups = answers{objects: []map[string]any{other}} })
		v := onlyVerdict(t, res)
		if got := traced(v); strings.Contains(got, secret) {
			t.Errorf("%s\n%s", spec, got)
		}
		if v.Trace.Condition == nil && len(v.Trace.Patches) == 0 {
			t.Errorf("%s: nothing was traced", spec)
		}
	}
	// A rule about other objects that looks up Secrets hides as much.
	set := load(t, rule("a", "lookups: [{name: s, resource: {version: v1, resource: secrets}}]\n\tcondition: object.spec.replicas == 3 && lookups.s[0].data.password != ''\n\tpatch: {merge: {metadata: {annotations: {copy: \"${lookups.s[0].data.password}\"}}}}"))
	res := evaluate(t, set, `{metadata: {name: web, annotations: {copy: `+secret+`x}}, spec: {replicas: 3}}`, trace, func(in *Input) { in.Lookups = answers{objects: []map[string]any{object(t, inSecret)}} })
	if got := traced(onlyVerdict(t, res)); strings.Contains(got, secret) || !strings.Contains(got, `"***" true → "***"`) {
		t.Error(got)
	}
}
