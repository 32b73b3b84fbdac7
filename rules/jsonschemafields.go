package rules

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rectifier-dev/rectifier/internal/jsonschema"
)

// fieldSchemas describes every field of the format by its Go type and name.
// What is said here more than in the types says the loader too: the tests hold
// the two against each other.
var fieldSchemas = map[string]jsonschema.Field{
	"document.apiVersion": jsonschema.Required("The version of the format.", func(s *jsonSchema) { s.Const = APIVersion }),
	"document.kind":       jsonschema.Required("The kind of document.", func(s *jsonSchema) { s.Const = Kind }),
	"document.metadata":   jsonschema.Required("The name of the rule."),
	"document.spec":       jsonschema.Required("What the rule is about, and what it does."),

	"metadata.name": jsonschema.Required("Unique over all rule files. Rules run in the bytewise order of their names.", func(s *jsonSchema) {
		s.Pattern, s.MaxLength = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, validation.DNS1123LabelMaxLength
	}),
	"metadata.labels":      jsonschema.Optional("Yours: Rectifier does not read them."),
	"metadata.annotations": jsonschema.Optional("Yours: Rectifier does not read them."),

	"spec.description":  jsonschema.Optional("A text for people."),
	"spec.resource":     jsonschema.Optional("The resource whose objects the rule is about, built-in or custom."),
	"spec.resources":    jsonschema.Optional("Several resources, instead of resource.", func(s *jsonSchema) { s.MinItems, s.UniqueItems = 1, true }),
	"spec.match":        jsonschema.Optional("Which objects. All parts that are given must hold; without it, all objects that are not being deleted."),
	"spec.lookups":      jsonschema.Optional("Other objects that expressions may read as lookups.NAME, from caches."),
	"spec.variables":    jsonschema.Optional("Names for expressions: variables.NAME. Each may read those before it. Evaluated when first read, at most once per object."),
	"spec.condition":    jsonschema.Optional("CEL that gives a bool: true means that the object needs the patch. Without it, always.", celSchema),
	"spec.patch":        jsonschema.Optional("What makes the object right."),
	"spec.patches":      jsonschema.Optional("Several patches, instead of patch: in order, each seeing what the ones before it changed. All are made or none.", jsonschema.NotEmpty),
	"spec.event":        jsonschema.Optional("What is told on the object after a fix."),
	"spec.mode":         jsonschema.Optional("Enforce writes; Audit reports what would be written.", jsonschema.Enum(string(Enforce), string(Enforce), string(Audit))),
	"spec.recheckAfter": jsonschema.Optional("Evaluate again after this long even if nothing changed: 30s, 10m, 1h30m; at least 1s. Needed where now is read.", jsonschema.Pattern(`^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)),
	"spec.optOut":       jsonschema.Optional("Whether objects and Namespaces may opt out by the annotations "+SkipAnnotation+" and "+SkipUntilAnnotation+".", jsonschema.Enum("Allowed", "Allowed", "Forbidden")),

	"resource.group":    jsonschema.Optional("The API group; empty or left out: the core group.", jsonschema.Pattern(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`)),
	"resource.version":  jsonschema.Required("The version in which the object is read and patched, such as v1.", jsonschema.Pattern(versionName.String())),
	"resource.resource": jsonschema.Required("The plural in lower case, such as deployments.", jsonschema.Pattern(resourceName.String())),

	"match.namespaces":        jsonschema.Optional("Patterns (* ? [a-z]) of which one must fit the namespace."),
	"match.excludeNamespaces": jsonschema.Optional("Patterns of which none may fit the namespace."),
	"match.names":             jsonschema.Optional("Patterns of which one must fit the name."),
	"match.excludeNames":      jsonschema.Optional("Patterns of which none may fit the name."),
	"match.labelSelector":     jsonschema.Optional("Labels of the object."),
	"match.namespaceSelector": jsonschema.Optional("Labels of the object's Namespace. A Namespace counts as in itself; other cluster-scoped objects are not excluded."),
	"match.fieldSelector":     jsonschema.Optional("path=value or path!=value, with commas between them; any path of the object. What is absent is the empty text.", jsonschema.NotEmpty),
	"match.deleting":          jsonschema.Optional("true: also objects that are being deleted."),

	"LabelSelector.matchLabels":         jsonschema.Optional("Labels that must have these values."),
	"LabelSelector.matchExpressions":    jsonschema.Optional("Requirements of which all must hold."),
	"LabelSelectorRequirement.key":      jsonschema.Required("The label's key."),
	"LabelSelectorRequirement.operator": jsonschema.Required("How the label is compared. NotIn and DoesNotExist hold for objects without it.", jsonschema.Enum("", selectorOperators...)),
	"LabelSelectorRequirement.values":   jsonschema.Optional("With In and NotIn: the values."),

	"lookup.name":      jsonschema.Required("Expressions read the list as lookups.NAME.", jsonschema.Pattern(variableName.String())),
	"lookup.resource":  jsonschema.Required("The resource that is looked up."),
	"lookup.namespace": jsonschema.Optional("The namespace in which is looked up, often ${object.metadata.namespace}. Left out: all.", func(s *jsonSchema) { s.Type, s.MinLength = "string", 1 }),
	"lookup.where":     jsonschema.Optional("Paths in the looked-up object, and the value that each must have. A list means any of its members.", whereSchema),
	"lookup.labelSelector": jsonschema.Optional("Labels of the looked-up objects. Values may hold templates.", func(s *jsonSchema) {
		orComputed(s, &jsonSchema{Type: "object", AdditionalProperties: false, Properties: map[string]*jsonSchema{"matchLabels": {}, "matchExpressions": {}}})
	}),
	"lookup.optional": jsonschema.Optional("true: the cluster need not serve the resource; then the list is empty."),

	"variable.name":       jsonschema.Required("Expressions read the value as variables.NAME.", jsonschema.Pattern(variableName.String())),
	"variable.expression": jsonschema.Required("CEL, without ${…}.", celSchema),

	"patchSpec.subresource":        jsonschema.Optional("Where the patch is sent: empty for the object itself, status, or scale.", jsonschema.Enum("", mainResource, status, scale)),
	"patchSpec.merge":              jsonschema.Optional("JSON merge patch (RFC 7386): mappings are merged, null removes, lists are replaced whole.", func(s *jsonSchema) { orComputed(s, &jsonSchema{Type: "object"}) }),
	"patchSpec.json":               jsonschema.Optional("JSON patch (RFC 6902).", operationsSchema),
	"patchSpec.applyConfiguration": jsonschema.Optional("A partial object, merged in by the schema of its kind: lists by the keys of their elements.", func(s *jsonSchema) { orComputed(s, &jsonSchema{Type: "object"}) }),
	"patchSpec.strategic":          jsonschema.Optional("Not a kind of patch here: use applyConfiguration.", func(s *jsonSchema) { s.Not = &jsonSchema{} }),

	"eventSpec.reason":  jsonschema.Optional("One word in CamelCase.", func(s *jsonSchema) { s.Pattern, s.MaxLength, s.Default = reasonName.String(), maxReason, DefaultReason }),
	"eventSpec.message": jsonschema.Optional("A text with templates, which see the object before the change. Cut after 1024 bytes."),
}

// objectSchemas is what holds for several fields of a type together.
var objectSchemas = map[string]func(*jsonSchema){
	"spec": func(s *jsonSchema) {
		s.AllOf = []*jsonSchema{{OneOf: jsonschema.OneOf("resource", "resources")}, {OneOf: jsonschema.OneOf("patch", "patches")}}
	},
	"patchSpec": func(s *jsonSchema) {
		s.OneOf = jsonschema.OneOf("merge", "json", "applyConfiguration")
		s.AllOf = []*jsonSchema{jsonschema.WhenOneOf("subresource", []string{scale}, &jsonSchema{Not: &jsonSchema{Required: []string{"applyConfiguration"}}})}
	},
	"LabelSelectorRequirement": func(s *jsonSchema) {
		s.AllOf = []*jsonSchema{jsonschema.WhenOneOf("operator", []string{"In", "NotIn"}, &jsonSchema{
			Required: []string{"values"}, Properties: map[string]*jsonSchema{"values": {MinItems: 1}},
		})}
	},
}

// celSchema is CEL as it stands, not in a template.
func celSchema(s *jsonSchema) {
	s.MinLength, s.Not = 1, &jsonSchema{Pattern: `^\s*\$\{`}
}

// pointerPattern takes JSON pointers, and what a template makes one.
const pointerPattern = `^(\s*\$\{[\s\S]*|/[\s\S]*\$\{[\s\S]*|(/([^~/]|~[01])*)+)$`

// whereSchema takes scalars and lists of them, by path.
func whereSchema(s *jsonSchema) {
	scalar := []*jsonSchema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}
	s.Type = "object"
	s.PropertyNames = &jsonSchema{Pattern: `^[^./$]+(\.[^./$]+)*$`}
	s.AdditionalProperties = &jsonSchema{AnyOf: append(scalar, &jsonSchema{Type: "array", Items: &jsonSchema{AnyOf: scalar}})}
}

func operationsSchema(s *jsonSchema) {
	pointer := func(description string) *jsonSchema {
		return &jsonSchema{Type: "string", Pattern: pointerPattern, Description: description}
	}
	operation := &jsonSchema{
		Type: "object", AdditionalProperties: false, Required: []string{"op", "path"},
		Properties: map[string]*jsonSchema{
			"op": {Description: "What is done. A test that fails means that nothing is.", AnyOf: []*jsonSchema{
				{Type: "string", Enum: []string{"add", "remove", "replace", "move", "copy", "test"}}, computedSchema(""),
			}},
			"path":  pointer("A JSON pointer: in a key, / is written ~1 and ~ is written ~0; - appends to a list."),
			"from":  pointer("With move and copy: where the value is taken from."),
			"value": {Description: "With add, replace and test: the value."},
		},
		AllOf: []*jsonSchema{
			jsonschema.WhenOneOf("op", []string{"add", "replace", "test"}, &jsonSchema{Required: []string{"value"}}),
			jsonschema.WhenOneOf("op", []string{"move", "copy"}, &jsonSchema{Required: []string{"from"}}),
		},
	}
	orComputed(s, &jsonSchema{Type: "array", Items: &jsonSchema{AnyOf: []*jsonSchema{operation, computedSchema("one ${…} that gives an operation")}}})
}
