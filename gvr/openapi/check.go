package openapi

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// deduced is schemaconv's name for the type of what has no schema: below x-kubernetes-preserve-unknown-fields, say.
const deduced = "__untyped_deduced_"

// maxProblems bounds an error: a configuration for another kind would otherwise list each of its fields.
const maxProblems = 10

// checker looks for what must not be in a configuration.
type checker struct {
	schema   *smd.Schema
	problems []error
}

func (c *checker) err() error { return errors.Join(c.problems...) }

func (c *checker) add(at *path, cause error, detail string) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, &FieldError{Path: at.String(), Detail: detail, Err: cause})
	}
}

func (c *checker) identity(gvk schema.GroupVersionKind, config map[string]any) {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	for key, want := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
		if have, ok := config[key]; ok && have != want {
			c.add(&path{key: key, isKey: true}, ErrKind, "it is "+want)
		}
	}
}

func (c *checker) value(at *path, ref smd.TypeRef, v any) {
	atom, ok := c.schema.Resolve(ref)
	if !ok || atom == (smd.Atom{}) {
		c.add(at, ErrSchema, "")
		return
	}
	switch v := v.(type) {
	case nil:
	case map[string]any:
		switch {
		case atom.Map == nil:
			c.wrongType(at, atom, "a map")
		case atom.Map.ElementRelationship == smd.Atomic:
			c.add(at, ErrAtomic, "")
		default:
			c.mapItems(at, atom.Map, v)
		}
	case []any:
		switch {
		case atom.List == nil:
			c.wrongType(at, atom, "a list")
		case isDeduced(ref):
			// Where there is no schema there are no keys either: such lists are replaced, as ApplyConfiguration does.
		case atom.List.ElementRelationship != smd.Associative:
			c.add(at, ErrAtomic, "")
		default:
			c.listItems(at, atom.List, v)
		}
	default:
		c.scalar(at, atom, v)
	}
}

func isDeduced(ref smd.TypeRef) bool { return ref.NamedType != nil && *ref.NamedType == deduced }

func (c *checker) mapItems(at *path, t *smd.Map, m map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(m)) { // sorted: the same error every time
		below := &path{parent: at, key: key, isKey: true}
		if ref, ok := fieldType(t, key); ok {
			c.value(below, ref, m[key])
		} else {
			c.add(below, ErrUnknownField, "")
		}
	}
}

// fieldType returns the type of a member of a map: a field's, or that of all other members.
func fieldType(t *smd.Map, key string) (smd.TypeRef, bool) {
	if field, ok := t.FindField(key); ok {
		return field.Type, true
	}
	return t.ElementType, t.ElementType != smd.TypeRef{}
}

func (c *checker) listItems(at *path, t *smd.List, list []any) {
	seen := make(map[string]bool, len(list))
	for i, item := range list {
		below := &path{parent: at, index: i}
		key, err := elementKey(c.schema, t, item)
		switch {
		case err != nil:
			c.add(below, ErrElement, err.Error())
			continue
		case seen[key]:
			c.add(below, ErrElement, "an element before it has the same")
		}
		seen[key] = true
		c.value(below, t.ElementType, item)
	}
}

func (c *checker) scalar(at *path, atom smd.Atom, v any) {
	name, is := "", smd.Scalar("")
	switch v.(type) {
	case string:
		name, is = "a string", smd.String
	case bool:
		name, is = "a boolean", smd.Boolean
	case int64, float64:
		name, is = "a number", smd.Numeric
	default:
		c.add(at, ErrWrongType, fmt.Sprintf("%T is no JSON type", v))
		return
	}
	if atom.Scalar == nil || (*atom.Scalar != is && *atom.Scalar != smd.Untyped) {
		c.wrongType(at, atom, name)
	}
}

func (c *checker) wrongType(at *path, atom smd.Atom, have string) {
	want := "a value of another type"
	switch {
	case atom.Map != nil:
		want = "a map"
	case atom.List != nil:
		want = "a list"
	case atom.Scalar != nil:
		want = map[smd.Scalar]string{smd.String: "a string", smd.Boolean: "a boolean", smd.Numeric: "a number", smd.Untyped: "a scalar"}[*atom.Scalar]
	}
	c.add(at, ErrWrongType, fmt.Sprintf("it is %s, and must be %s", have, want))
}
