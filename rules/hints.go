package rules

import (
	"slices"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// learn finds what a rule compares its fields with. A field is known by its
// own name only: wherever it stands, it likely means the same.
func (g *inventor) learn(r *Rule) {
	names := map[string][]string{} // of the fields that a variable is made of
	study := func(p *expression.Program) (fields []string) {
		p.Syntax().Walk(func(n *expression.Node) bool {
			fields = append(fields, fieldNames(n, names)...)
			g.compare(n, names)
			return true
		})
		slices.Sort(fields)
		return slices.Compact(fields)
	}
	values := map[string]*expression.Node{}
	for _, v := range r.variables {
		names[variablePrefix+v.name] = study(v.program)
		values[variablePrefix+v.name] = v.program.Syntax()
	}
	if r.condition != nil {
		study(r.condition)
		for _, part := range r.condition.Syntax().Operands("&&") {
			if path := deniedPath(part, values); len(path) > 0 {
				g.absent = append(g.absent, path)
			}
		}
	}
	for _, p := range r.patches {
		for _, t := range []template{p.merge, p.json, p.apply} {
			for _, program := range programsOf(t) {
				study(program)
			}
		}
	}
}

// deniedPath is the path of what a part of a condition wants not to be there:
// !has(object.x), !object.?x.hasValue(), !('x' in object.y).
func deniedPath(n *expression.Node, variables map[string]*expression.Node) []string {
	value := func(n *expression.Node) *expression.Node {
		for n.Kind == expression.Ident && variables[n.Name] != nil {
			n = variables[n.Name]
		}
		return n
	}
	if n = value(n); !n.Is("!") || len(n.Args) != 1 {
		return nil
	}
	n = value(n.Args[0])
	var last []string
	switch {
	case n.Is("hasValue") && n.Target != nil:
		n = n.Target
	case n.Is("in") && len(n.Args) == 2:
		key, ok := literal(n.Args[0])
		if n = value(n.Args[1]); !ok {
			return nil
		}
		last = []string{key}
		if n.Is("orValue") && n.Target != nil {
			n = n.Target
		}
	case n.Kind != expression.Select || !n.Test:
		return nil
	}
	root, path := n.Path()
	if root = value(root); root.Kind == expression.Ident && root.Name == objectName {
		return slices.Concat(path, last)
	}
	outer, above := root.Path()
	if outer.Kind == expression.Ident && outer.Name == objectName {
		return slices.Concat(above, path, last)
	}
	return nil
}

// fieldNames are the names that a part of an expression goes by: of a
// selection, and of a variable those of what it is made of.
func fieldNames(n *expression.Node, variables map[string][]string) []string {
	switch n.Kind {
	case expression.Select:
		return []string{n.Name}
	case expression.Index:
		if key, ok := literal(n.Args[0]); ok {
			return []string{key}
		}
	case expression.Ident:
		return variables[n.Name]
	case expression.Call:
		if n.Target != nil { // orValue, size, lowerAscii
			return fieldNames(n.Target, variables)
		}
		if len(n.Args) == 1 { // int, string, quantity
			return fieldNames(n.Args[0], variables)
		}
	}
	return nil
}

func (g *inventor) compare(n *expression.Node, variables map[string][]string) {
	if n.Kind != expression.Call {
		return
	}
	operands := slices.Clone(n.Args)
	if n.Target != nil {
		operands = append(operands, n.Target)
	}
	var fields []string
	for _, o := range operands {
		fields = append(fields, fieldNames(o, variables)...)
	}
	for _, o := range operands {
		values := []*expression.Node{o}
		if o.Kind == expression.List {
			values = o.Args
		}
		for _, v := range values {
			if v.Kind == expression.Literal && v.Value != nil {
				g.hint(fields, v.Value)
			}
		}
	}
}

// hint notes a value that fields of these names may have, and its neighbours.
func (g *inventor) hint(fields []string, value any) {
	near := []any{value, value, value, value} // itself as often as its neighbours
	switch v := value.(type) {
	case string:
		near = append(near, v+"probe", "probe"+v)
	case int64:
		near = append(near, v+1, v-1)
	case bool:
	default:
		return
	}
	g.values = append(g.values, value)
	for _, f := range fields {
		g.hints[f] = append(g.hints[f], near...)
	}
}
