package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// guard is what has to hold of one place of an object for a rule to have
// anything to do: a conjunct of its condition, or a part of its match block. An
// index passes a rule over only where its guard is false. Where the guard would
// be an error, because the map on the way is not there, the rule is evaluated.
type guard struct {
	// path leads to the place. Of a guard that something is there, or is not, the
	// last step is the key that it asks for.
	path []step
	asks question
	// values are those that may stand there, or may not: string, int64 or bool. Of
	// other comparisons it is the one that is compared with: string, int64 or float64.
	values   []any
	relation relation // of a comparison, or of texts
	not      bool     // of texts: it must not hold
	// element says that a list may stand there instead of the map with the key,
	// and have the key among its elements: 'x' in object.spec.finalizers.
	element bool
}

// question is what a guard asks of its place.
type question int

const (
	presence question = iota // something is there
	absence
	oneOf
	noneOf
	comparison   // it is less or greater than a value
	textRelation // it is a text that begins with another one, ends with it, or contains it
)

// step is a key on a path. safe says that the guard is false, and no error, where
// the key is not in the map: the key is optional, or another conjunct asks whether
// it is there.
type step struct {
	key  string
	safe bool
}

// worth ranks guards by how many objects pass them as a rule; the higher the
// fewer. It is 0 where nearly all do.
func (g *guard) worth() int {
	at := len(g.path) - 1
	parent := ""
	if at > 0 {
		parent = g.path[at-1].key
	}
	key := g.path[at].key
	switch {
	case at == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, key):
		return 0 // as all objects of a resource have it
	case g.asks == absence:
		return 1
	case g.asks == noneOf, g.not:
		return 2
	case g.asks == presence && at == 1 && parent == "metadata":
		return 3 // has(object.metadata.annotations)
	}
	worth := 30
	switch {
	case parent == "annotations" || parent == "labels":
		worth = 50
	case at == 1 && parent == "metadata" && (key == "name" || key == "uid"):
		worth = 80
	}
	switch g.asks {
	case oneOf:
		switch g.values[0].(type) {
		case string:
			worth += 20
		case bool:
			worth -= 12
		}
	case comparison:
		worth -= 16
	case textRelation:
		worth += 10
	}
	for _, s := range g.path[1:] {
		if !s.safe {
			worth -= 2 // it may be an error on many objects
		}
	}
	return max(worth, 4)
}

// isFalse reports whether the guard is certainly false of a constant, as
// Node.Constant gives it, in the place of the value.
func (g *guard) isFalse(v any) bool {
	switch g.asks {
	case oneOf:
		return sameKind(v, g.values[0]) && !slices.Contains(g.values, v)
	case noneOf:
		return slices.Contains(g.values, v)
	case comparison:
		c, ordered := order(v, g.values[0])
		return ordered && g.relation.excludes(c)
	case textRelation:
		text, isText := v.(string)
		part, _ := g.values[0].(string)
		stands := textRelations[g.relation]
		return isText && stands != nil && stands(text, part) == g.not
	}
	return false
}

func sameKind(a, b any) bool {
	switch a.(type) {
	case string:
		_, ok := b.(string)
		return ok
	case int64:
		_, ok := b.(int64)
		return ok
	case bool:
		_, ok := b.(bool)
		return ok
	}
	return false
}

// matchGuard finds the guard in a match block that fewest objects pass: a label,
// a namespace or a name. Where it is false, the rule does not match; it is never an
// error.
func matchGuard(m *matcher) (guard, bool) {
	at := func(values []any, path ...string) (guard, bool) {
		g := guard{asks: oneOf, values: values}
		if values == nil {
			g.asks = presence
		}
		for _, key := range path {
			g.path = append(g.path, step{key, true})
		}
		return g, true
	}
	if names := literals(m.names); names != nil {
		return at(names, "metadata", "name")
	}
	if m.labels != nil {
		requirements, _ := m.labels.Requirements()
		if key, values := mostSelective(requirements); key != "" {
			return at(values, "metadata", "labels", key)
		}
	}
	if names := literals(m.namespaces); names != nil {
		return at(names, "metadata", "namespace")
	}
	return guard{}, false
}

// mostSelective is the requirement of a label that asks for most: a value rather
// than one of several, or that it is there at all (no values). The key is empty if
// none asks for a label.
func mostSelective(requirements labels.Requirements) (key string, values []any) {
	for _, r := range requirements {
		var wanted []any
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			for v := range r.Values() {
				wanted = append(wanted, v)
			}
		case selection.Exists:
		default:
			continue
		}
		if key == "" || wanted != nil && (values == nil || len(wanted) < len(values)) {
			key, values = r.Key(), wanted
		}
	}
	return key, values
}

// literals are globs that match one name each; nil if others are among them, or
// the empty name, which is that of no object.
func literals(globs []glob) (out []any) {
	for _, g := range globs {
		if g == "" || strings.ContainsAny(string(g), `*?[\`) {
			return nil
		}
		out = append(out, string(g))
	}
	return out
}
