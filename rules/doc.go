// Package rules is the rule language of Rectifier: the types of the file
// format, loading, compilation and evaluation. It is pure: it knows no
// cluster, no clock and no client, so the controller and every offline command
// share it and there is no second evaluator.
//
// Data flow:
//
//	files ── Read ──▶ []Source ── Load ──▶ *Set (+ []*Problem)
//	                                        │
//	            ┌───── Fields ──────────────┼───────── NewIndex ─────┐
//	            ▼                           ▼                        ▼
//	what is kept of objects      Evaluate(rules, Input)     Index.Evaluate(Input)
//	                                        │                        │
//	                                        └──▶ Result: verdicts, ◀─┘
//	                                             requests
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
// Fields (fields.go) tells which fields of objects the rules need: on objects reduced
// to those they make what they make of whole ones, which is what lets caches be small.
//
// An Index is for many rules on one resource. It evaluates only those that an object
// can concern, and gives the same result: a rule is filed by its guards, which are
// conjuncts of its condition that ask something of one place (a label is there, a
// value is one of some, or below a bound), and is passed over where one of them is
// false. Where a guard would be an error, or there is none that the index knows, the
// rule is evaluated. In the order of reading:
//
//	index.go          what is filed: first guards, second ones, groups by match block
//	indexguards.go    what a guard is, and how much it is worth
//	indexfinder.go    how guards are found in a condition
//	indexplaces.go    the tree of places by which rules are found
//	indexvalues.go    values that are compared there; indexrelation.go: how
//	indexpass.go      the pass over an object
//	indextally.go     how what was passed over is counted; indexset.go: sets of rules
//
// Sub-packages: expression is CEL, patch is the algebra of patches on plain
// values, builtin holds the rules that ship with the binary.
package rules
