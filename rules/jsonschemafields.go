package rules

import "k8s.io/apimachinery/pkg/util/validation"

// fieldSchema is what the Go type of a field does not say.
type fieldSchema struct {
	description string
	required    bool
	refine      func(*jsonSchema) // nil: nothing more
}

// fieldSchemas describes every field of the format by its Go type and name.
// What is said here more than in the types says the loader too: the tests hold
// the two against each other.
var fieldSchemas = map[string]fieldSchema{
	"document.apiVersion": {"The version of the format.", true, func(s *jsonSchema) { s.Const = APIVersion }},
	"document.kind":       {"The kind of document.", true, func(s *jsonSchema) { s.Const = Kind }},
	"document.metadata":   {"The name of the rule.", true, nil},
	"document.spec":       {"What the rule is about, and what it does.", true, nil},

	"metadata.name": {"Unique over all rule files. Rules run in the bytewise order of their names.", true, func(s *jsonSchema) {
		s.Pattern, s.MaxLength = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, validation.DNS1123LabelMaxLength
	}},
	"metadata.labels":      {"Yours: Rectifier does not read them.", false, nil},
	"metadata.annotations": {"Yours: Rectifier does not read them.", false, nil},

	"spec.description":  {"A text for people.", false, nil},
	"spec.resource":     {"The resource whose objects the rule is about, built-in or custom.", false, nil},
	"spec.resources":    {"Several resources, instead of resource.", false, func(s *jsonSchema) { s.MinItems, s.UniqueItems = 1, true }},
	"spec.match":        {"Which objects. All parts that are given must hold; without it, all objects that are not being deleted.", false, nil},
	"spec.lookups":      {"Other objects that expressions may read as lookups.NAME, from caches.", false, nil},
	"spec.variables":    {"Names for expressions: variables.NAME. Each may read those before it. Evaluated when first read, at most once per object.", false, nil},
	"spec.condition":    {"CEL that gives a bool: true means that the object needs the patch. Without it, always.", false, celSchema},
	"spec.patch":        {"What makes the object right.", false, nil},
	"spec.patches":      {"Several patches, instead of patch: in order, each seeing what the ones before it changed. All are made or none.", false, notEmpty},
	"spec.event":        {"What is told on the object after a fix.", false, nil},
	"spec.mode":         {"Enforce writes; Audit reports what would be written.", false, enum(string(Enforce), string(Enforce), string(Audit))},
	"spec.recheckAfter": {"Evaluate again after this long even if nothing changed: 30s, 10m, 1h30m; at least 1s. Needed where now is read.", false, pattern(`^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)},
	"spec.optOut":       {"Whether objects and Namespaces may opt out by the annotations " + SkipAnnotation + " and " + SkipUntilAnnotation + ".", false, enum("Allowed", "Allowed", "Forbidden")},

	"resource.group":    {"The API group; empty or left out: the core group.", false, pattern(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`)},
	"resource.version":  {"The version in which the object is read and patched, such as v1.", true, pattern(versionName.String())},
	"resource.resource": {"The plural in lower case, such as deployments.", true, pattern(resourceName.String())},

	"match.namespaces":        {"Patterns (* ? [a-z]) of which one must fit the namespace.", false, nil},
	"match.excludeNamespaces": {"Patterns of which none may fit the namespace.", false, nil},
	"match.names":             {"Patterns of which one must fit the name.", false, nil},
	"match.excludeNames":      {"Patterns of which none may fit the name.", false, nil},
	"match.labelSelector":     {"Labels of the object.", false, nil},
	"match.namespaceSelector": {"Labels of the object's Namespace. A Namespace counts as in itself; other cluster-scoped objects are not excluded.", false, nil},
	"match.fieldSelector":     {"path=value or path!=value, with commas between them; any path of the object. What is absent is the empty text.", false, notEmpty},
	"match.deleting":          {"true: also objects that are being deleted.", false, nil},

	"LabelSelector.matchLabels":         {"Labels that must have these values.", false, nil},
	"LabelSelector.matchExpressions":    {"Requirements of which all must hold.", false, nil},
	"LabelSelectorRequirement.key":      {"The label's key.", true, nil},
	"LabelSelectorRequirement.operator": {"How the label is compared. NotIn and DoesNotExist hold for objects without it.", true, enum("", selectorOperators...)},
	"LabelSelectorRequirement.values":   {"With In and NotIn: the values.", false, nil},

	"lookup.name":      {"Expressions read the list as lookups.NAME.", true, pattern(variableName.String())},
	"lookup.resource":  {"The resource that is looked up.", true, nil},
	"lookup.namespace": {"The namespace in which is looked up, often ${object.metadata.namespace}. Left out: all.", false, func(s *jsonSchema) { s.Type, s.MinLength = "string", 1 }},
	"lookup.where":     {"Paths in the looked-up object, and the value that each must have. A list means any of its members.", false, whereSchema},
	"lookup.labelSelector": {"Labels of the looked-up objects. Values may hold templates.", false, func(s *jsonSchema) {
		orComputed(s, &jsonSchema{Type: "object", AdditionalProperties: false, Properties: map[string]*jsonSchema{"matchLabels": {}, "matchExpressions": {}}})
	}},
	"lookup.optional": {"true: the cluster need not serve the resource; then the list is empty.", false, nil},

	"variable.name":       {"Expressions read the value as variables.NAME.", true, pattern(variableName.String())},
	"variable.expression": {"CEL, without ${…}.", true, celSchema},

	"patchSpec.subresource":        {"Where the patch is sent: empty for the object itself, status, or scale.", false, enum("", mainResource, status, scale)},
	"patchSpec.merge":              {"JSON merge patch (RFC 7386): mappings are merged, null removes, lists are replaced whole.", false, func(s *jsonSchema) { orComputed(s, &jsonSchema{Type: "object"}) }},
	"patchSpec.json":               {"JSON patch (RFC 6902).", false, operationsSchema},
	"patchSpec.applyConfiguration": {"A partial object, merged in by the schema of its kind: lists by the keys of their elements.", false, func(s *jsonSchema) { orComputed(s, &jsonSchema{Type: "object"}) }},
	"patchSpec.strategic":          {"Not a kind of patch here: use applyConfiguration.", false, func(s *jsonSchema) { s.Not = &jsonSchema{} }},

	"eventSpec.reason":  {"One word in CamelCase.", false, func(s *jsonSchema) { s.Pattern, s.MaxLength, s.Default = reasonName.String(), maxReason, DefaultReason }},
	"eventSpec.message": {"A text with templates, which see the object before the change. Cut after 1024 bytes.", false, nil},
}

// objectSchemas is what holds for several fields of a type together.
var objectSchemas = map[string]func(*jsonSchema){
	"spec": func(s *jsonSchema) {
		s.AllOf = []*jsonSchema{{OneOf: oneOf("resource", "resources")}, {OneOf: oneOf("patch", "patches")}}
	},
	"patchSpec": func(s *jsonSchema) {
		s.OneOf = oneOf("merge", "json", "applyConfiguration")
		s.AllOf = []*jsonSchema{whenOneOf("subresource", []string{scale}, &jsonSchema{Not: &jsonSchema{Required: []string{"applyConfiguration"}}})}
	},
	"LabelSelectorRequirement": func(s *jsonSchema) {
		s.AllOf = []*jsonSchema{whenOneOf("operator", []string{"In", "NotIn"}, &jsonSchema{
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
			whenOneOf("op", []string{"add", "replace", "test"}, &jsonSchema{Required: []string{"value"}}),
			whenOneOf("op", []string{"move", "copy"}, &jsonSchema{Required: []string{"from"}}),
		},
	}
	orComputed(s, &jsonSchema{Type: "array", Items: &jsonSchema{AnyOf: []*jsonSchema{operation, computedSchema("one ${…} that gives an operation")}}})
}
