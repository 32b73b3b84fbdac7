package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// guard is what has to hold of one place of an object for a rule to have
// anything to do: a conjunct of its condition, or a part of its match block. An
// index passes a rule over only where its guard is false. Where the guard would
// be an error, because the map on the way is not there, the rule is evaluated.
type guard struct {
	// path leads to the place. Of a guard that something is there, the last step
	// is the key that it asks for.
	path []step
	// values are those that may stand there: string, int64 or bool. None: the
	// guard is that there is something.
	values []any
	// element says that a list may stand there instead of the map with the key,
	// and have the key among its elements: 'x' in object.spec.finalizers.
	element bool
}

// step is a key on a path. safe says that the guard is false, and no error, where
// the key is not in the map: the key is optional, or another conjunct asks whether
// it is there.
type step struct {
	key  string
	safe bool
}

// maxConjuncts is how many conjuncts of one rule are looked at: variables may hold
// one another, and twice each.
const maxConjuncts = 64

// conditionGuard finds the guard in a condition that fewest objects pass.
func conditionGuard(r *Rule) (best guard, ok bool) {
	if r.condition == nil {
		return guard{}, false
	}
	f := guardFinder{rule: r, left: maxConjuncts}
	f.conjunct(r.condition.Syntax())
	most := 0
	for _, g := range f.guards {
		f.protect(g.path)
		if worth := g.worth(); worth > most {
			best, most = g, worth
		}
	}
	return best, most > 0
}

// worth ranks guards by how many objects pass them as a rule; the higher the
// fewer. It is 0 where nearly all do.
func (g *guard) worth() int {
	at := len(g.path) - 1
	parent := ""
	if at > 0 {
		parent = g.path[at-1].key
	}
	worth := 30
	switch key := g.path[at].key; {
	case parent == "annotations" || parent == "labels":
		worth = 50
	case at == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, key):
		return 0 // as all objects of a resource have it
	case g.values == nil && at == 1 && parent == "metadata":
		worth = 10 // has(object.metadata.annotations)
	case at == 1 && parent == "metadata" && (key == "name" || key == "uid"):
		worth = 80
	}
	if len(g.values) > 0 {
		switch g.values[0].(type) {
		case string:
			worth += 20
		case bool:
			worth -= 20
		}
	}
	for _, s := range g.path[1:] {
		if !s.safe {
			worth -= 2 // it may be an error on many objects
		}
	}
	return max(worth, 1)
}

// guardFinder finds guards among the conjuncts of a condition.
type guardFinder struct {
	rule   *Rule
	left   int
	guards []guard
	held   map[string]*expression.Node // by variable; read-only
}

// protect marks steps as safe that another guard says are: in `has(a.b) && a.b.c
// == 1` an object without b is no error. && is false if any conjunct is, whatever
// becomes of the others, and in whichever order they stand.
func (f *guardFinder) protect(path []step) {
	for i := range path {
		if path[i].safe {
			continue
		}
		path[i].safe = slices.ContainsFunc(f.guards, func(other guard) bool {
			return len(other.path) > i && other.path[i].safe && samePath(other.path[:i+1], path[:i+1])
		})
	}
}

func samePath(a, b []step) bool {
	return slices.EqualFunc(a, b, func(a, b step) bool { return a.key == b.key })
}

// conjunct collects the guards of a node that has to be true. What a variable
// holds stands in its place: it has the same value, or the same error.
func (f *guardFinder) conjunct(n *expression.Node) {
	if f.left--; f.left < 0 {
		return
	}
	if held := f.variable(n); held != nil {
		f.conjunct(held)
		return
	}
	switch {
	case n.Is("&&"):
		for _, arg := range n.Args {
			f.conjunct(arg)
		}
	case n.Is("in"):
		f.membership(n.Args[0], n.Args[1])
	case n.Is("=="):
		f.equality(n.Args[0], n.Args[1])
		f.equality(n.Args[1], n.Args[0])
	case n.Is("hasValue") && n.Target != nil:
		if p, ok := f.place(n.Target); ok && p.optional && p.orElse == nil {
			f.add(guard{path: p.steps})
		}
	case n.Kind == expression.Select && n.Test:
		if p, ok := f.place(n.Target); ok && !p.optional {
			f.add(guard{path: append(p.steps, step{n.Name, true})})
		}
	default:
		f.equals(n, []any{true})
	}
}

func (f *guardFinder) add(g guard) {
	if len(g.path) > 0 {
		f.guards = append(f.guards, g)
	}
}

// membership is of 'x' in a.b, and of a.b in ['x', 'y'].
func (f *guardFinder) membership(value, of *expression.Node) {
	if key, ok := f.literal(value); ok {
		name, isText := key.(string)
		p, ok := f.place(of)
		if !isText || !ok || p.optional && p.orElse == nil {
			return
		}
		if p.orElse != nil && (len(p.orElse.Args) > 0 || p.orElse.Kind != expression.Map && p.orElse.Kind != expression.List) {
			return
		}
		f.add(guard{path: append(p.steps, step{name, true}), element: true})
		return
	}
	if of.Kind != expression.List || len(of.Args) == 0 {
		return
	}
	var values []any
	for _, n := range of.Args {
		v, ok := f.literal(n)
		if !ok || len(values) > 0 && !sameKind(v, values[0]) {
			return
		}
		values = append(values, v)
	}
	f.equals(value, values)
}

func sameKind(a, b any) bool {
	switch a.(type) {
	case string:
		_, ok := b.(string)
		return ok
	case int64:
		_, ok := b.(int64)
		return ok
	}
	_, ok := b.(bool)
	return ok
}

func (f *guardFinder) equality(a, b *expression.Node) {
	if v, ok := f.literal(b); ok {
		f.equals(a, []any{v})
	}
}

// equals adds that one of the values stands at a place. Where nothing does, the
// value that stands in for it counts.
func (f *guardFinder) equals(n *expression.Node, values []any) {
	p, ok := f.place(n)
	if !ok || p.optional && p.orElse == nil {
		return
	}
	if p.orElse != nil {
		orElse, known := f.literal(p.orElse)
		// It has to be known, and of the same kind, to be sure that it is not equal.
		if !known || !sameKind(orElse, values[0]) {
			return
		}
		if slices.Contains(values, orElse) {
			for i := range p.steps {
				p.steps[i].safe = false
			}
		}
	}
	f.add(guard{path: p.steps, values: values})
}

// literal is a text, a whole number or a bool that is written out.
func (f *guardFinder) literal(n *expression.Node) (any, bool) {
	for held := f.variable(n); held != nil; held = f.variable(n) {
		n = held
	}
	if n.Kind != expression.Literal {
		return nil, false
	}
	switch n.Value.(type) {
	case string, int64, bool:
		return n.Value, true
	}
	return nil, false
}

// variable is the expression that a variable holds; nil if the node is none.
func (f *guardFinder) variable(n *expression.Node) *expression.Node {
	if n.Kind != expression.Ident || !n.Declared {
		return nil
	}
	name, ok := strings.CutPrefix(n.Name, variablePrefix)
	if !ok {
		return nil
	}
	if f.held == nil {
		f.held = map[string]*expression.Node{}
	}
	if f.held[name] == nil {
		for _, v := range f.rule.variables {
			if v.name == name {
				f.held[name] = v.program.Syntax()
			}
		}
	}
	return f.held[name]
}

// placeRead is a place of the object that an expression reads.
type placeRead struct {
	steps    []step
	optional bool             // a step is: so are all after it
	orElse   *expression.Node // what counts where there is nothing; nil: it was not said
}

func (f *guardFinder) place(n *expression.Node) (placeRead, bool) {
	if held := f.variable(n); held != nil {
		return f.place(held)
	}
	switch {
	case n.Kind == expression.Ident:
		return placeRead{}, n.Declared && n.Name == objectName
	case n.Kind == expression.Select && !n.Test:
		return f.below(n.Target, n.Name, n.Optional)
	case n.Kind == expression.Index:
		key, ok := f.literal(n.Args[0])
		if name, isText := key.(string); ok && isText {
			return f.below(n.Target, name, n.Optional)
		}
	case n.Is("orValue") && n.Target != nil && len(n.Args) == 1:
		p, ok := f.place(n.Target)
		if !ok || !p.optional || p.orElse != nil {
			return placeRead{}, false
		}
		p.orElse = n.Args[0]
		return p, true
	}
	return placeRead{}, false
}

func (f *guardFinder) below(target *expression.Node, key string, optional bool) (placeRead, bool) {
	p, ok := f.place(target)
	if !ok || p.orElse != nil {
		return placeRead{}, false
	}
	p.optional = p.optional || optional
	p.steps = append(p.steps, step{key, p.optional})
	return p, true
}

// matchGuard finds the guard in a match block that fewest objects pass: a label,
// a namespace or a name. Where it is false, the rule does not match; it is never an
// error.
func matchGuard(m *matcher) (guard, bool) {
	at := func(values []any, path ...string) (guard, bool) {
		g := guard{values: values}
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
