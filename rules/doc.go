// Package rules is the rule language of Rectifier: the types of the file
// format, loading, compilation and evaluation. It is pure: it knows no
// cluster, no clock and no client, so the controller and every offline command
// share it and there is no second evaluator.
//
// Data flow:
//
//	files ── Read ──▶ []Source ── Load ──▶ *Set (+ []*Problem)
//	                                        │
//	object ────────── Evaluate(rules, Input) ──▶ Result: verdicts, requests
//
// Load is tolerant: what is wrong with one rule is a Problem with its position
// and never stops another rule; Reload does the same for rules that take the
// place of others, which keep their last good version. A Set, and every Rule in it, is immutable and
// safe for concurrent use; run-time state belongs to the engine.
//
// Evaluate takes all rules for one object, in bytewise order of their names,
// on one working copy: a later rule sees what an earlier one changed. The
// object itself comes from an informer's cache and is never modified; the
// working copy shares all that no rule changes. What changed in the end is
// returned as at most one Request per subresource, minus what is already so.
// With Input.Trace it also tells how each rule came to its verdict (trace.go): for
// people, by evaluating the pieces again in the same scope.
//
// Sub-packages: expression is CEL, patch is the algebra of patches on plain
// values, builtin holds the rules that ship with the binary.
package rules
