package projection

import (
	"reflect"
)

// messagePlan is what is kept of one protobuf message: a plan for what the Go type says of
// its fields. It is immutable.
type messagePlan struct {
	fields []*wireField // by number; nil: not kept, or unknown
	// strict says that an unknown field may be one that is kept: a newer server has it.
	strict bool
	// nullable are null in JSON if they are not on the wire: lists and pointers that are
	// nil. All else that is not left out in JSON is on the wire always, be it zero, unless
	// the server is older than the Go type and does not have it in JSON either.
	nullable []*wireField
	count    int // of the fields, for their bits
}

// wireField is a field that is kept. Its JSON is what encoding/json makes of the Go
// type.
type wireField struct {
	key       []byte // of its member in JSON, with quotes and colon
	repeat    repetition
	value     wireValue // of its elements or values, if repeat says so
	plan      *plan     // of the list or map as a whole, or of the value
	omitZero  bool      // zero is left out, or an empty list or map
	isZero    bool      // zero as its type says so is left out
	isPointer bool      // what is on the wire is there, even if zero
	inline    bool      // a message whose fields are those of the message around it
	bit       uint64    // of this field, in a set of those of the message
	role      fieldRole
}

// fieldRole says which fields of an object are not written like others.
type fieldRole uint8

const (
	ordinary fieldRole = iota
	ofMetadata
	ofName
	ofNamespace
	ofUID
	ofResourceVersion
	ofNothing // it is left out
)

type repetition uint8

const (
	once repetition = iota
	isList
	isMap
)

// wireValue is a kind of value on the wire.
type wireValue struct {
	kind wireKind
	// messages are by what is kept of them: a map may keep different things under
	// different keys.
	messages map[*plan]*messagePlan
	message  *messagePlan // the only one
	opaque   reflect.Type // with methods for both encodings
}

type wireKind uint8

const (
	wireString wireKind = iota
	wireBase64
	wireBool
	wireInt32
	wireInt64
	wireUint32
	wireUint64
	wireMessage
	wireOpaque
)

// wireType is the wire type of a value.
func (v *wireValue) wireType() uint64 {
	switch v.kind {
	case wireBool, wireInt32, wireInt64, wireUint32, wireUint64:
		return wireVarint
	}
	return wireBytes
}

// of returns the message of which a plan keeps something.
func (v *wireValue) of(p *plan) *messagePlan {
	if v.message != nil {
		return v.message
	}
	return v.messages[p]
}

// elements is the plan of the elements of a list; all says that they are kept as that
// says, instead of that there is a list.
func (p *plan) elements() (_ *plan, all bool) {
	switch {
	case p == nil:
		return nil, false
	case p.whole || p.lists:
		return wholePlan, true
	}
	return p.items, p.keys
}

// field returns what is kept under a number, or nil.
func (m *messagePlan) field(number uint64) *wireField {
	if number < uint64(len(m.fields)) {
		return m.fields[number]
	}
	return nil
}
