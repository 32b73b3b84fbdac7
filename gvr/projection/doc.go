// Package projection decodes of objects only what is wanted of them, and keeps
// them small.
//
// Where it stands between the server and a store:
//
//	server ──JSON or──▶ Serializer ──▶ reflector, FIFO ──Transform──▶ *Object, in the store
//	       protobuf     (of the REST client under dynamic.New)              │
//	                                                           Unstructured ▼ when it is looked at
//
// Decoding is divided. When an object arrives it is scanned once: what no field set
// asks for is skipped, and the JSON text of the rest is copied, or written. So a state
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
//
// # Protobuf
//
// Of built-in kinds the server sends protobuf to who asks for it: half of the bytes,
// without names. BuiltinSerializer reads both, each as the content type says. What it
// writes of protobuf is the JSON that the server would have sent, as a value: the same
// maps, lists, nulls and numbers, and nothing where JSON has nothing. The order of the
// members is another one.
//
// No code is generated for that. A messagePlan is compiled from the Go type of the kind
// and what is kept of it: which number is which member, by the struct tags, and what
// encoding/json leaves out. Types with an encoding of their own (Quantity, MicroTime,
// RawExtension…) are decoded and encoded by their methods, and what that gives is scanned.
// A property test holds it against the server's encoders for every built-in kind, and
// another against a real server for all that it has.
//
// What protobuf cannot tell is read as JSON. Some of it is known beforehand: kinds that
// are not built in, and apiVersion and kind of objects inside objects, such as the
// volumeClaimTemplates of a StatefulSet, which are not in protobuf. Some of it an object
// shows: a field number that the Go type does not know, where it may be one that is kept,
// comes from a newer server. Then the object is refused, and its resource has to be read
// anew, as JSON. So is every object whose encoding no server would write.
//
// An older server lacks fields that the Go type has. What is never left out on the wire and
// yet is not there, it does not have in JSON either, and so it is not written. Only for a
// list or a pointer that JSON shows as null, nil and not known look the same; it is null
// then.
//
// In the order of reading: projector.go, plan.go (what is wanted); serializer.go,
// frames.go, event.go, list.go (what comes); keep.go, lex.go, identity.go (the scan of
// JSON); builtin.go, messageplan.go, protobuf.go, wire*.go (of protobuf); object.go,
// meta.go, intern.go (what is stored), parse.go; whole.go (what client-go decoded).
package projection
