package lint

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// spell writes an expression as CEL, as far as it is a name with selections,
// indexes and defaults; otherwise it returns otherwise.
func spell(n *expression.Node, otherwise string) string {
	var b strings.Builder
	if !spellTo(&b, n) {
		return otherwise
	}
	return b.String()
}

func spellTo(b *strings.Builder, n *expression.Node) bool {
	question := ""
	if n.Optional {
		question = "?"
	}
	switch n.Kind {
	case expression.Ident:
		b.WriteString(n.Name)
		return true
	case expression.Select:
		if !spellTo(b, n.Target) {
			return false
		}
		b.WriteString("." + question + n.Name)
		return true
	case expression.Index:
		if !spellTo(b, n.Target) {
			return false
		}
		b.WriteString("[" + question)
		if !spellTo(b, n.Args[0]) {
			return false
		}
		b.WriteString("]")
		return true
	case expression.Literal:
		return literalTo(b, n.Value)
	case expression.List:
		b.WriteString("[]")
		return len(n.Args) == 0
	case expression.Map:
		b.WriteString("{}")
		return len(n.Args) == 0
	case expression.Call:
		if n.Target == nil || n.Name != "orValue" && n.Name != "value" || !spellTo(b, n.Target) {
			return false
		}
		b.WriteString("." + n.Name + "(")
		for _, arg := range n.Args {
			if !spellTo(b, arg) {
				return false
			}
		}
		b.WriteString(")")
		return true
	}
	return false
}

func literalTo(b *strings.Builder, v any) bool {
	switch v := v.(type) {
	case string:
		b.WriteString(quote(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case nil:
		b.WriteString("null")
	default:
		return false
	}
	return true
}

// quote writes a string literal as rules have them.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
