package engine

import (
	"context"
	"slices"

	"github.com/rectifier-dev/rectifier/rules"
)

// objectItself stands for a rule where something is told once of an object, not of
// each rule.
const objectItself = ""

// reportBadOptOut tells what is wrong with how an object, or its Namespace, asks to
// be left alone: once for all rules, since all of them read the same annotation.
func (d *decision) reportBadOptOut(ctx context.Context, ran []*rules.Rule, result rules.Result) {
	about, err := d.badOptOut(ran, result)
	if err == nil {
		if d.state != nil {
			delete(d.state.reported, objectItself)
		}
		return
	}
	if s := d.remember(); s.reported[objectItself] != err.Error() {
		s.reported[objectItself] = err.Error()
		d.recordProblem(ctx, about, reasonBadOptOut, err.Error())
	}
}

func (d *decision) badOptOut(ran []*rules.Rule, result rules.Result) (*rules.Rule, error) {
	for _, v := range result.Verdicts {
		if v.Outcome == rules.Skip && v.Err != nil {
			return v.Rule, v.Err
		}
	}
	matched := func() []*rules.Rule {
		return slices.DeleteFunc(slices.Clone(ran), func(r *rules.Rule) bool {
			return slices.Contains(result.Unmatched, r) || slices.ContainsFunc(result.Verdicts, func(v rules.Verdict) bool { return v.Rule == r && v.OptedOut })
		})
	}
	return rules.MisspeltOptOut(d.object.Object, d.namespace, matched, d.policy.rules, d.now)
}
