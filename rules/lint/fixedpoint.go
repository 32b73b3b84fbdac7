package lint

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

var fixedPoint = &Check{
	ID: "fixed-point", Severity: Error, Summary: "The rule changes its own result again, for ever",
	Run: runFixedPoint,
}

func runFixedPoint(p *Pass) {
	if p.Rule.Rests() {
		return
	}
	for _, resource := range p.Rule.Resources {
		if object, _ := p.trial(resource).Restless(p.Rule); object == nil && !p.restlessInTests(resource) {
			continue
		}
		w, now := restless(p.Rule)
		if now {
			p.Reportf(w.Pos, "no fixed point: what is written to %s depends on the time, so it is another value at each evaluation, and the rule would be stopped; write it once, with a condition that is false afterwards", w.Field())
		} else {
			p.Reportf(w.Pos, "no fixed point: the rule would change %s again and again, so it would be stopped; add a condition that is false once the change is made", w.Field())
		}
		return
	}
}

// restlessInTests reports whether the rule does not rest on an object of its
// tests: one that nobody would make up.
func (p *Pass) restlessInTests(resource schema.GroupVersionResource) bool {
	for _, in := range p.Tests {
		if in.Resource != resource {
			continue
		}
		for _, v := range rules.Evaluate([]*rules.Rule{p.Rule}, in).Verdicts {
			if errors.As(v.Err, new(*rules.NotConvergingError)) {
				return true
			}
		}
	}
	return false
}

// restless is what likely keeps a rule from resting, and whether that is the
// time.
func restless(r *rules.Rule) (*rules.Write, bool) {
	for _, w := range r.Writes() {
		if reads, now := r.PatchReads(w.Patch); now && !w.Constant {
			return w, true
		} else if w.Touches(reads) && !w.Constant {
			return w, false
		}
	}
	for _, w := range r.Writes() {
		if !w.Exact {
			return w, false
		}
	}
	return r.Writes()[0], false
}
