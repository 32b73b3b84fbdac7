package rules

// Tally counts what the rules of an index make of objects, as far as no verdict
// tells of it, without a step for each rule. It is not safe for concurrent use.
type Tally struct {
	index    *Index
	results  int64
	matching [maxGroups]int64 // of these results, how often the match block of a group selected the object
	// What is different for single rules; by rule.
	passes, unmatched []int64
}

// NewTally makes a tally of results of the index.
func (x *Index) NewTally() *Tally {
	return &Tally{index: x, passes: make([]int64, len(x.rules)), unmatched: make([]int64, len(x.rules))}
}

// Count adds a result of the index for which Passed is true. Its verdicts are not
// counted: they are the caller's.
func (t *Tally) Count(r *Result) {
	t.results++
	for g := range t.index.groups {
		if r.passed.matching&(1<<g) != 0 {
			t.matching[g]++
		}
	}
	for _, e := range r.passed.exceptions {
		if g := t.index.groupOf[e.rule]; g >= 0 && r.passed.matching&(1<<g) != 0 {
			t.passes[e.rule]--
		} else {
			t.unmatched[e.rule]--
		}
		if e.passes {
			t.passes[e.rule]++
		}
	}
}

// Results is how many results have been counted.
func (t *Tally) Results() int64 { return t.results }

// Drain tells for each rule how many objects it passed and did not match, and
// begins anew.
func (t *Tally) Drain(each func(r *Rule, passed, unmatched int64)) {
	if t.results == 0 {
		return
	}
	for i, r := range t.index.rules {
		var matching int64
		if g := t.index.groupOf[i]; g >= 0 {
			matching = t.matching[g]
		}
		each(r, matching+t.passes[i], t.results-matching+t.unmatched[i])
	}
	t.results, t.matching = 0, [maxGroups]int64{}
	clear(t.passes)
	clear(t.unmatched)
}
