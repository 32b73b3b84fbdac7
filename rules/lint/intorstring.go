package lint

import (
	"fmt"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// intOrString finds comparisons of what may hold an int or a string with only
// one of them: == between an int and a string is false, and < an error.
var intOrString = &Check{
	ID: "int-or-string", Severity: Warning, Summary: "A field that holds an int or a string is compared with one of them only",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			for _, e := range p.Expressions {
				asked := asksForType(e.Program.Syntax())
				comparisons := one.expressions[e].Comparisons
				for _, c := range comparisons {
					if c.Shape.Kind() != expression.IntOrStringShape || asked || equality(c) && bothTypes(comparisons, c.Field) {
						continue
					}
					if have, other := literalTypes(c.Values); have != "" {
						report(e.Pos(c.Offset), fmt.Sprintf("%s may be an int or a string: compared with %s, it %s where it is %s; compare string(…), or ask for its type() first",
							c.Field, have, outcome(c.Operator), other))
					}
				}
			}
		})
	},
}

func outcome(operator string) string {
	switch operator {
	case "==", "in":
		return "never matches"
	case "!=":
		return "always differs"
	}
	return "is an error"
}

// literalTypes are the type that all literals have, and the one that none has.
func literalTypes(values []expression.Operand) (have, other string) {
	ints, texts := 0, 0
	for _, v := range values {
		switch v.Value.(type) {
		case int64, uint64, float64:
			ints++
		case string:
			texts++
		}
	}
	switch {
	case ints > 0 && texts == 0:
		return "an int", "a string"
	case texts > 0 && ints == 0:
		return "a string", "an int"
	}
	return "", ""
}

func equality(c expression.Comparison) bool {
	return c.Operator == "==" || c.Operator == "!=" || c.Operator == "in"
}

// bothTypes reports whether a field is compared with ints and with strings.
func bothTypes(all []expression.Comparison, field string) bool {
	found := map[string]bool{}
	for _, c := range all {
		if have, _ := literalTypes(c.Values); c.Field == field && equality(c) && have != "" {
			found[have] = true
		}
	}
	return len(found) == 2
}

func asksForType(n *expression.Node) bool {
	asked := false
	n.Walk(func(n *expression.Node) bool {
		asked = asked || n.Is("type")
		return !asked
	})
	return asked
}
