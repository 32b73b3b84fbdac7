package lint

import "github.com/rectifier-dev/rectifier/rules"

// What the loader finds: the rule is not used at all, so none of it can be
// ignored.
var (
	yamlSyntax     = &Check{ID: rules.CheckYAMLSyntax, Severity: Error, Summary: "The file cannot be read"}
	ruleFormat     = &Check{ID: rules.CheckRuleFormat, Severity: Error, Summary: "A field of the rule is unknown, missing or of the wrong form"}
	duplicateName  = &Check{ID: rules.CheckDuplicateName, Severity: Error, Summary: "Two rules have the same name"}
	celCompile     = &Check{ID: rules.CheckCELCompile, Severity: Error, Summary: "An expression does not compile"}
	costLimit      = &Check{ID: rules.CheckCostLimit, Severity: Error, Summary: "Comprehensions are nested too deep"}
	templates      = &Check{ID: rules.CheckTemplate, Severity: Error, Summary: "A ${…} is broken, or cannot stand where it is"}
	stringValue    = &Check{ID: rules.CheckStringValue, Severity: Error, Summary: "A label, an annotation or other text is not a string"}
	jsonPatch      = &Check{ID: rules.CheckJSONPatch, Severity: Error, Summary: "An operation of a JSON patch is malformed"}
	jsonPointer    = &Check{ID: rules.CheckJSONPointer, Severity: Error, Summary: "A JSON pointer is malformed"}
	recheckMissing = &Check{ID: rules.CheckRecheckMissing, Severity: Error, Summary: "The rule reads now but has no recheckAfter"}
	protectedField = &Check{ID: rules.CheckProtectedField, Severity: Error, Summary: "A field is written that no rule may write there"}
	secretInEvent  = &Check{ID: rules.CheckSecretInEvent, Severity: Error, Summary: "An Event would publish data of a Secret"}
)
