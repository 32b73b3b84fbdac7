package rules

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// Trial runs rules on objects that are made up of what the rules read, write
// and compare with. It is what can be done where nothing is proved: an object
// that it finds shows what is wrong; that it finds none proves nothing.
type Trial struct {
	Resource     schema.GroupVersionResource
	Kind         string   // empty: not known
	Namespaced   bool     // where it is not known, true
	Schema       Schema   // nil: not known
	ReplicasPath []string // nil: not known
}

// tries is how many objects are made up. Most are far from what a rule is
// about, and cost no more than its condition.
const tries = 400

// maxLate is how often an evaluation may exceed its deadline until the trial is
// given up: the objects are small, so that it is for the rule itself to blame.
const maxLate = 3

// Restless returns an object on which rules do not come to a fixed point, and
// those that would not; nil if none is found. The rules are evaluated in the
// order that they are given in, as if all were enforced, and must name the
// resource. The same rules
// always give the same answer.
func (t Trial) Restless(rs ...*Rule) (object map[string]any, culprits []string) {
	rs = slices.Clone(rs)
	for i, r := range rs {
		enforced := *r
		enforced.Mode = Enforce
		rs[i] = &enforced
	}
	inventor := newInventor(rs)
	late := 0
	for range tries {
		in := inventor.input(t)
		for _, v := range Evaluate(rs, in).Verdicts {
			var never *NotConvergingError
			if errors.As(v.Err, &never) {
				return in.Object, never.Rules
			}
			if errors.Is(v.Err, expression.ErrDeadline) {
				if late++; late == maxLate {
					return nil, nil
				}
			}
		}
	}
	return nil, nil
}
