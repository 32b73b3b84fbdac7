package lint

import (
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// shape is a place in a schema with references resolved: what the schema says
// of the value that stands there. A nil *shape is not used; anything is anyShape.
type shape struct {
	definitions map[string]*spec.Schema
	// schema is what is meant, place what stands there: they differ where place
	// is a reference, which may have marks of its own.
	schema, place *spec.Schema
	id, name      string
	kind          expression.ShapeKind
	fields        map[string]*shape // those that were asked for
	elem          *shape            // likewise
}

var _ expression.Shape = (*shape)(nil)

// anyShape is where there is no schema.
var anyShape = &shape{schema: &spec.Schema{}, place: &spec.Schema{}}

const (
	quantityName = "io.k8s.apimachinery.pkg.api.resource.Quantity"
	maxRefs      = 10 // definitions that do nothing but refer to another one
)

// rootShape is that of a kind.
func rootShape(s Schema) (*shape, error) {
	root, definitions, err := s.Definitions()
	if err != nil {
		return nil, err
	}
	at := &shape{definitions: definitions}
	return at.below(definitions[root], root, root[strings.LastIndexByte(root, '.')+1:]), nil
}

// below makes the shape of a schema within this one.
func (s *shape) below(place *spec.Schema, id, name string) *shape {
	if place == nil {
		return anyShape
	}
	out := &shape{definitions: s.definitions, schema: place, place: place, id: id, name: name}
	for range maxRefs {
		ref := out.schema.Ref.String()
		if ref == "" && len(out.schema.AllOf) == 1 && len(out.schema.Type) == 0 {
			ref = out.schema.AllOf[0].Ref.String()
		}
		if ref == "" {
			break
		}
		out.id = path.Base(ref)
		out.name = out.id[strings.LastIndexByte(out.id, '.')+1:]
		if out.schema = s.definitions[out.id]; out.schema == nil {
			return anyShape
		}
	}
	out.kind = out.kindOf()
	return out
}

func (s *shape) kindOf() expression.ShapeKind {
	switch {
	case s.id == quantityName:
		return expression.QuantityShape
	case s.marked("x-kubernetes-int-or-string"), s.schema.Format == "int-or-string":
		return expression.IntOrStringShape
	case len(s.schema.Type) != 1: // there is no telling
		return expression.AnyShape
	}
	switch s.schema.Type[0] {
	case "string":
		return expression.StringShape
	case "integer":
		return expression.IntShape
	case "number":
		return expression.NumberShape
	case "boolean":
		return expression.BoolShape
	case "array":
		return expression.ListShape
	case "object":
		if len(s.schema.Properties) > 0 {
			return expression.ObjectShape
		}
		return expression.MapShape
	}
	return expression.AnyShape
}

// extension is a mark that stands at the place, or else in what it refers to.
func (s *shape) extension(name string) any {
	if v, ok := s.place.Extensions[name]; ok {
		return v
	}
	return s.schema.Extensions[name]
}

func (s *shape) marked(name string) bool { return s.extension(name) == true }

// Kind implements expression.Shape.
func (s *shape) Kind() expression.ShapeKind { return s.kind }

// ID implements expression.Shape.
func (s *shape) ID() string { return s.id }

// Name implements expression.Shape.
func (s *shape) Name() string { return s.name }

// Elem implements expression.Shape.
func (s *shape) Elem() expression.Shape { return s.element() }

// Field implements expression.Shape.
func (s *shape) Field(name string) (expression.Shape, bool) {
	if f := s.field(name); f != nil {
		return f, true
	}
	return nil, false
}

// element is the shape of the elements of a list or the values of a map.
func (s *shape) element() *shape {
	if s.kind == expression.AnyShape { // anyShape is shared: nothing is written to it
		return anyShape
	}
	if s.elem != nil {
		return s.elem
	}
	s.elem = anyShape
	switch s.kind {
	case expression.ListShape:
		if items := s.schema.Items; items != nil {
			s.elem = s.below(items.Schema, s.id+".items", strings.TrimSuffix(s.name, "s"))
		}
	case expression.MapShape, expression.ObjectShape:
		if more := s.schema.AdditionalProperties; more != nil {
			s.elem = s.below(more.Schema, s.id+".additionalProperties", s.name)
		}
	}
	return s.elem
}

// field is the shape of a field of an object, nil if it has none of that name.
func (s *shape) field(name string) *shape {
	if s.kind != expression.ObjectShape {
		return anyShape
	}
	if f, ok := s.fields[name]; ok {
		return f
	}
	var f *shape
	if property, ok := s.schema.Properties[name]; ok {
		f = s.below(&property, s.id+"."+name, name)
	} else if s.open() {
		f = s.element()
	}
	if s.fields == nil {
		s.fields = map[string]*shape{}
	}
	s.fields[name] = f
	return f
}

// open reports whether an object may have other fields than those of the schema.
func (s *shape) open() bool {
	more := s.schema.AdditionalProperties
	return s.marked("x-kubernetes-preserve-unknown-fields") || more != nil && (more.Allows || more.Schema != nil)
}

// Fields implements expression.Shape.
func (s *shape) Fields() []string { return slices.Sorted(maps.Keys(s.schema.Properties)) }

// Enum implements expression.Shape.
func (s *shape) Enum() []string {
	var out []string
	for _, v := range s.schema.Enum {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	if len(out) == 0 && s.kind == expression.StringShape {
		return builtinEnum(s.id)
	}
	return out
}

// listKeys are the fields that tell the elements of a list from one another.
// keyed is false where a list is only ever replaced whole; sets are keyed by
// their elements themselves, without keys. It is what k8s.io/kube-openapi's
// schemaconv makes of the marks.
func (s *shape) listKeys() (keys []string, keyed bool) {
	switch s.extension("x-kubernetes-list-type") {
	case "map":
		names, _ := s.extension("x-kubernetes-list-map-keys").([]any)
		for _, name := range names {
			if name, ok := name.(string); ok {
				keys = append(keys, name)
			}
		}
		return keys, true
	case "set":
		return nil, true
	case nil:
		if strategy, _ := s.extension("x-kubernetes-patch-strategy").(string); strategy == "merge" || strategy == "merge,retainKeys" {
			if key, ok := s.extension("x-kubernetes-patch-merge-key").(string); ok {
				keys = []string{key}
			}
			return keys, true
		}
	}
	return nil, false
}

// atomicMap reports whether a map or object is only ever replaced whole.
func (s *shape) atomicMap() bool { return s.extension("x-kubernetes-map-type") == "atomic" }

// immutable reports whether the schema itself says that the value never
// changes.
func (s *shape) immutable() bool {
	for _, from := range []*spec.Schema{s.place, s.schema} {
		validations, _ := from.Extensions["x-kubernetes-validations"].([]any)
		for _, v := range validations {
			validation, _ := v.(map[string]any)
			rule, _ := validation["rule"].(string)
			if rule = strings.Join(strings.Fields(rule), ""); rule == "self==oldSelf" || rule == "oldSelf==self" {
				return true
			}
		}
	}
	return false
}
