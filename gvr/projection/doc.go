// Package projection decodes of objects only what is wanted of them, and keeps
// them small.
//
// Where it stands between the server and a store:
//
//	server ──JSON──▶ Serializer ──▶ reflector, FIFO ──Transform──▶ *Object, in the store
//	                 (of the REST client under dynamic.New)              │
//	                                                        Unstructured ▼ when it is looked at
//
// Decoding is divided. When an object arrives its JSON is scanned once: what no
// field set asks for is skipped, and the text of the rest is copied. So a state
// that differs in nothing that anybody reads is told by comparing two short
// texts, and most events end there. Only who looks at the object parses the text,
// into a map of its own.
//
// An Object is immutable. It says of the object what a fieldset.Set promises: to
// evaluate its Unstructured gives what the whole object gives, for all that read
// no more than the set. Whatever has an unusual form is decoded by client-go's own
// decoder, and then reduced.
//
// What is kept is checked as client-go does, so that its text can always be parsed.
// What is skipped is not: there, only the ends of strings and the number of brackets
// are looked at, and malformed JSON, or a number that is too large, goes unnoticed.
package projection
