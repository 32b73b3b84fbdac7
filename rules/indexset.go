package rules

import "math/bits"

// ruleSet is a set of the rules of an index, by their numbers: a bit for each.
type ruleSet []uint64

func (s ruleSet) add(rules []int32) {
	for _, r := range rules {
		s.addOne(r)
	}
}

func (s ruleSet) addOne(rule int32) { s[rule>>6] |= 1 << (rule & 63) }

// drop takes rules away that their guard has added: each is filed once.
func (s ruleSet) drop(rules []int32) {
	for _, r := range rules {
		s[r>>6] &^= 1 << (r & 63)
	}
}

// keep leaves the rules that are in both sets.
func (s ruleSet) keep(other ruleSet) {
	for i := range s {
		s[i] &= other[i]
	}
}

func (s ruleSet) remove(other ruleSet) {
	for i := range s {
		s[i] &^= other[i]
	}
}

func (s ruleSet) addAll(other ruleSet) {
	for i := range s {
		s[i] |= other[i]
	}
}

// next returns the first rule from a number on, and false if there is none.
func (s ruleSet) next(from int) (int, bool) {
	for word := from >> 6; word < len(s); word++ {
		left := s[word]
		if word == from>>6 {
			left &= ^uint64(0) << (from & 63)
		}
		if left != 0 {
			return word<<6 + bits.TrailingZeros64(left), true
		}
	}
	return 0, false
}
