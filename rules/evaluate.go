package rules

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Evaluate runs rules on an object, each seeing what those before it changed.
// The rules must be in the order of a Set and name in.Resource.
//
// Evaluate is pure and safe for concurrent use; it does not modify its input.
// A result that the same rules would change again for ever is not returned:
// the rules at fault get a NotConvergingError, and the others are evaluated
// without them.
func Evaluate(rules []*Rule, in Input) Result { return ruleList{rules, nil}.evaluate(in) }

// ruleList is rules in their order. index, of just these rules, may be nil: then
// all are evaluated.
type ruleList struct {
	rules []*Rule
	index *Index
}

func (q ruleList) evaluate(in Input) Result {
	first := q.run(&in)
	if len(first.changes) == 0 {
		return Result{Verdicts: first.verdicts, Unmatched: first.unmatched, Object: in.Object, Recheck: first.recheck, passed: first.passed}
	}
	if culprits := q.notConverging(in, first); culprits != nil {
		return evaluateWithout(q.rules, in, first, blame(q.rules, in, culprits))
	}
	requests, failed := compose(in, first)
	if failed != nil {
		errs := map[*Rule]error{}
		for _, r := range failed.rules {
			errs[r] = &EvaluationError{"patch", failed.err, r.Secret || first.tainted}
		}
		return evaluateWithout(q.rules, in, first, errs)
	}
	return Result{Verdicts: first.verdicts, Unmatched: first.unmatched, Object: first.object, Requests: requests, Recheck: first.recheck}
}

// chain is what one pass of all rules over a working copy comes to.
type chain struct {
	object    map[string]any
	verdicts  []Verdict
	unmatched []*Rule
	passed    passedOver   // with an index, and without changes
	changes   []ruleChange // of enforced rules, in order
	recheck   time.Time    // the earliest that a rule asks for; zero: none
	tainted   bool         // the object holds what a rule read from Secrets
}

type ruleChange struct {
	rule *Rule
	*change
}

// evaluation is one pass while it is under way. It is used again and again, since
// there is one for each event: nothing that outlives the pass may refer to it.
type evaluation struct {
	chain
	in              Input
	name, namespace string
	mayOptOut       bool
	scope           scope // of the rule that is being evaluated
	space           []uint64
}

var evaluations = sync.Pool{New: func() any { return &evaluation{} }}

// runChain passes all rules over the object once, and evaluates each.
func runChain(rules []*Rule, in Input) chain { return ruleList{rules, nil}.run(&in) }

// run passes all rules over the object once.
func (q ruleList) run(in *Input) chain {
	e, _ := evaluations.Get().(*evaluation)
	e.begin(in)
	if q.index == nil || in.Explain || in.Trace || e.mayOptOut && q.index.anyOptOut {
		e.evaluateAll(q.rules)
	} else {
		e.evaluateSelected(q.index)
	}
	out := e.chain
	*e = evaluation{space: e.space, scope: e.scope.emptied()}
	evaluations.Put(e) // not after a panic
	return out
}

func (e *evaluation) begin(in *Input) {
	e.in = *in
	e.object, e.tainted = in.Object, in.Tainted
	e.name, e.namespace = identity(in.Object)
	e.scope.in, e.scope.start = &e.in, in.Object
	e.mayOptOut = asksToOptOut(in.Object) || asksToOptOut(in.NamespaceObject)
}

func (e *evaluation) evaluateAll(rules []*Rule) {
	for _, r := range rules {
		e.evaluateRule(r, false)
	}
}

// standing is what becomes known of a rule by its evaluation.
type standing int

const (
	passes    standing = iota // there is nothing to change
	unmatched                 // the object is not matched
	told                      // there is a verdict
)

// evaluateRule adds what a rule makes of the working copy. matches says that the
// rule is known to match.
func (e *evaluation) evaluateRule(r *Rule, matches bool) standing {
	s := &e.scope
	s.begin(r, e.object, e.tainted)
	v, changes := s.evaluate(e, matches)
	if e.in.Trace {
		v.Trace = s.trace(v)
	}
	is := passes
	if e.in.Explain || e.in.Trace || v.Outcome == Patch || v.Err != nil || v.OptedOut {
		e.verdicts = append(e.verdicts, v)
		is = told
	}
	if v.Outcome == Skip && !v.OptedOut {
		e.unmatched = append(e.unmatched, r)
		is = unmatched
	}
	e.recheckAt(s.recheck)
	if r.Mode == Audit || changes == nil {
		return is
	}
	e.object = s.object
	e.tainted = e.tainted || taints(r, e.in.Resource)
	for _, change := range changes {
		e.changes = append(e.changes, ruleChange{r, change})
	}
	return is
}

func (c *chain) recheckAt(t time.Time) {
	if c.recheck.IsZero() || !t.IsZero() && t.Before(c.recheck) {
		c.recheck = t
	}
}

func identity(object map[string]any) (name, namespace string) {
	meta, _ := object["metadata"].(map[string]any)
	name, _ = meta["name"].(string)
	namespace, _ = meta["namespace"].(string)
	return name, namespace
}

// evaluate is one rule on a working copy: match, condition, patches, event.
// All patches of a rule are made, or none. With changes, s.object is the
// working copy after them.
func (s *scope) evaluate(e *evaluation, matches bool) (v Verdict, changes []*change) {
	v.Rule = s.rule
	if v.Reason, v.Err = s.skip(e, matches); v.Err != nil && v.Reason == "" {
		v.Outcome = Error
		return v, nil
	} else if v.Reason != "" {
		v.Outcome, v.OptedOut = Skip, s.optedOut
		return v, nil
	}
	if hit, err := s.condition(); err != nil {
		v.Outcome, v.Err = Error, s.failed("condition", err)
		return v, nil
	} else if !hit {
		v.Outcome, v.Reason = Pass, "the condition is false"
		return v, nil
	}
	for i := range s.rule.patches {
		c, after, err := s.rule.patches[i].render(s, s.object, s.in)
		switch {
		case errors.Is(err, patch.ErrNotApplicable), errors.As(err, new(*patch.TestFailedError)):
			v.Reason = err.Error()
		case err != nil:
			v.Outcome, v.Err = Error, s.failed("patch", err)
			return v, nil
		case c != nil:
			changes = append(changes, c)
			s.object = after
		}
	}
	// Patches that undo one another are no change either.
	if changes == nil || patch.Equal(s.start, s.object) {
		v.Outcome = Pass
		if v.Reason == "" {
			v.Reason = "the object already is as the patch wants it"
		}
		return v, nil
	}
	v.Outcome, v.Reason = Patch, ""
	v.Event, v.EventQuotes = s.rule.event.render(s, atStart{s})
	v.Change = &Change{s.rule, changes, s.in.ReplicasPath, s.isSecret()}
	return v, changes
}

// failed says in which part of a rule an error came up. That something is not
// known stays what it is: it is no fault of the rule.
func (s *scope) failed(part string, err error) error {
	var unknown *UnknownError
	if errors.As(err, &unknown) {
		return unknown
	}
	return &EvaluationError{part, err, s.isSecret()}
}

// skip says why the rule does not look at the object; empty: it does. It also
// sets when the rule wants to be asked again. matches says that the match block is
// known to select the object.
func (s *scope) skip(e *evaluation, matches bool) (reason string, err error) {
	ns := s.namespace()
	if !matches {
		if reason := s.rule.match.reason(s.start, ns, e.namespace, e.name); reason != "" {
			return reason, nil
		}
	}
	if s.rule.NeedsNamespace && ns == nil && e.namespace != "" {
		return "", &UnknownError{What: fmt.Sprintf("the Namespace %q", e.namespace)}
	}
	if s.rule.RecheckAfter > 0 {
		s.recheck = s.in.Now.Add(s.rule.RecheckAfter)
	}
	// A Namespace may have been given the annotation by a rule before.
	if !s.rule.OptOut || !e.mayOptOut && !s.isNamespace() {
		return "", nil
	}
	for _, asked := range []optOut{
		optedOut(s.in.Object, "the object", s.rule.Name, s.in.Now),
		optedOut(ns, "its Namespace", s.rule.Name, s.in.Now),
	} {
		if asked.reason != "" {
			s.recheck, s.optedOut = asked.until, true
			return asked.reason, asked.err
		}
	}
	return "", nil
}

func (s *scope) isNamespace() bool {
	return s.in.Resource.Resource == "namespaces" && s.in.Resource.Group == ""
}

// namespace is the Namespace that the object is in; nil if it is not known, or there
// is none.
func (s *scope) namespace() map[string]any {
	if s.isNamespace() {
		return s.start // a Namespace is in itself
	}
	return s.in.NamespaceObject
}
