package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// JSONSchema returns the JSON Schema (draft 7, which editors understand best)
// of a rule document, indented. It is made from the types that the loader
// decodes into. What it accepts may still be refused by Load: CEL, pointers and
// selectors are beyond a schema. What it refuses, Load refuses too.
func JSONSchema() ([]byte, error) {
	g := schemaGenerator{used: map[string]bool{}}
	root, err := g.of(reflect.TypeFor[document]())
	if err != nil {
		return nil, err
	}
	for name := range fieldSchemas {
		if !g.used[name] {
			return nil, fmt.Errorf("the format has no field %s, but the schema describes it", name)
		}
	}
	root.Schema = "http://json-schema.org/draft-07/schema#"
	root.Title = "Rectifier rule"
	root.Description = "A rule for existing Kubernetes objects: a resource, a condition in CEL, and a patch. It is a file: no cluster has such a kind."
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return out.Bytes(), nil
}

// jsonSchema is a JSON Schema, as far as rules need one. Nothing is referred to:
// a description beside a $ref is not shown by editors.
type jsonSchema struct {
	Schema      string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`

	Type    string   `json:"type,omitempty"`
	Const   string   `json:"const,omitempty"`
	Enum    []string `json:"enum,omitempty"`
	Default any      `json:"default,omitempty"`

	Pattern   string `json:"pattern,omitempty"`
	MinLength int    `json:"minLength,omitempty"`
	MaxLength int    `json:"maxLength,omitempty"`

	Required             []string               `json:"required,omitempty"`
	Properties           map[string]*jsonSchema `json:"properties,omitempty"`
	PropertyNames        *jsonSchema            `json:"propertyNames,omitempty"`
	AdditionalProperties any                    `json:"additionalProperties,omitempty"` // false or *jsonSchema

	Items       *jsonSchema `json:"items,omitempty"`
	MinItems    int         `json:"minItems,omitempty"`
	UniqueItems bool        `json:"uniqueItems,omitempty"`

	AnyOf []*jsonSchema `json:"anyOf,omitempty"`
	OneOf []*jsonSchema `json:"oneOf,omitempty"`
	AllOf []*jsonSchema `json:"allOf,omitempty"`
	Not   *jsonSchema   `json:"not,omitempty"`
	If    *jsonSchema   `json:"if,omitempty"`
	Then  *jsonSchema   `json:"then,omitempty"`
}

type schemaGenerator struct{ used map[string]bool }

// of is the schema of a Go type: what decoder.decode takes for it.
func (g *schemaGenerator) of(t reflect.Type) (*jsonSchema, error) {
	switch {
	case t == textType:
		return &jsonSchema{Type: "string"}, nil
	case t == rawType:
		return &jsonSchema{}, nil // said by the field
	case t == selectorType:
		f, _ := t.FieldByName("LabelSelector")
		return g.of(f.Type)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.String:
		return &jsonSchema{Type: "string"}, nil
	case reflect.Bool:
		return &jsonSchema{Type: "boolean", Default: false}, nil
	case reflect.Slice:
		items, err := g.of(t.Elem())
		return &jsonSchema{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := g.of(t.Elem())
		return &jsonSchema{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		return g.object(t)
	}
	return nil, fmt.Errorf("the format has a field of kind %s", t.Kind())
}

func (g *schemaGenerator) object(t reflect.Type) (*jsonSchema, error) {
	out := &jsonSchema{Type: "object", Properties: map[string]*jsonSchema{}, AdditionalProperties: false}
	fields, names := fieldsOf(t)
	for _, name := range names {
		s, err := g.of(fields[name].Type)
		if err != nil {
			return nil, err
		}
		key := t.Name() + "." + name
		known, ok := fieldSchemas[key]
		if !ok {
			return nil, fmt.Errorf("the schema does not describe %s", key)
		}
		g.used[key] = true
		s.Description = known.description
		if known.refine != nil {
			known.refine(s)
		}
		if known.required {
			out.Required = append(out.Required, name)
		}
		out.Properties[name] = s
	}
	slices.Sort(out.Required)
	if refine := objectSchemas[t.Name()]; refine != nil {
		refine(out)
	}
	return out, nil
}

// oneOf says that exactly one of some fields is given.
func oneOf(names ...string) []*jsonSchema {
	out := make([]*jsonSchema, len(names))
	for i, name := range names {
		out[i] = &jsonSchema{Required: []string{name}}
	}
	return out
}

// computedSchema is a string that is one ${…}: it stands for a value of any
// type.
func computedSchema(description string) *jsonSchema {
	return &jsonSchema{Type: "string", Pattern: `^\s*\$\{[\s\S]*\}\s*$`, Description: description}
}

// orComputed lets a value be one ${…} instead.
func orComputed(s *jsonSchema, written *jsonSchema) {
	s.Type, s.Properties, s.AdditionalProperties = "", nil, nil
	s.AnyOf = []*jsonSchema{written, computedSchema("one ${…} that gives all of it")}
}

func pattern(p string) func(*jsonSchema) { return func(s *jsonSchema) { s.Pattern = p } }

func enum(byDefault string, values ...string) func(*jsonSchema) {
	return func(s *jsonSchema) {
		s.Enum = values
		if byDefault != "" {
			s.Default = byDefault
		}
	}
}

func notEmpty(s *jsonSchema) {
	if s.Type == "array" {
		s.MinItems = 1
	} else {
		s.MinLength = 1
	}
}

// whenOneOf says what must hold if a field has one of some values.
func whenOneOf(field string, values []string, then *jsonSchema) *jsonSchema {
	is := &jsonSchema{Required: []string{field}, Properties: map[string]*jsonSchema{field: {Enum: values}}}
	return &jsonSchema{If: is, Then: then}
}
