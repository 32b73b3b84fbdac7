package rules

import (
	"reflect"

	"github.com/rectifier-dev/rectifier/internal/jsonschema"
)

// JSONSchema returns the JSON Schema (draft 7, which editors understand best)
// of a rule document, indented. It is made from the types that the loader
// decodes into. What it accepts may still be refused by Load: CEL, pointers and
// selectors are beyond a schema. What it refuses, Load refuses too.
func JSONSchema() ([]byte, error) { return schemaFormat.Text() }

var schemaFormat = jsonschema.Format{
	Document:    reflect.TypeFor[document](),
	Title:       "Rectifier rule",
	Description: "A rule for existing Kubernetes objects: a resource, a condition in CEL, and a patch. It is a file: no cluster has such a kind.",
	Fields:      fieldSchemas,
	Objects:     objectSchemas,
	Leaf:        schemaLeaf,
}

// jsonSchema is a JSON Schema.
type jsonSchema = jsonschema.Schema

// schemaLeaf is the schema of the types that read their nodes themselves.
func schemaLeaf(t reflect.Type) (*jsonSchema, reflect.Type) {
	switch t {
	case reflect.TypeFor[text]():
		return &jsonSchema{Type: "string"}, nil
	case reflect.TypeFor[raw]():
		return &jsonSchema{}, nil // said by the field
	case reflect.TypeFor[selector]():
		f, _ := t.FieldByName("LabelSelector")
		return nil, f.Type
	}
	return nil, nil
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
