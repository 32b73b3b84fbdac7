package rules_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// These tests evaluate rules that nobody wrote on objects that nobody has, and
// hold the promises of the package to what comes out:
//
//   - no panic, no hang, and no modified input;
//   - the same input gives the same result;
//   - the requests, done by the server's library, lead to Result.Object;
//   - done again and again, the rules come to rest, and where Settle says;
//   - a rule that fails changes nothing of what the others do.

// slow is how long one evaluation may take on a loaded machine: far more than
// it ever does, far less than for ever.
const slow = 30 * time.Second

func loadText(text string) (*rules.Set, []*rules.Problem) {
	return rules.Load(rules.Source{Name: "r.yaml", Data: []byte(text)})
}

// checkEvaluation holds one evaluation to all promises. The tally counts what
// has been met, so that a test can say that it tests something.
func checkEvaluation(t testing.TB, all []*rules.Rule, in rules.Input) (met tally) {
	t.Helper()
	start, before := time.Now(), runtime.DeepCopyJSON(in.Object)
	res := rules.Evaluate(all, in)
	if took := time.Since(start); took > slow {
		t.Errorf("it took %v", took)
	}
	if !reflect.DeepEqual(before, in.Object) {
		t.Errorf("the object was modified: %v became %v", before, in.Object)
	}
	if late(res) {
		return tally{late: 1}
	}
	checkDeterminism(t, all, in, res)
	checkFailuresAreAlone(t, all, in, res)
	checkRest(t, all, in, res)
	met.requests = len(res.Requests)
	for _, v := range res.Verdicts {
		var never *rules.NotConvergingError
		switch {
		case errors.As(v.Err, &never):
			met.fights++
		case v.Outcome == rules.Error:
			met.errors++
		case v.Outcome == rules.Patch:
			met.patches++
		}
	}
	return met
}

type tally struct{ requests, patches, errors, fights, late int }

func (t *tally) add(o tally) {
	t.requests, t.patches, t.errors, t.fights, t.late = t.requests+o.requests, t.patches+o.patches, t.errors+o.errors, t.fights+o.fights, t.late+o.late
}

// late reports whether an evaluation ran out of time: what it gives then
// depends on the machine.
func late(res rules.Result) bool {
	return slices.ContainsFunc(res.Verdicts, func(v rules.Verdict) bool { return errors.Is(v.Err, expression.ErrDeadline) })
}

// told is all of a result that can be compared: verdicts, object, requests.
func told(t testing.TB, res rules.Result) []string {
	t.Helper()
	var out []string
	for _, v := range res.Verdicts {
		out = append(out, fmt.Sprintf("%s: %s, %s, %v, %v, %v", v.Rule.Name, v.Outcome, v.Reason, v.OptedOut, v.Err, v.Event))
	}
	for i := range res.Requests {
		r := &res.Requests[i]
		body, err := r.Body("u", "7")
		var by []string
		for _, rule := range r.Rules {
			by = append(by, rule.Name)
		}
		out = append(out, fmt.Sprintf("%v to %q by %v: %s %v", r.Type(), r.Subresource, by, body, err))
	}
	object, err := json.Marshal(res.Object)
	if err != nil {
		t.Errorf("the result cannot be written: %v", err)
	}
	return append(out, string(object), res.Recheck.String())
}

// checkDeterminism evaluates a copy: its maps are in another order.
func checkDeterminism(t testing.TB, all []*rules.Rule, in rules.Input, res rules.Result) {
	t.Helper()
	in.Object = runtime.DeepCopyJSON(in.Object)
	again := rules.Evaluate(all, in)
	if a, b := told(t, res), told(t, again); !slices.Equal(a, b) && !late(again) {
		t.Errorf("evaluated twice, two results:\n%q\n%q", a, b)
	}
}

// checkFailuresAreAlone leaves the rules out that could not be evaluated.
func checkFailuresAreAlone(t testing.TB, all []*rules.Rule, in rules.Input, res rules.Result) {
	t.Helper()
	failed := map[*rules.Rule]bool{}
	for _, v := range res.Verdicts {
		var never *rules.NotConvergingError
		if errors.As(v.Err, &never) {
			return // together with what may be a rule that fails only now
		}
		failed[v.Rule] = failed[v.Rule] || v.Outcome == rules.Error
	}
	others := slices.DeleteFunc(slices.Clone(all), func(r *rules.Rule) bool { return failed[r] })
	if len(others) == len(all) {
		return
	}
	without := rules.Evaluate(others, in)
	if late(without) {
		return
	}
	res.Verdicts = slices.DeleteFunc(slices.Clone(res.Verdicts), func(v rules.Verdict) bool { return failed[v.Rule] })
	res.Recheck, without.Recheck = time.Time{}, time.Time{} // a rule that fails is asked again nevertheless
	if a, b := told(t, res), told(t, without); !slices.Equal(a, b) {
		t.Errorf("with the rules that fail:\n%q\nwithout:\n%q", a, b)
	}
}

// checkRest plays controller and server until nothing is sent.
func checkRest(t testing.TB, all []*rules.Rule, in rules.Input, res rules.Result) {
	t.Helper()
	settled := rules.Settle(all, in)
	for pass := 0; len(res.Requests) > 0; pass++ {
		if pass > 200 {
			t.Errorf("it does not come to rest; at last: %q", told(t, res))
			return
		}
		got := in.Object
		for i := range res.Requests {
			got = serve(t, got, &res.Requests[i], in)
		}
		if !jsonvalue.Equal(got, res.Object) {
			t.Errorf("the requests do not lead to the result:\n%q\nserver: %v", told(t, res), got)
			return
		}
		in.Object = got
		if res = rules.Evaluate(all, in); late(res) {
			return
		}
	}
	if !jsonvalue.Equal(settled.Object, in.Object) && !late(settled) {
		t.Errorf("it comes to rest at\n%v\nand not where Settle says\n%v", in.Object, settled.Object)
	}
}

// serve does a request as the API server does: by its libraries, on bytes, and
// of each endpoint only what is its own.
func serve(t testing.TB, object map[string]any, r *rules.Request, in rules.Input) map[string]any {
	t.Helper()
	body, err := r.Body("u", "7")
	if err != nil {
		t.Errorf("body of the request to %q: %v", r.Subresource, err)
		return object
	}
	doc := object
	if r.Subresource == "scale" {
		spec, _ := object["spec"].(map[string]any)
		doc = map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7"}, "spec": map[string]any{}}
		if replicas, ok := spec["replicas"]; ok {
			doc["spec"] = map[string]any{"replicas": replicas}
		}
	}
	after, err := patched(doc, body, r.Type())
	if err != nil {
		t.Errorf("the server refuses %s for %v: %v", body, doc, err)
		return object
	}
	out := runtime.DeepCopyJSON(object)
	switch r.Subresource {
	case "scale":
		spec, _ := out["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
			out["spec"] = spec
		}
		spec["replicas"] = after["spec"].(map[string]any)["replicas"]
	case "status":
		out["status"] = after["status"]
		if after["status"] == nil {
			delete(out, "status")
		}
	default:
		out = after
		if in.HasStatus && !jsonvalue.Equal(out["status"], object["status"]) {
			t.Errorf("it sends status to the object: %s", body)
		}
	}
	return out
}

func patched(doc map[string]any, body []byte, kind types.PatchType) (out map[string]any, err error) {
	defer func() {
		if r := recover(); r != nil { // the library's tests of null do
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	data, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	if kind == types.MergePatchType {
		data, err = jsonpatch.MergePatch(data, body)
	} else {
		var ops jsonpatch.Patch
		if ops, err = jsonpatch.DecodePatch(body); err == nil {
			data, err = ops.Apply(data)
		}
	}
	if err != nil {
		return nil, err
	}
	return out, kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
}

// The ordinary run: some thousand evaluations, or as many as fit into the time.
func TestUnracedPropertiesOfInventedRules(t *testing.T) {
	deadline := time.Now().Add(8 * time.Second)
	var met tally
	files := uint64(0)
	for seed := range uint64(2000) {
		if time.Now().After(deadline) {
			break
		}
		files++
		c := seeded(seed)
		text := ruleMaker{c}.file()
		set, _ := loadText(text)
		for range 10 {
			in := inventInput(t, c)
			met.add(checkEvaluation(t, set.All(), in))
			if t.Failed() {
				data, _ := json.Marshal(in.Object)
				t.Fatalf("seed %d\n%s\n%s", seed, text, data)
			}
		}
	}
	t.Logf("%d files: %+v", files, met)
	if uint64(met.patches) < files/4 || uint64(met.errors) < files/8 || uint64(met.fights) < files/100 {
		t.Errorf("%d files, and only %+v: the rules do not meet the objects", files, met)
	}
}

// The same with a fuzzer that chooses.
func FuzzEvaluate(f *testing.F) {
	for seed := range uint64(20) {
		c := seeded(seed)
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(c.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &chooser{bytes: data}
		text := ruleMaker{c}.file()
		set, _ := loadText(text)
		in := inventInput(t, c)
		checkEvaluation(t, set.All(), in)
		if t.Failed() {
			object, _ := json.Marshal(in.Object)
			t.Logf("%s\n%s", text, object)
		}
	})
}

// Rule files by the grammar, and then damaged.
func FuzzLoadDamaged(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, []byte{byte(seed), byte(seed * 7), byte(seed * 31), byte(seed * 101)})
	}
	f.Fuzz(func(t *testing.T, seed uint64, damage []byte) {
		text := damaged([]byte(ruleMaker{seeded(seed)}.file()), damage)
		set, problems := rules.Load(rules.Source{Name: "r.yaml", Data: text}, rules.Source{Name: "good.yaml", Data: []byte(rule("good", "patch: {merge: {spec: {a: 1}}}"))})
		for _, p := range problems {
			if p.Detail() == "" || p.Pos.Line < 1 || p.Pos.Column < 1 {
				t.Errorf("problem %+v\n%s", p, text)
			}
		}
		in := inventInput(t, seeded(seed))
		for _, r := range set.All() {
			if !slices.Contains(r.Resources, deployments) {
				return // for something else now
			}
		}
		checkEvaluation(t, set.All(), in)
		if t.Failed() {
			t.Logf("%s", text)
		}
	})
}

// damaged does to a text what an editor, a template engine or a bad disk does:
// each four bytes cut, double, swap or overwrite a place.
func damaged(text, damage []byte) []byte {
	for len(damage) >= 4 && len(text) > 0 {
		at := (int(damage[0])<<8 | int(damage[1])) % len(text)
		end := min(len(text), at+int(damage[3])%40)
		switch damage[2] % 5 {
		case 0:
			text = slices.Delete(slices.Clone(text), at, end)
		case 1:
			text = slices.Insert(slices.Clone(text), end, text[at:end]...)
		case 2:
			text[at] = damage[3]
		case 3:
			text = slices.Insert(slices.Clone(text), at, []byte("${}'\"\\\n:,[]{}")[int(damage[3])%12])
		case 4:
			slices.Reverse(text[at:end])
		}
		damage = damage[4:]
	}
	return text
}
