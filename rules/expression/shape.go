package expression

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
)

// ShapeKind is what a schema says that a value is.
type ShapeKind int

const (
	AnyShape         ShapeKind = iota // anything: there is no schema for it
	StringShape                       // dates, durations and base64 too: objects hold them as strings
	IntShape                          //
	NumberShape                       // an int at run time if it is whole, else a double
	BoolShape                         //
	IntOrStringShape                  // of Kubernetes: 1 or "25%"
	QuantityShape                     // of Kubernetes: a string or a number
	ListShape                         // Elem
	MapShape                          // any keys; Elem
	ObjectShape                       // Field and Fields
)

// Shape is what a schema says of a value. It is immutable.
type Shape interface {
	Kind() ShapeKind
	// ID is the same for what is described by one place of a schema, and
	// different for all else. Only objects need one.
	ID() string
	// Name is what messages call an object: the name of its type, or of its
	// field.
	Name() string
	// Elem is that of the elements of a list, or of the values of a map.
	Elem() Shape
	// Field is that of a field of an object, and false if it has none of that
	// name. Where an object may have other fields than those of the schema, it
	// is of AnyShape.
	Field(name string) (Shape, bool)
	// Fields are the names of the fields of an object, sorted.
	Fields() []string
	// Enum are the strings that are allowed, none if all are.
	Enum() []string
}

// MayFit reports whether a value of a type can stand where a shape is
// described; what can only be known at run time can.
func (t Type) MayFit(s Shape) bool { return mayFit(t.cel, s) }

func mayFit(t *types.Type, s Shape) bool {
	if inner, ok := unwrapOptional(t); ok { // an absent one is left out
		t = inner
	}
	kind := s.Kind()
	if kind == AnyShape {
		return true
	}
	switch t.Kind() {
	case types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind:
		return kind == StringShape || kind == IntOrStringShape || kind == QuantityShape
	case types.IntKind, types.UintKind, types.DoubleKind: // a whole double is written as an int
		return kind == IntShape || kind == NumberShape || kind == IntOrStringShape || kind == QuantityShape
	case types.BoolKind:
		return kind == BoolShape
	case types.ListKind:
		return kind == ListShape && mayFit(t.Parameters()[0], s.Elem())
	case types.MapKind:
		return kind == ObjectShape || kind == MapShape && mayFit(t.Parameters()[1], s.Elem())
	case types.StructKind:
		return kind == ObjectShape || kind == MapShape
	}
	return true // null removes, and all else is not known
}

// shapeTypes gives the checker a type for each object that a schema describes,
// when it is first met: schemas refer to themselves.
type shapeTypes struct {
	types.Provider // of the language
	objects        map[string]Shape
}

// objectMark begins the names of types of objects: no identifier does.
const objectMark = "@"

func objectName(s Shape) string { return objectMark + s.Name() + objectMark + s.ID() }

// maxElems is how deeply lists and maps may hold one another before their
// elements count as unknown.
const maxElems = 10

// of returns the type of what a shape describes; nil is anything.
func (s *shapeTypes) of(shape Shape) *types.Type { return s.within(shape, 0) }

func (s *shapeTypes) within(shape Shape, depth int) *types.Type {
	if shape == nil || depth > maxElems {
		return types.DynType
	}
	switch shape.Kind() {
	case StringShape:
		return types.StringType
	case IntShape:
		return types.IntType
	case BoolShape:
		return types.BoolType
	case ListShape:
		return types.NewListType(s.within(shape.Elem(), depth+1))
	case MapShape:
		return types.NewMapType(types.StringType, s.within(shape.Elem(), depth+1))
	case ObjectShape:
		name := objectName(shape)
		s.objects[name] = shape
		return types.NewObjectType(name)
	}
	return types.DynType
}

// object is the shape of an object's type, nil of any other.
func (s *shapeTypes) object(t *types.Type) Shape {
	if t == nil || t.Kind() != types.StructKind {
		return nil
	}
	return s.objects[t.TypeName()]
}

// FindStructType implements types.Provider.
func (s *shapeTypes) FindStructType(name string) (*types.Type, bool) {
	if _, ok := s.objects[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return s.Provider.FindStructType(name)
}

// FindStructFieldType implements types.Provider.
func (s *shapeTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	shape, ok := s.objects[name]
	if !ok {
		return s.Provider.FindStructFieldType(name, field)
	}
	below, ok := shape.Field(field)
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: s.of(below)}, true
}

// holdsObject reports whether a type is that of an object, or has one in it.
func holdsObject(t *types.Type) bool {
	if t.Kind() == types.StructKind {
		return strings.HasPrefix(t.TypeName(), objectMark)
	}
	for _, p := range t.Parameters() {
		if holdsObject(p) {
			return true
		}
	}
	return false
}

func unwrapOptional(t *types.Type) (*types.Type, bool) {
	if t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type" {
		return t.Parameters()[0], true
	}
	return t, false
}

// Spell names the type as people do: objects by the name of their schema. The
// zero Type has no name.
func (t Type) Spell() string {
	if t.cel == nil {
		return ""
	}
	return spell(t.cel)
}

// spell writes a type as people call it: objects by the name of their schema.
func spell(t *types.Type) string {
	switch t.Kind() {
	case types.StructKind:
		name, _, _ := strings.Cut(strings.TrimPrefix(t.TypeName(), objectMark), objectMark)
		return name
	case types.ListKind:
		return fmt.Sprintf("list(%s)", spell(t.Parameters()[0]))
	case types.MapKind:
		return fmt.Sprintf("map(%s, %s)", spell(t.Parameters()[0]), spell(t.Parameters()[1]))
	case types.NullTypeKind:
		return "null"
	case types.TimestampKind:
		return "timestamp"
	case types.DurationKind:
		return "duration"
	}
	if inner, ok := unwrapOptional(t); ok {
		return fmt.Sprintf("optional(%s)", spell(inner))
	}
	return t.String()
}
