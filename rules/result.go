package rules

import (
	"fmt"
	"time"
)

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
