package rules

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Input is all that an evaluation may read.
type Input struct {
	Resource schema.GroupVersionResource
	// Object is the object in the version that Resource names, as the API
	// server's JSON decodes: whole numbers are int64. It is never modified.
	Object map[string]any
	// NamespaceObject is the Namespace that the object is in, whole. Nil for
	// cluster-scoped objects, and where no rule needs it.
	NamespaceObject map[string]any
	// Lookups answers what the rules look up. Nil: nothing can be.
	Lookups Lookups
	// Schema is that of the object's kind. Nil: it is not known, and rules that
	// apply a configuration make no decision.
	Schema Schema
	// Now is the time of the evaluation.
	Now time.Time
	// ReplicasPath is where the resource keeps what its scale subresource calls
	// spec.replicas. Nil: it has none, or it is not known.
	ReplicasPath []string
	// HasStatus says that the resource has a status subresource, so that the
	// server drops what is written to status elsewhere. False: it has none, or
	// it is not known.
	HasStatus bool
	// Tainted says that Object holds what a rule that reads Secrets has made of
	// it in this decision: what any rule tells of it is not to be shown.
	Tainted bool
	// Explain asks for verdicts of all rules, not only of those that change
	// the object or fail.
	Explain bool
	// Trace asks for Explain, and for how each rule came to its verdict. It
	// changes no verdict; it evaluates everything several times.
	Trace bool
}

// Schema merges partial objects into objects of one kind.
type Schema interface {
	// Merge returns the object with the configuration merged in, lists by the
	// keys of their elements; see gvr/openapi. It modifies neither.
	Merge(object, config map[string]any) (map[string]any, error)
}

// Outcome is what a rule makes of an object.
type Outcome string

const (
	Skip  Outcome = "Skip"  // the object is not matched
	Pass  Outcome = "Pass"  // matched, nothing to change
	Patch Outcome = "Patch" // the rule changes the object
	Error Outcome = "Error" // no decision: it never counts as a match
)

// Verdict is what one rule makes of an object.
type Verdict struct {
	Rule    *Rule
	Outcome Outcome
	Reason  string // why Skip or Pass
	// OptedOut: skipped because the object, or its Namespace, asks for it.
	OptedOut bool
	// Err is, with Error, an *EvaluationError, an *UnknownError or a
	// *NotConvergingError; with Skip, what is wrong with an opt-out.
	Err   error
	Event Event // with Patch: what to tell on the object after the fix
	// EventQuotes says that the message of Event could not be evaluated, and quotes
	// why: that may hold values of the object, and is not for a log.
	EventQuotes bool
	// Change is, with Patch, what the rule changes by itself.
	Change *Change
	// Trace is how the rule came to it, with Input.Trace.
	Trace *Trace
}

// Event is what is told on an object after a fix.
type Event struct{ Reason, Message string }

// Result is what the rules make of an object together.
type Result struct {
	// Verdicts are in the order of evaluation. Without Input.Explain they hold
	// outcomes Patch and Error, and opt-outs, only.
	Verdicts []Verdict
	// Unmatched are the rules whose match does not select the object, in their
	// order. Rules in neither of both pass: there is nothing to change. If Passed,
	// those that were passed over are not among them.
	Unmatched []*Rule
	// Object is the object after all enforced changes. It shares with
	// Input.Object what no rule changed, and is read-only.
	Object map[string]any
	// Requests are what has to be sent, in this order: at most one for the
	// object, one for status, one for scale. Empty: the object is right.
	Requests []Request
	// Recheck is when the object has to be evaluated again even if nothing
	// changes. Zero: never.
	Recheck time.Time

	passed passedOver
}

// UnknownError says that something which a rule needs to know beside the object
// is not known: what it looks up, or the object's Namespace. It decides
// nothing until that is.
type UnknownError struct {
	What   string
	Err    error // may be nil
	Schema bool  // it is the schema of the kind
}

func (e *UnknownError) Error() string {
	if e.Err == nil {
		return e.What + " is not known"
	}
	return fmt.Sprintf("%s is not known: %v", e.What, e.Err)
}
func (e *UnknownError) Unwrap() error { return e.Err }

// EvaluationError says that a rule could not be evaluated on an object. The
// rule neither matches nor patches; trying again is of use only when the
// object or the rule has changed.
type EvaluationError struct {
	Part string // condition, patch
	Err  error
	// Secret says that Err may hold data of a Secret: Error leaves it out.
	Secret bool
}

func (e *EvaluationError) Error() string {
	if e.Secret {
		return fmt.Sprintf("evaluate the %s: it failed (the rule reads Secrets: what failed is not shown)", e.Part)
	}
	return fmt.Sprintf("evaluate the %s: %v", e.Part, e.Err)
}
func (e *EvaluationError) Unwrap() error { return e.Err }

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
