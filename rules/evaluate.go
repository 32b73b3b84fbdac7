package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules/expression"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Input is all that an evaluation may read.
type Input struct {
	Resource schema.GroupVersionResource
	// Object is the object in the version that Resource names, as the API
	// server's JSON decodes: whole numbers are int64. It is never modified.
	Object map[string]any
	// Namespace is where the object is, if it does not say so itself: offline
	// manifests often do not.
	Namespace string
	// ReplicasPath is where the resource keeps what its scale subresource calls
	// spec.replicas. Nil: it has none, or it is not known.
	ReplicasPath []string
	// Explain asks for verdicts of all rules, not only of those that change
	// the object or fail.
	Explain bool
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
	Err     error  // with Error: an *EvaluationError or a *NotConvergingError
	Event   Event  // with Patch: what to tell on the object after the fix
}

// Event is what is told on an object after a fix.
type Event struct{ Reason, Message string }

// Result is what the rules make of an object together.
type Result struct {
	// Verdicts are in the order of evaluation. Without Input.Explain they hold
	// outcomes Patch and Error only.
	Verdicts []Verdict
	// Object is the object after all enforced changes. It shares with
	// Input.Object what no rule changed, and is read-only.
	Object map[string]any
	// Requests are what has to be sent, in this order: at most one for the
	// object, one for status, one for scale. Empty: the object is right.
	Requests []Request
}

// EvaluationError says that a rule could not be evaluated on an object. The
// rule neither matches nor patches; trying again is of use only when the
// object or the rule has changed.
type EvaluationError struct {
	Part string // condition, patch
	Err  error
}

func (e *EvaluationError) Error() string { return fmt.Sprintf("evaluate the %s: %v", e.Part, e.Err) }
func (e *EvaluationError) Unwrap() error { return e.Err }

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
const minPasses, maxPasses = 4, 20

// Evaluate runs rules on an object, each seeing what those before it changed.
// The rules must be in the order of a Set and name in.Resource.
//
// Evaluate is pure and safe for concurrent use; it does not modify its input.
// A result that the same rules would change again for ever is not returned:
// the rules at fault get a NotConvergingError, and the others are evaluated
// without them.
func Evaluate(rules []*Rule, in Input) Result {
	first := runChain(rules, in)
	if len(first.changes) == 0 {
		return Result{Verdicts: first.verdicts, Object: in.Object}
	}
	if culprits := notConverging(rules, in, first); culprits != nil {
		return evaluateWithout(rules, in, blame(rules, in, culprits))
	}
	requests, failed := compose(in.Object, first)
	if failed != nil {
		errs := map[*Rule]error{}
		for _, r := range failed.rules {
			errs[r] = &EvaluationError{"patch", failed.err}
		}
		return evaluateWithout(rules, in, errs)
	}
	return Result{Verdicts: first.verdicts, Object: first.object, Requests: requests}
}

// notConverging runs the rules on their own result until nothing changes; it
// returns those that do not come to rest, nil if all do.
func notConverging(rules []*Rule, in Input, first chain) map[*Rule]bool {
	last := first
	for range min(max(minPasses, len(rules)), maxPasses) {
		in.Object = last.object
		next := runChain(rules, in)
		if len(next.changes) == 0 {
			return nil
		}
		last = next
	}
	culprits := map[*Rule]bool{}
	for _, c := range last.changes {
		culprits[c.rule] = true
	}
	return culprits
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
// them holds back another.
func evaluateWithout(rules []*Rule, in Input, errs map[*Rule]error) Result {
	rest := slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool { return errs[r] != nil })
	res := Evaluate(rest, in)
	verdicts := make([]Verdict, 0, len(res.Verdicts)+len(errs))
	others := res.Verdicts
	for _, r := range rules {
		switch {
		case errs[r] != nil:
			verdicts = append(verdicts, Verdict{Rule: r, Outcome: Error, Err: errs[r]})
		case len(others) > 0 && others[0].Rule == r:
			verdicts = append(verdicts, others[0])
			others = others[1:]
		}
	}
	res.Verdicts = verdicts
	return res
}

func convergesAlone(r *Rule, in Input) bool {
	alone := []*Rule{r}
	return notConverging(alone, in, runChain(alone, in)) == nil
}

// chain is one pass of all rules over a working copy.
type chain struct {
	object   map[string]any
	verdicts []Verdict
	changes  []ruleChange // of enforced rules, in order
}

type ruleChange struct {
	rule *Rule
	*change
}

func runChain(rules []*Rule, in Input) chain {
	c := chain{object: in.Object}
	name, namespace := identity(in)
	for _, r := range rules {
		v, changes, after := r.evaluate(in, c.object, namespace, name)
		if in.Explain || v.Outcome == Patch || v.Outcome == Error {
			c.verdicts = append(c.verdicts, v)
		}
		if r.Mode == Audit {
			continue
		}
		c.object = after
		for _, change := range changes {
			c.changes = append(c.changes, ruleChange{r, change})
		}
	}
	return c
}

func identity(in Input) (name, namespace string) {
	meta, _ := in.Object["metadata"].(map[string]any)
	name, _ = meta["name"].(string)
	if namespace, _ = meta["namespace"].(string); namespace == "" {
		namespace = in.Namespace
	}
	return name, namespace
}

// evaluate is one rule on a working copy: match, condition, patches, event.
// All patches of a rule are made, or none.
func (r *Rule) evaluate(in Input, working map[string]any, namespace, name string) (Verdict, []*change, map[string]any) {
	v := Verdict{Rule: r}
	if v.Reason = r.match.reason(working, namespace, name); v.Reason != "" {
		v.Outcome = Skip
		return v, nil, working
	}
	s := &scope{rule: r, object: working, start: working}
	if hit, err := s.condition(); err != nil {
		v.Outcome, v.Err = Error, &EvaluationError{"condition", err}
		return v, nil, working
	} else if !hit {
		v.Outcome, v.Reason = Pass, "the condition is false"
		return v, nil, working
	}
	var changes []*change
	for i := range r.patches {
		c, after, err := r.patches[i].render(s, s.object, in.ReplicasPath)
		switch {
		case errors.Is(err, patch.ErrNotApplicable):
			v.Reason = err.Error()
		case err != nil:
			v.Outcome, v.Err = Error, &EvaluationError{"patch", err}
			return v, nil, working
		case c != nil:
			changes = append(changes, c)
			s.object = after
		}
	}
	// Patches that undo one another are no change either.
	if changes == nil || patch.Equal(working, s.object) {
		v.Outcome = Pass
		if v.Reason == "" {
			v.Reason = "the object already is as the patch wants it"
		}
		return v, nil, working
	}
	after := s.object
	s.object = working // the event tells of the object before the change
	v.Outcome, v.Reason, v.Event = Patch, "", r.event.render(r, s)
	return v, changes, after
}

// variablePrefix stands before the names of variables in CEL.
const variablePrefix = "variables."

// scope gives the expressions of one rule, on one object, their names.
type scope struct {
	rule   *Rule
	object map[string]any // what `object` is now: patches see those before them
	start  map[string]any // what variables are computed from
	vars   []lazyValue    // like rule.variables; nil until one is read
}

type lazyValue struct {
	done bool
	val  expression.Value
	err  error
}

func (s *scope) condition() (bool, error) {
	if s.rule.condition == nil {
		return true, nil
	}
	v, err := s.rule.condition.Eval(s)
	if err != nil {
		return false, err
	}
	return v.Bool()
}

// Resolve implements expression.Resolver.
func (s *scope) Resolve(name string) (any, error) {
	if name == "object" {
		return s.object, nil
	}
	return s.variable(name[len(variablePrefix):])
}

// variable evaluates a variable when it is first read, and never again.
func (s *scope) variable(name string) (any, error) {
	if s.vars == nil {
		s.vars = make([]lazyValue, len(s.rule.variables))
	}
	for i := range s.rule.variables {
		if s.rule.variables[i].name != name {
			continue
		}
		lazy := &s.vars[i]
		if !lazy.done {
			lazy.val, lazy.err = s.rule.variables[i].program.Eval(atStart{s})
			lazy.done = true
		}
		return lazy.val, lazy.err
	}
	return nil, fmt.Errorf("no variable %q", name) // the checker excludes this
}

// atStart is the scope with the object as it was before the rule's patches, so
// that a variable's value does not depend on when it is first read.
type atStart struct{ *scope }

func (s atStart) Resolve(name string) (any, error) {
	if name == "object" {
		return s.start, nil
	}
	return s.scope.Resolve(name)
}

// DefaultReason is the reason of events of rules that do not name one.
const DefaultReason = "Rectified"

// maxMessage is the longest event message that the API server takes.
const maxMessage = 1024

type eventTemplate struct {
	reason  string
	message mixed // nil: a default
}

// render never fails: a fix is not held back because it cannot be described.
func (e eventTemplate) render(r *Rule, names expression.Resolver) Event {
	message := fmt.Sprintf("changed by rule %s", r.Name)
	if e.message != nil {
		m, err := e.message.render(names)
		if err != nil {
			m = fmt.Sprintf("%s (its message could not be evaluated: %v)", message, err)
		}
		message = m
	}
	return Event{Reason: e.reason, Message: truncate(message, maxMessage)}
}

func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const dots = "…"
	cut := n - len(dots)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + dots
}
