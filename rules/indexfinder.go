package rules

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// maxConjuncts is how many conjuncts of one rule are looked at: variables may hold
// one another, and twice each.
const maxConjuncts = 64

// conditionGuards finds the guards in a condition that fewest objects pass, at most
// so many.
func conditionGuards(r *Rule, most int) []guard {
	if r.condition == nil {
		return nil
	}
	f := guardFinder{rule: r, left: maxConjuncts}
	f.conjunct(r.condition.Syntax(), true)
	for _, g := range f.guards {
		f.protect(g.path)
	}
	var out []guard
	for _, g := range f.guards {
		if g.worth() > 0 && !f.covered(g) {
			out = append(out, g)
		}
	}
	slices.SortStableFunc(out, func(a, b guard) int { return cmp.Compare(b.worth(), a.worth()) })
	return out[:min(len(out), most)]
}

// covered reports whether another guard is false wherever this one is: in
// `has(a.b) && a.b > 3` the second one is.
func (f *guardFinder) covered(g guard) bool {
	last := len(g.path) - 1
	return g.asks == presence && slices.ContainsFunc(f.guards, func(other guard) bool {
		deeper := len(other.path)-1 > last || other.asks != presence
		return deeper && len(other.path) > last && other.path[last].safe && samePath(other.path[:last+1], g.path)
	})
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

// conjunct collects the guards of a node that has to have a value. What a variable
// holds stands in its place: it has the same value, or the same error.
func (f *guardFinder) conjunct(n *expression.Node, want bool) {
	if f.left--; f.left < 0 {
		return
	}
	if held := f.variable(n); held != nil {
		f.conjunct(held, want)
		return
	}
	switch {
	case n.Is("!"):
		f.conjunct(n.Args[0], !want)
	case n.Is("&&"), n.Is("||"): // !(a || b) is !a && !b
		if want == n.Is("&&") {
			for _, arg := range n.Args {
				f.conjunct(arg, want)
			}
		}
	case n.Is("in"):
		f.membership(n.Args[0], n.Args[1], want)
	case n.Is("=="), n.Is("!="):
		f.equality(n.Args[0], n.Args[1], want == n.Is("=="))
		f.equality(n.Args[1], n.Args[0], want == n.Is("=="))
	case n.Is("hasValue") && n.Target != nil:
		if p, ok := f.place(n.Target); ok && p.optional && p.orElse == nil {
			f.key(p, false, want)
		}
	case n.Kind == expression.Select && n.Test:
		if p, ok := f.place(n.Target); ok && !p.optional {
			p.steps = append(p.steps, step{n.Name, true})
			f.key(p, false, want)
		}
	case n.Kind == expression.Call && relations[n.Name] != 0:
		f.relation(n, want)
	default:
		f.equals(n, []any{want}, true)
	}
}

// key adds that the last key of a path is there, or is not.
func (f *guardFinder) key(p placeRead, element, there bool) {
	g := guard{path: p.steps, element: element}
	if !there {
		g.asks = absence
		unsafe(g.path)
	}
	f.add(g)
}

// unsafe is for a guard that is true, or may be, where a key on the way is missing.
func unsafe(path []step) {
	for i := range path {
		path[i].safe = false
	}
}

func (f *guardFinder) add(g guard) {
	if len(g.path) > 0 {
		f.guards = append(f.guards, g)
	}
}

// membership is of 'x' in a.b, and of a.b in ['x', 'y'].
func (f *guardFinder) membership(value, of *expression.Node, want bool) {
	if p, ok := f.place(of); ok {
		name, isText := f.text(value)
		if !isText || p.optional && p.orElse == nil {
			return
		}
		if p.orElse != nil && (len(p.orElse.Args) > 0 || p.orElse.Kind != expression.Map && p.orElse.Kind != expression.List) {
			return
		}
		p.steps = append(p.steps, step{name, true})
		f.key(p, true, want)
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
	f.equals(value, values, want)
}

func (f *guardFinder) equality(a, b *expression.Node, want bool) {
	p, ok := f.place(a)
	if !ok {
		return
	}
	if v, ok := f.literal(b); ok {
		f.value(p, guard{asks: oneOf, values: []any{v}}.wanted(want))
	}
}

// equals adds that one of the values stands at a place, or none of them.
func (f *guardFinder) equals(n *expression.Node, values []any, want bool) {
	if p, ok := f.place(n); ok {
		f.value(p, guard{asks: oneOf, values: values}.wanted(want))
	}
}

func (g guard) wanted(want bool) guard {
	if !want {
		g.asks = noneOf
	}
	return g
}

// relation is of a.b < 3, 3 < a.b, and a.b.startsWith('x').
func (f *guardFinder) relation(n *expression.Node, want bool) {
	r := relations[n.Name]
	switch {
	case r >= begins && n.Target != nil && len(n.Args) == 1:
		p, ok := f.place(n.Target)
		if part, isText := f.text(n.Args[0]); ok && isText {
			f.value(p, guard{asks: textRelation, relation: r, values: []any{part}, not: !want})
		}
	case r < begins && n.Target == nil && len(n.Args) == 2:
		if !want {
			r = r.opposite()
		}
		f.comparison(n.Args[0], r, n.Args[1])
		f.comparison(n.Args[1], r.mirrored(), n.Args[0])
	}
}

func (f *guardFinder) comparison(a *expression.Node, r relation, b *expression.Node) {
	p, ok := f.place(a)
	if !ok {
		return
	}
	v, ok := f.constant(b)
	if u, unsigned := v.(uint64); unsigned && u <= math.MaxInt64 {
		v = int64(u) // they are ordered alike
	}
	switch v := v.(type) {
	case bool, uint64:
		return
	case float64:
		if math.IsNaN(v) {
			return // it is an error
		}
	}
	if ok {
		f.value(p, guard{asks: comparison, relation: r, values: []any{v}})
	}
}

// value adds a guard of the value at a place. Where there is none, the value that
// stands in for it counts.
func (f *guardFinder) value(p placeRead, g guard) {
	if p.optional && p.orElse == nil {
		return
	}
	if p.orElse != nil {
		orElse, known := f.constant(p.orElse)
		if !known {
			return
		}
		if !g.isFalse(orElse) {
			unsafe(p.steps)
		}
	}
	g.path = p.steps
	f.add(g)
}

// literal is a constant that values can be found by.
func (f *guardFinder) literal(n *expression.Node) (any, bool) {
	v, ok := f.constant(n)
	switch v.(type) {
	case string, int64, bool:
		return v, ok
	}
	return nil, false
}

func (f *guardFinder) text(n *expression.Node) (string, bool) {
	v, _ := f.constant(n)
	text, ok := v.(string)
	return text, ok
}

// constant is the value of an expression that names nothing.
func (f *guardFinder) constant(n *expression.Node) (any, bool) {
	for held := f.variable(n); held != nil; held = f.variable(n) {
		n = held
	}
	return n.Constant()
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
		if name, ok := f.text(n.Args[0]); ok {
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
