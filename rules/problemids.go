package rules

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// What keeps a rule from loading, by its kind: the IDs under which rules/lint
// reports it, and docs/lint explains it.
const (
	CheckYAMLSyntax     = "yaml-syntax"     // the file cannot be read
	CheckRuleFormat     = "rule-format"     // a field is unknown, missing, or of the wrong form
	CheckDuplicateName  = "duplicate-name"  // two rules of one name
	CheckResourceName   = "resource-name"   // a resource that is spelled as a kind, or in the singular
	CheckCELCompile     = "cel-compile"     // CEL that does not compile, or is of the wrong type
	CheckCostLimit      = "cost-limit"      // comprehensions nested too deep
	CheckTemplate       = "template"        // a ${…} that is broken, or cannot stand where it is
	CheckStringValue    = "string-value"    // something else where only strings may stand
	CheckJSONPatch      = "json-patch"      // an operation of a JSON patch is malformed
	CheckJSONPointer    = "json-pointer"    // a JSON pointer is malformed
	CheckRecheckMissing = "recheck-missing" // now is read, but recheckAfter not given
	CheckProtectedField = "protected-field" // a field is written that may not be written there
	CheckSecretInEvent  = "secret-in-event" // an Event would publish data of a Secret
)

// failer reports problems of one kind.
type failer struct {
	*decoder
	check string
}

// as reports what is of another kind than CheckRuleFormat.
func (d *decoder) as(check string) failer { return failer{d, check} }

func (f failer) fail(n *yaml.Node, format string, args ...any) {
	f.failAt(f.doc.Pos(n), format, args...)
}

// failIn reports what is wrong at a byte offset within a scalar's value.
func (f failer) failIn(t text, offset int, format string, args ...any) {
	f.failAt(f.doc.PosIn(t.node, offset), format, args...)
}

func (f failer) failAt(pos yamldoc.Position, format string, args ...any) {
	f.problems = append(f.problems, &Problem{
		Pos: pos, Rule: f.rule, Check: f.check, Msg: fmt.Sprintf(format, args...), Line: f.doc.Line(pos.Line),
	})
}
