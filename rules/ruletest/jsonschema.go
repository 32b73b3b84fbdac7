package ruletest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rectifier-dev/rectifier/internal/jsonschema"
	"github.com/rectifier-dev/rectifier/rules"
)

// JSONSchema returns the JSON Schema (draft 7) of a test document, indented. It
// is made from the types that tests are decoded into. What it refuses, Read
// refuses too.
func JSONSchema() ([]byte, error) { return schemaFormat.Text() }

var schemaFormat = jsonschema.Format{
	Document:    reflect.TypeFor[document](),
	Title:       "Rectifier test of rules",
	Description: "Objects, and what rules must make of them. It is a file: no cluster has such a kind.",
	Fields:      fieldSchemas,
	Objects:     objectSchemas,
	Leaf: func(t reflect.Type) (*jsonschema.Schema, reflect.Type) {
		switch t {
		case reflect.TypeFor[text]():
			return &jsonschema.Schema{Type: "string"}, nil
		case reflect.TypeFor[raw]():
			return &jsonschema.Schema{}, nil // said by the field
		}
		return nil, nil
	},
}

// fieldSchemas describes every field of the format by its Go type and name.
var fieldSchemas = map[string]jsonschema.Field{
	"document.apiVersion": jsonschema.Required("The version of the format.", func(s *jsonschema.Schema) { s.Const = rules.APIVersion }),
	"document.kind":       jsonschema.Required("The kind of document.", func(s *jsonschema.Schema) { s.Const = Kind }),
	"document.metadata":   jsonschema.Required("The name of the test."),
	"document.spec":       jsonschema.Required("The rules, what they find beside the objects, and the cases."),

	"metadata.name": jsonschema.Required("Unique in the file. --run selects by TEST/CASE.", func(s *jsonschema.Schema) {
		s.Pattern, s.MaxLength = namePattern, validation.DNS1123LabelMaxLength
	}),
	"metadata.labels":      jsonschema.Optional("Yours: Rectifier does not read them."),
	"metadata.annotations": jsonschema.Optional("Yours: Rectifier does not read them."),

	"spec.rules":     jsonschema.Required("Files or folders of rules, relative to this file, or builtin:NAME. All run together, as in a cluster.", paths, jsonschema.NotEmpty),
	"spec.crds":      jsonschema.Optional("Files or folders with CRDs, relative to this file: plural names, scope, schemas, replica paths of custom resources.", paths),
	"spec.now":       jsonschema.Optional("The time that rules read.", func(s *jsonschema.Schema) { s.Default = DefaultNow.Format("2006-01-02T15:04:05Z07:00") }),
	"spec.namespace": jsonschema.Optional("Where objects of namespaced kinds are that do not say so.", func(s *jsonschema.Schema) { s.Pattern, s.MaxLength, s.Default = namePattern, 63, "default" }),
	"spec.context": jsonschema.Optional("Other objects: what rules look up, and Namespaces. Each is an object, or the path of a file or folder of objects.", func(s *jsonschema.Schema) {
		s.Items = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", MinLength: 1, Not: stdin}, objectSchema()}}
	}),
	"spec.cases": jsonschema.Required("Each is one object, and what the rules must make of it.", jsonschema.NotEmpty),

	"caseSpec.name":       jsonschema.Required("Unique in the test; one line.", jsonschema.Pattern(`^[^\x00-\x1f\x7f]*[^\s][^\x00-\x1f\x7f]*$`)),
	"caseSpec.object":     jsonschema.Optional("The object.", func(s *jsonschema.Schema) { *s = *objectSchema() }),
	"caseSpec.objectFile": jsonschema.Optional("The file that holds the object, relative to this one; instead of object.", jsonschema.NotEmpty, func(s *jsonschema.Schema) { s.Not = stdin }),
	"caseSpec.objectName": jsonschema.Optional("Selects one of several objects in objectFile: NAME, KIND/NAME, NAMESPACE/NAME or KIND/NAMESPACE/NAME.", jsonschema.NotEmpty),
	"caseSpec.expect":     jsonschema.Required("What the rules must make of the object. What is not given is not looked at."),

	"expectSpec.outcome":     jsonschema.Required("Patch: a rule changes it. Pass: matched, nothing to change. Skip: not matched. Error: a rule fails on it.", jsonschema.Enum("", outcomes...)),
	"expectSpec.rules":       jsonschema.Optional("Exactly the rules that patched or, with Error, failed.", paths, jsonschema.NotEmpty),
	"expectSpec.object":      jsonschema.Optional("A part of the result: mappings may hold less, lists must have the same length, null means absent.", partSchema),
	"expectSpec.exactObject": jsonschema.Optional("All of the result.", func(s *jsonschema.Schema) { s.Type = "object" }),
	"expectSpec.patch": jsonschema.Optional("The operations (RFC 6902) that are sent, those of the object before those of status and scale.", func(s *jsonschema.Schema) {
		s.Type, s.Items = "array", &jsonschema.Schema{Type: "object", Required: []string{"op", "path"}}
	}),
	"expectSpec.error": jsonschema.Optional("A regular expression that the error of a rule matches."),
	"expectSpec.event": jsonschema.Optional("An event that one of the rules tells."),

	"eventSpec.reason":  jsonschema.Optional("Its reason, exactly."),
	"eventSpec.message": jsonschema.Optional("Its message, exactly."),
}

// objectSchemas is what holds for several fields of a type together.
var objectSchemas = map[string]func(*jsonschema.Schema){
	"caseSpec": func(s *jsonschema.Schema) {
		s.OneOf = jsonschema.OneOf("object", "objectFile")
		s.Not = &jsonschema.Schema{Required: []string{"object", "objectName"}}
	},
	"expectSpec": func(s *jsonschema.Schema) {
		never := func(names ...string) *jsonschema.Schema {
			return &jsonschema.Schema{Not: &jsonschema.Schema{AnyOf: jsonschema.OneOf(names...)}}
		}
		s.AllOf = []*jsonschema.Schema{
			jsonschema.WhenOneOf("outcome", []string{string(rules.Pass), string(rules.Skip)}, never("rules", "patch", "event", "error")),
			jsonschema.WhenOneOf("outcome", []string{string(rules.Patch)}, never("error")),
		}
		s.Not = &jsonschema.Schema{Required: []string{"object", "exactObject"}}
	},
	"eventSpec": func(s *jsonschema.Schema) { s.AnyOf = jsonschema.OneOf("reason", "message") },
}

const namePattern = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`

// stdin is no path in a test.
var stdin = &jsonschema.Schema{Const: "-"}

func paths(s *jsonschema.Schema) {
	s.UniqueItems = true
	s.Items = &jsonschema.Schema{Type: "string", MinLength: 1, Not: stdin}
}

func objectSchema() *jsonschema.Schema {
	text := &jsonschema.Schema{Type: "string", MinLength: 1}
	return &jsonschema.Schema{Type: "object", Required: []string{"apiVersion", "kind"}, Properties: map[string]*jsonschema.Schema{"apiVersion": text, "kind": text}}
}

func partSchema(s *jsonschema.Schema) { s.Type, s.MinProperties = "object", 1 }
