package rules

import "slices"

// Settle evaluates rules on an object, and again on what they made of it, until
// they are at rest: what a controller comes to when it looks at the object after
// each of its writes, in one moment. One pass is not always enough: a rule may
// wait for what one after it does, and a patch by index finds another element
// there each time.
//
// The requests of all passes are returned in order, and Object is what the last
// one leaves. A rule that patched in any pass has the verdict of the first in
// which it did; if it fails on what it made, that verdict follows. Rules that
// neither patch nor fail in any pass have the verdict of the first.
func Settle(rules []*Rule, in Input) Result {
	all := Evaluate(rules, in)
	last := all
	for pass := 0; len(last.Requests) > 0 && pass < maxPasses; pass++ {
		in.Object, in.Tainted = last.Object, in.Tainted || tainted(last, in)
		last = Evaluate(rules, in)
		all.Object = last.Object
		all.Requests = append(slices.Clip(all.Requests), last.Requests...)
		all.Verdicts = laterVerdicts(all.Verdicts, last.Verdicts)
		if all.Recheck.IsZero() || !last.Recheck.IsZero() && last.Recheck.Before(all.Recheck) {
			all.Recheck = last.Recheck
		}
	}
	return all
}

// tainted reports whether a rule that reads Secrets changed the object.
func tainted(r Result, in Input) bool {
	return slices.ContainsFunc(r.Verdicts, func(v Verdict) bool {
		return v.Outcome == Patch && v.Rule.Mode != Audit && taints(v.Rule, in.Resource)
	})
}

// laterVerdicts are the verdicts of two passes together, in the order of rules.
func laterVerdicts(before, after []Verdict) []Verdict {
	var out []Verdict
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Rule.Name < after[0].Rule.Name:
			out, before = append(out, before[0]), before[1:]
			continue
		case len(before) == 0 || after[0].Rule.Name < before[0].Rule.Name:
			out, after = append(out, after[0]), after[1:]
			continue
		}
		switch v, later := before[0], after[0]; {
		case v.Outcome == Patch && later.Outcome == Error:
			out = append(out, v, later)
		case v.Outcome != Patch && (later.Outcome == Patch || later.Outcome == Error):
			out = append(out, later)
		default:
			out = append(out, v) // on the object as it is
		}
		rule := before[0].Rule
		for len(before) > 0 && before[0].Rule == rule {
			before = before[1:]
		}
		for len(after) > 0 && after[0].Rule == rule {
			after = after[1:]
		}
	}
	return out
}
