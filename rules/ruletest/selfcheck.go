package ruletest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// What each case checks beside what it expects, and the comparison of what is
// sent.

// repeat holds that the result is a fixed point: that the rules leave alone
// what they made.
func (k *checker) repeat(evaluate Evaluate) {
	if len(k.e.Requests) == 0 {
		return
	}
	result := k.after()
	again := evaluate(result)
	var fresh []string // failures that were not there before
	for _, v := range again.Verdicts {
		if v.Outcome == rules.Error && len(k.failed) == 0 {
			fresh = append(fresh, fmt.Sprintf("rule %s: %v", v.Rule.Name, v.Err))
		}
	}
	switch {
	case len(again.Requests) > 0:
		culprits := slices.DeleteFunc(slices.Clone(again.Verdicts), func(v rules.Verdict) bool { return v.Outcome != rules.Patch })
		f := Failure{Pos: k.c.Pos, Message: "the rules change their own result again: " + strings.Join(names(culprits), ", ")}
		if d := differences(result, withoutPlace(again), nil); len(d) > 0 {
			f.Path, f.Want, f.Got = d[0].at.String(), k.text(d[0].want, d[0].at), k.text(d[0].got, d[0].at)
		}
		k.report.Failures = append(k.report.Failures, f)
	case len(fresh) > 0:
		k.itself("the rules fail on their own result: %s", strings.Join(fresh, "; "))
	}
}

func withoutPlace(e Evaluation) map[string]any {
	return (&checker{e: e}).after()
}

// replay holds that what is sent makes the result of the object.
func (k *checker) replay() {
	got := k.e.Seen
	for _, r := range k.sent() {
		after, err := patch.ApplyOps(r.on, r.ops)
		if err == nil && r.scale {
			spec, _ := after["spec"].(map[string]any)
			after = patch.ApplyMerge(got, nest(k.e.ReplicasPath, spec["replicas"]))
		} else if err == nil {
			after, err = patch.ApplyOps(got, r.ops)
		}
		if err != nil {
			k.itself("what is sent cannot be applied: %v: that is a fault of Rectifier, please report it", err)
			return
		}
		got = after
	}
	if k.e.Seen != nil && !patch.Equal(got, k.e.Result.Object) {
		k.itself("what is sent does not make the result: that is a fault of Rectifier, please report it")
	}
}

// request is a request as operations.
type request struct {
	on    map[string]any // what the operations are about
	ops   []patch.Op
	scale bool // on is a Scale
}

func (k *checker) sent() []request {
	var out []request
	for _, r := range k.e.Requests {
		on, isScale := k.e.Seen, r.Subresource == "scale"
		if isScale {
			on = scaleOf(k.e.Seen, k.e.ReplicasPath)
		}
		out = append(out, request{on, r.Operations(on), isScale})
	}
	return out
}

// scaleOf is the Scale of an object, as far as a patch can be about it.
func scaleOf(object map[string]any, replicasPath []string) map[string]any {
	var v any = object
	for _, key := range replicasPath {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	spec := map[string]any{}
	if v != nil {
		spec["replicas"] = v
	}
	return map[string]any{"spec": spec}
}

func nest(path []string, v any) map[string]any {
	if len(path) == 0 {
		return nil
	}
	if len(path) == 1 {
		return map[string]any{path[0]: v}
	}
	return map[string]any{path[0]: nest(path[1:], v)}
}

// patch compares the operations that are sent, those of all requests in order.
func (k *checker) patch() {
	want := k.c.Expect.Patch
	if want == nil {
		return
	}
	var got []patch.Op
	for _, r := range k.sent() {
		got = append(got, r.ops...)
	}
	same := len(got) == len(want.Ops)
	for i := 0; same && i < len(got); i++ {
		same = sameOp(want.Ops[i], got[i])
	}
	if !same {
		k.fail(want.node, Failure{Field: "expect.patch", Message: "other operations are sent" + k.audited(), Want: k.opsText(want.Ops), Got: k.opsText(got)})
	}
}

func sameOp(a, b patch.Op) bool {
	return a.Op == b.Op && a.Path.String() == b.Path.String() && a.From.String() == b.From.String() &&
		a.HasValue == b.HasValue && patch.Equal(a.Value, b.Value)
}
