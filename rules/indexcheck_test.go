package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outcomes is what rules made of an object, as the engine counts it.
func (r *Result) outcomes(all []*Rule) map[string]string {
	out := map[string]string{}
	for _, rule := range all {
		out[rule.Name] = "pass"
	}
	for _, rule := range r.Unmatched {
		out[rule.Name] = "no match"
	}
	for _, v := range r.Verdicts {
		out[v.Rule.Name] = "verdict"
	}
	return out
}

// CheckCounts holds what an index counts of a result to what all rules made of the
// object.
func CheckCounts(t testing.TB, x *Index, want, got Result) {
	t.Helper()
	counts := got.outcomes(x.rules)
	if got.Passed() {
		tally := x.NewTally()
		tally.Count(&got)
		tally.Count(&got)
		tally.Drain(func(r *Rule, passed, unmatched int64) {
			switch {
			case passed == 2 && unmatched == 0:
				counts[r.Name] = "pass"
			case passed == 0 && unmatched == 2:
				counts[r.Name] = "no match"
			case passed == 0 && unmatched == 0:
				counts[r.Name] = "verdict"
			default:
				t.Errorf("rule %s: of 2 objects it passed %d, and %d did not match", r.Name, passed, unmatched)
			}
		})
		if tally.Results() != 0 {
			t.Error("a tally that was drained is not empty")
		}
	}
	if diff := cmp.Diff(want.outcomes(x.rules), counts); diff != "" {
		t.Errorf("the counts differ (-all rules +index):\n%s", diff)
	}
}

// Candidates is how many rules an index evaluates on an object.
func (x *Index) Candidates(in Input) (n int) {
	e := &evaluation{}
	e.begin(&in)
	s := x.find(e)
	for i, ok := s.candidates.next(0); ok; i, ok = s.candidates.next(i + 1) {
		n++
	}
	return n
}
