package openapi

import (
	"errors"
	"strconv"
	"strings"
)

// What can be wrong with a field of a configuration. They are the causes in a FieldError.
var (
	// ErrUnknownField: the kind has no such field.
	ErrUnknownField = errors.New("no such field in the schema")
	// ErrWrongType: the schema wants another JSON type.
	ErrWrongType = errors.New("wrong type")
	// ErrAtomic: the schema says that the list or map is replaced whole, which a partial object must not do by accident.
	ErrAtomic = errors.New("the schema makes this list or map atomic, so that it would be replaced whole; use merge or json")
	// ErrElement: an element of a list cannot be told from others, because its keys are absent or those of another element.
	ErrElement = errors.New("list element without an identity of its own")
	// ErrKind: apiVersion or kind of the configuration are not those of the object.
	ErrKind = errors.New("not the kind of the object")
	// ErrSchema: the schema itself is of no use at this place.
	ErrSchema = errors.New("the schema does not describe this value")
)

// FieldError is what is wrong with one field. Path has the form that Kubernetes uses: spec.containers[0].args, where an index
// counts in the list in which the error is.
type FieldError struct {
	Path string
	// Detail is more about Err, without values; it may be empty.
	Detail string
	// Err is one of the causes above.
	Err error
}

func (e *FieldError) Error() string {
	s := e.Path + ": " + e.Err.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

func (e *FieldError) Unwrap() error { return e.Err }

// path is the way to a value, as a list that grows towards the root: the walk costs no allocation while nothing is wrong.
type path struct {
	parent *path
	key    string
	index  int // where key is ""
	isKey  bool
}

func (p *path) String() string {
	if p == nil {
		return "the object"
	}
	var elements []*path
	for ; p != nil; p = p.parent {
		elements = append(elements, p)
	}
	b := strings.Builder{}
	for i := len(elements) - 1; i >= 0; i-- {
		switch e := elements[i]; {
		case !e.isKey:
			b.WriteString("[" + strconv.Itoa(e.index) + "]")
		case strings.ContainsAny(e.key, ".[]/ "):
			b.WriteString("[" + strconv.Quote(e.key) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(e.key)
		}
	}
	return b.String()
}
