package rules

import "slices"

// Enforced returns the same rules as if all were of mode Enforce: for a look at
// what would happen. The set itself stays as it is.
func (s *Set) Enforced() *Set {
	out := slices.Clone(s.rules)
	for i, r := range out {
		if r.Mode != Enforce {
			enforced := *r
			enforced.Mode = Enforce
			out[i] = &enforced
		}
	}
	return newSet(out)
}
