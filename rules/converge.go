package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// NotConvergingError says that a rule would change its own result again: it
// appends for ever, counts, or another rule undoes what it does.
type NotConvergingError struct {
	Rules []string // all that keep changing the object, by name
}

func (e *NotConvergingError) Error() string {
	if len(e.Rules) == 1 {
		return "the rule does not converge: it would change its own result again"
	}
	return fmt.Sprintf("the rules %s do not converge: each would change again what the others leave", strings.Join(e.Rules, ", "))
}

// How often the rules are run on their own result before those that still
// change it are called not converging: once for each rule, since each may wait
// for one that comes after it, within bounds.
const minPasses, maxPasses = 4, 200

// ticks is for how many seconds the rules may go on changing their result. More
// than one, because a second may be the one in which an age is reached or an
// hour begins; what depends on the very moment changes it in all of them.
const ticks = 3

// notConverging runs the rules on their own result until nothing changes any
// more, also not a second later. It returns those that do not come to rest, nil
// if all do.
func (q ruleList) notConverging(in Input, first chain) map[*Rule]bool {
	last := first
	var culprits map[*Rule]bool
	in.Trace = false
	for range ticks {
		before := changing(last)
		in.Now = in.Now.Add(time.Second)
		in.Object = last.object
		if last = q.run(&in); len(last.changes) == 0 {
			return nil
		}
		culprits = changing(last)
		if never := q.restless(in, before, &last); never != nil {
			return never
		}
	}
	return culprits
}

// restless runs the rules within one moment until nothing changes; it returns
// those that still do in the end, and leaves the last chain in last. Those that
// changed the object in the chain before last are in before.
func (q ruleList) restless(in Input, before map[*Rule]bool, last *chain) map[*Rule]bool {
	for range min(max(minPasses, len(q.rules)), maxPasses) {
		in.Object = last.object
		next := q.run(&in)
		if len(next.changes) == 0 {
			return overstrained(before, *last, next)
		}
		before = changing(*last)
		*last = next
	}
	return changing(*last)
}

// overstrained returns the rules that changed their own result until they could
// do no more, such as one that squares a number; nil if there is none.
func overstrained(before map[*Rule]bool, last, next chain) map[*Rule]bool {
	var out map[*Rule]bool
	again := changing(last)
	for _, v := range next.verdicts {
		if v.Outcome == Error && before[v.Rule] && again[v.Rule] {
			if out == nil {
				out = map[*Rule]bool{}
			}
			out[v.Rule] = true
		}
	}
	return out
}

func changing(c chain) map[*Rule]bool {
	out := map[*Rule]bool{}
	for _, change := range c.changes {
		out[change.rule] = true
	}
	return out
}

// blame says of each rule that does not come to rest with which others it does
// not.
func blame(rules []*Rule, in Input, culprits map[*Rule]bool) map[*Rule]error {
	together := &NotConvergingError{}
	errs := map[*Rule]error{}
	for _, r := range rules {
		switch {
		case !culprits[r]:
		case len(culprits) > 1 && convergesAlone(r, in):
			together.Rules = append(together.Rules, r.Name)
			errs[r] = together
		default:
			errs[r] = &NotConvergingError{[]string{r.Name}}
		}
	}
	return errs
}

// evaluateWithout leaves the rules out that have an error, so that none of
// them holds back another. All are asked again when they wanted to be.
func evaluateWithout(rules []*Rule, in Input, first chain, errs map[*Rule]error) Result {
	rest := slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return errs[r] != nil })
	res := Evaluate(rest, in)
	verdicts := make([]Verdict, 0, len(res.Verdicts)+len(errs))
	others := res.Verdicts
	for _, r := range rules {
		switch {
		case errs[r] != nil:
			verdicts = append(verdicts, Verdict{Rule: r, Outcome: Error, Err: errs[r], Trace: first.traceOf(r)})
		case len(others) > 0 && others[0].Rule == r:
			verdicts = append(verdicts, others[0])
			others = others[1:]
		}
	}
	first.recheckAt(res.Recheck)
	res.Verdicts, res.Recheck = verdicts, first.recheck
	return res
}

func convergesAlone(r *Rule, in Input) bool {
	alone := []*Rule{r}
	in.Trace = false
	return ruleList{alone, nil}.notConverging(in, runChain(alone, in)) == nil
}
