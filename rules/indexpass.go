package rules

// Evaluate returns what the function Evaluate returns for the rules of the index,
// except for Result.Unmatched, which is without the rules that were passed over: a
// Tally counts those.
func (x *Index) Evaluate(in Input) Result { return ruleList{x.rules, x}.evaluate(in) }

// evaluateSelected evaluates the rules that an index selects. When one changes the
// object, all after it are evaluated.
func (e *evaluation) evaluateSelected(x *Index) {
	s := x.find(e)
	var exceptions []exception
	for i, ok := s.candidates.next(0); ok; i, ok = s.candidates.next(i + 1) {
		matches := s.matches(x, i)
		switch e.evaluateRule(x.rules[i], matches) {
		case told:
			exceptions = append(exceptions, exception{rule: int32(i)})
		case passes:
			if !matches {
				exceptions = append(exceptions, exception{rule: int32(i), passes: true})
			}
		}
		if len(e.changes) > 0 {
			e.unmatched = x.unmatchedBefore(i, s, exceptions)
			e.evaluateAll(x.rules[i+1:])
			return
		}
	}
	e.passed = passedOver{index: x, matching: s.matching, exceptions: exceptions}
}

// selected are the rules that an object can concern.
type selected struct {
	candidates ruleSet
	matching   uint64 // a bit for each group whose match block selects the object
}

// find selects rules for the object of an evaluation. The set is in the space of that.
func (x *Index) find(e *evaluation) selected {
	if cap(e.space) < 2*x.words {
		e.space = make([]uint64, 2*x.words)
	}
	s := selected{candidates: ruleSet(e.space[:x.words])}
	copy(s.candidates, x.always)
	in := &e.in
	x.first.find(in.Object, s.candidates)
	if len(x.second.all) > 0 {
		second := ruleSet(e.space[x.words : 2*x.words])
		copy(second, x.withoutSecond)
		x.second.find(in.Object, second)
		s.candidates.keep(second)
	}
	ns := e.scope.namespace()
	if ns == nil && e.namespace != "" {
		s.candidates.addAll(x.needNamespace)
	}
	for g := range x.groups {
		if x.groups[g].match.reason(in.Object, ns, e.namespace, e.name) == "" {
			s.matching |= 1 << g
		} else {
			s.candidates.remove(x.groups[g].rules)
		}
	}
	return s
}

// matches reports whether the match block of a rule's group selects the object.
func (s *selected) matches(x *Index, rule int) bool {
	return x.groupOf[rule] >= 0 && s.matching&(1<<x.groupOf[rule]) != 0
}

// unmatchedBefore lists the rules before one that do not match.
func (x *Index) unmatchedBefore(rule int, s selected, exceptions []exception) (out []*Rule) {
	for i, r := range x.rules[:rule] {
		switch {
		case len(exceptions) > 0 && int(exceptions[0].rule) == i:
			exceptions = exceptions[1:]
		case !s.matches(x, i):
			out = append(out, r)
		}
	}
	return out
}

// passedOver says of which rules an evaluation through an index tells nothing. The
// zero value: it tells of all.
type passedOver struct {
	index    *Index
	matching uint64
	// exceptions are rules that were evaluated, and are not what their group is: in
	// order.
	exceptions []exception
}

// exception is a rule that was evaluated. Rules of a group that matches are taken to
// pass, all others to be unmatched.
type exception struct {
	rule   int32
	passes bool // it matches, and passes; else there is a verdict
}

// Passed reports whether rules were passed over, so that Unmatched and Verdicts do
// not tell of all: Tally.Count does.
func (r *Result) Passed() bool { return r.passed.index != nil }
