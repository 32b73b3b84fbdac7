// Package expression is the CEL of Rectifier: the language that a rule may
// use, its compilation, and its evaluation on plain maps. It is the only
// package that imports cel-go (a test of the project holds that), so that a
// move of that module's path touches one folder.
//
// The language is the one of ValidatingAdmissionPolicy in Kubernetes 1.37,
// without authorizer; language.go is the list, and a test compares it with
// k8s.io/apiserver/pkg/cel/environment.
//
// Data flow:
//
//	source ── Env.Compile ──▶ *Program ── Eval(Resolver) ──▶ Value ── Native ──▶ JSON-shaped Go value
//
// An Env is immutable; Env.Declare gives a new one with one more name. A
// Program is immutable and safe for concurrent use. The names that it reads
// are asked of the caller's Resolver, each at the moment when it is needed:
// that is how `variables` are lazy.
//
// Objects are given to CEL as the maps that the decoder made: cel-go then
// walks them without copying, which is about 200 times cheaper than wrapping
// them by an OpenAPI schema (docs/adr/0003-cel-on-raw-maps.md). They are never
// modified.
//
// Which fields of those objects are needed, an Analysis finds in the checked
// expressions (paths.go: what values may be parts of; paths_interpret.go: what
// each construct reads). Caches keep, and digests see, nothing else, so that
// it has to be sound; a property test evaluates all kinds of expressions on
// whole and on projected objects.
//
// What schemas say of the values, a Checker uses to find what cannot be right:
// for tools that judge rules before they run (typed.go; a Shape is what a
// schema says). It decides by what works on plain maps, since that is what is
// evaluated, and changes nothing of a Program.
//
// Expressions that compute patches may use the types of a
// MutatingAdmissionPolicy, Object{…} and JSONPatch{…}: Env.WithPatchTypes.
//
// Program.Explain tells what the parts of an expression give, for people.
//
// Cost is bounded by shape, at compile time: an expression without a
// comprehension is evaluated plainly; one with comprehensions runs under a
// deadline; comprehensions nested deeper than MaxNesting are refused. What an
// evaluation makes is bounded too (limits.go, guards.go): so many bytes of text,
// so many values in a list or map.
//
// The same input gives the same result: comprehensions go through maps in the
// order of their keys (order.go).
package expression
