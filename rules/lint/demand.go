package lint

import (
	"fmt"
	"strings"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// demand is what is wrong with an expression that fits its schema, but never
// gives what is wanted where it stands; nil if it may. What patches write is
// patch-field's.
func demand(e *rules.Expression, t expression.Type) *expression.TypeIssue {
	msg := unmet(e, t)
	if msg == "" {
		return nil
	}
	issue := &expression.TypeIssue{}
	issue.Offset = len(e.Source) - len(strings.TrimLeft(e.Source, " \t\r\n"))
	issue.Msg = msg
	return issue
}

func unmet(e *rules.Expression, t expression.Type) string {
	switch {
	case e.Part == rules.PartCondition:
		if !t.MayBeBool() {
			return fmt.Sprintf("the condition must be bool, but this is %s", t.Spell())
		}
	case e.Use == rules.UseText:
		if !t.MayBeText() {
			return fmt.Sprintf("this is %s, which cannot be put into a string: only strings, numbers, bools, timestamps and durations can", t.Spell())
		}
	case e.Use == rules.UseKey:
		if !t.MayBeString() {
			return fmt.Sprintf("a key must be a string, but this is %s: use string()", t.Spell())
		}
	default:
		return unmetAt(e.At, t)
	}
	return ""
}

// unmetAt is about what the fields of lookups and patches demand.
func unmetAt(at string, t expression.Type) string {
	want, fits := "", true
	switch at {
	case "where":
		want, fits = "a string, number or bool, or a list of them", t.MayBeScalars()
	case "namespace", "matchLabels", "op", "path", "from":
		want, fits = "a string", t.MayBeString()
	case "labelSelector", "merge", "applyConfiguration", "operation":
		want, fits = "a mapping", t.MayBeMapping()
	case "json":
		want, fits = "a list of operations", t.MayBeMappings()
	}
	if fits {
		return ""
	}
	return fmt.Sprintf("%s must be %s, but this is %s", spokenPlace(at), want, t.Spell())
}

func spokenPlace(at string) string {
	switch at {
	case "operation":
		return "an operation"
	case "where", "matchLabels":
		return "a value of " + at
	}
	return at
}
