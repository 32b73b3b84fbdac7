package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
)

// Schema is a JSON Schema, as far as our formats need one. Nothing is referred
// to: a description beside a $ref is not shown by editors.
type Schema struct {
	Dialect     string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`

	Type    string   `json:"type,omitempty"`
	Const   string   `json:"const,omitempty"`
	Enum    []string `json:"enum,omitempty"`
	Default any      `json:"default,omitempty"`

	Pattern   string `json:"pattern,omitempty"`
	MinLength int    `json:"minLength,omitempty"`
	MaxLength int    `json:"maxLength,omitempty"`

	Required             []string           `json:"required,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	PropertyNames        *Schema            `json:"propertyNames,omitempty"`
	MinProperties        int                `json:"minProperties,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"` // false or *Schema

	Items       *Schema `json:"items,omitempty"`
	MinItems    int     `json:"minItems,omitempty"`
	UniqueItems bool    `json:"uniqueItems,omitempty"`

	AnyOf []*Schema `json:"anyOf,omitempty"`
	OneOf []*Schema `json:"oneOf,omitempty"`
	AllOf []*Schema `json:"allOf,omitempty"`
	Not   *Schema   `json:"not,omitempty"`
	If    *Schema   `json:"if,omitempty"`
	Then  *Schema   `json:"then,omitempty"`
}

// Field is what the Go type of a field does not say: see Required and Optional.
type Field struct {
	description string
	required    bool
	refine      []func(*Schema)
}

// Required is a field that must be given; refine says more about its value.
func Required(description string, refine ...func(*Schema)) Field {
	return Field{description, true, refine}
}

// Optional is a field that may be left out.
func Optional(description string, refine ...func(*Schema)) Field {
	return Field{description, false, refine}
}

// Format is a file format: the Go types that it is decoded into, and what they
// do not say.
type Format struct {
	// Document is the type of a whole document.
	Document reflect.Type
	// Title and Description are those of the whole.
	Title, Description string
	// Fields describes every field, by the name of its Go type and its own:
	// "spec.rules".
	Fields map[string]Field
	// Objects is what holds for several fields of a type together, by its name.
	Objects map[string]func(*Schema)
	// Leaf is the schema of types that are no struct, list or map to a reader;
	// nil for those that are. It may return the type that stands for one.
	Leaf func(reflect.Type) (leaf *Schema, instead reflect.Type)
}

// Text returns the schema of a format (draft 7, which editors understand
// best), indented. A field that is not described, or described and not there,
// is an error.
func (f Format) Text() ([]byte, error) {
	g := generator{f, map[string]bool{}}
	root, err := g.of(f.Document)
	if err != nil {
		return nil, err
	}
	for name := range f.Fields {
		if !g.used[name] {
			return nil, fmt.Errorf("the format has no field %s, but the schema describes it", name)
		}
	}
	root.Dialect = "http://json-schema.org/draft-07/schema#"
	root.Title, root.Description = f.Title, f.Description
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return out.Bytes(), nil
}

type generator struct {
	Format
	used map[string]bool
}

// of is the schema of a Go type: what strictyaml takes for it.
func (g *generator) of(t reflect.Type) (*Schema, error) {
	switch leaf, instead := g.Leaf(t); {
	case leaf != nil:
		return leaf, nil
	case instead != nil:
		t = instead
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.String:
		return &Schema{Type: "string"}, nil
	case reflect.Bool:
		return &Schema{Type: "boolean", Default: false}, nil
	case reflect.Slice:
		items, err := g.of(t.Elem())
		return &Schema{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := g.of(t.Elem())
		return &Schema{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		return g.object(t)
	}
	return nil, fmt.Errorf("the format has a field of kind %s", t.Kind())
}

func (g *generator) object(t reflect.Type) (*Schema, error) {
	out := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: false}
	fields, names := strictyaml.Fields(t)
	for _, name := range names {
		s, err := g.of(fields[name].Type)
		if err != nil {
			return nil, err
		}
		key := t.Name() + "." + name
		known, ok := g.Fields[key]
		if !ok {
			return nil, fmt.Errorf("the schema does not describe %s", key)
		}
		g.used[key] = true
		for _, refine := range known.refine {
			refine(s)
		}
		s.Description = known.description
		if known.required {
			out.Required = append(out.Required, name)
		}
		out.Properties[name] = s
	}
	slices.Sort(out.Required)
	if refine := g.Objects[t.Name()]; refine != nil {
		refine(out)
	}
	return out, nil
}
