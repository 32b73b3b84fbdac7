package rules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Guards are what has to hold of an object for the condition to be evaluated, as CEL
// for people to read: at most two. An Index passes the rule over where one is false;
// where one is an error, because a map on the way is not there, the condition is
// evaluated too. Without any, it is evaluated on each object that the match block
// selects.
func (r *Rule) Guards() []string {
	if r.RecheckAfter > 0 { // whoever matches has to be asked again
		return nil
	}
	var out []string
	for _, g := range conditionGuards(r, 2) {
		out = append(out, g.String())
	}
	return out
}

// HasCondition reports whether the rule has a condition.
func (r *Rule) HasCondition() bool { return r.condition != nil }

// String is the guard as CEL.
func (g guard) String() string {
	last := g.path[len(g.path)-1].key
	parent, place := celPlace(g.path[:len(g.path)-1]), celPlace(g.path)
	values := make([]string, len(g.values))
	for i, v := range g.values {
		values[i] = celLiteral(v)
	}
	there := fmt.Sprintf("has(%s)", place)
	if g.element || !celName.MatchString(last) {
		there = fmt.Sprintf("%s in %s", celLiteral(last), parent)
	}
	switch g.asks {
	case presence:
		return there
	case absence:
		if strings.HasPrefix(there, "has(") {
			return "!" + there
		}
		return fmt.Sprintf("!(%s)", there)
	case oneOf:
		if len(values) == 1 {
			return fmt.Sprintf("%s == %s", place, values[0])
		}
		return fmt.Sprintf("%s in [%s]", place, strings.Join(values, ", "))
	case noneOf:
		if len(values) == 1 {
			return fmt.Sprintf("%s != %s", place, values[0])
		}
		return fmt.Sprintf("!(%s in [%s])", place, strings.Join(values, ", "))
	case comparison:
		return fmt.Sprintf("%s %s %s", place, g.relation, values[0])
	case textRelation:
		not := ""
		if g.not {
			not = "!"
		}
		return fmt.Sprintf("%s%s.%s(%s)", not, place, g.relation, values[0])
	}
	return fmt.Sprintf("question(%d) about %s", g.asks, place)
}

// String is the relation as CEL has it: an operator, or a function.
func (r relation) String() string {
	for name, is := range relations {
		if is == r {
			return name
		}
	}
	return fmt.Sprintf("relation(%d)", int(r))
}

var celName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// celPlace is how CEL reads a place of the object.
func celPlace(path []step) string {
	out := objectName
	for _, s := range path {
		if celName.MatchString(s.key) {
			out += "." + s.key
		} else {
			out += "[" + celLiteral(s.key) + "]"
		}
	}
	return out
}

// celLiteral is a string, int64, float64 or bool as CEL.
func celLiteral(v any) string {
	switch v := v.(type) {
	case string:
		quoted := strconv.Quote(v)
		return "'" + strings.NewReplacer(`\"`, `"`, `\\`, `\\`, "'", `\'`).Replace(quoted[1:len(quoted)-1]) + "'"
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	}
	return fmt.Sprint(v)
}
