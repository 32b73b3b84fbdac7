// Package fieldset says which fields of a JSON-shaped object are needed, and
// works with objects reduced to them: it projects an object to the fields, and
// digests exactly them. It knows nothing of CEL or of rules; those who build a
// Set (rules/expression from checked expressions, rules from patches) decide
// what is needed.
//
// Data flow:
//
//	Of, Presence, … ─┐
//	Builder.Set ─────┴─ Union ──▶ *Set ──┬── Covers    does an informer that has these serve that rule?
//	                                     ├── Project   what the cache keeps
//	                                     └── Digest    has anything changed that is read?
//
// A Set is a trie, immutable and safe for concurrent use; so is each Set below
// it (Field, Items, Values), which a projecting decoder walks. What is kept of
// a value depends on the Set at its place:
//
//	Set                 map                    list                 string, number, bool
//	nil (no Set)        null: nothing is known of it, not even its kind
//	whole               all                    all                  itself
//	keys                all keys, values by    its length, each     itself
//	                    Field or Values        element by Items
//	lists (not keys)    as below               all                  as below
//	none of these       the named fields that  empty                the zero value of
//	                    are present                                 its kind
//
// So every Set that is not nil keeps presence and kind, absent and null apart:
// that is what has(), ?. and null checks read. JSON has two kinds of numbers
// here, int64 and float64, as Kubernetes' decoders make them.
//
// Laws, held by property tests: Project is idempotent; the digest of an object
// is the digest of its projection; where s.Covers(t), equal digests by s are
// equal digests by t, and projecting by s first does not change what t sees.
//
// Objects are never modified. Projections share what they keep whole with the
// object and are read-only.
package fieldset
