package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// constantCondition finds conditions, and parts of them, that are the same for
// all objects.
var constantCondition = &Check{ID: "constant-condition", Severity: Warning, Summary: "A condition is true, or false, for all objects", Run: func(p *Pass) {
	s := newScene(p)
	for _, e := range p.Expressions {
		c := constants{folder{scene: s}, e}
		tree := s.trees[e]
		if e.Part != rules.PartCondition {
			c.clashes(tree)
			continue
		}
		v := c.fold(tree, nil)
		switch {
		case v.is(true) && tree.Kind == expression.Literal:
			p.Reportf(e.Pos(tree.Start), "the condition is true for all objects: leave it out")
		case v.is(true):
			p.Reportf(e.Pos(tree.Start), "the condition is true for all objects")
		case v.is(false):
			p.Reportf(e.Pos(tree.Start), "the condition is false for all objects: the rule never does anything")
		default:
			c.parts(tree, nil)
			c.clashes(tree)
		}
	}
}}

type constants struct {
	folder
	e *rules.Expression
}

// parts reports operands of && and || that are constant by themselves. What a
// variable says is not: it may be a switch.
func (c constants) parts(n *expression.Node, f *frame) {
	if !n.Is("&&") && !n.Is("||") && !n.Is("!") {
		return
	}
	alone := c.folder
	alone.opaque = true
	for _, arg := range n.Operands(n.Name) {
		if arg == n { // a chain of one: !x
			arg = n.Args[0]
		}
		v := alone.fold(arg, f)
		switch {
		case v.is(true), v.is(false):
			c.pass.Reportf(c.e.Pos(arg.Start), "this part of the condition is %v for all objects", v.v)
		default:
			c.parts(arg, f)
		}
	}
}

// clashes reports operands of one && that cannot be true together, and of one
// || of which one is always true.
func (c constants) clashes(n *expression.Node) {
	if c.tired() {
		return
	}
	if n.Is("&&") || n.Is("||") {
		operands := n.Operands(n.Name)
		if !c.clash(n, operands) {
			for _, o := range operands {
				c.clashes(o)
			}
		}
		return
	}
	for _, child := range n.Children() {
		c.clashes(child)
	}
}

// clash looks at the operands of one chain: for ||, at their negations, which
// cannot be true together if the || is always true.
func (c constants) clash(n *expression.Node, operands []*expression.Node) bool {
	always := n.Is("||")
	var facts []fact
	for _, o := range operands {
		made := factsOf(o, !always)
		for _, b := range made {
			for _, a := range facts {
				if !a.excludes(b) {
					continue
				}
				msg := "this can never be true together with what stands before: the && is false for all objects"
				if always {
					msg = "one of this and what stands before is always true: the || is true for all objects"
				}
				c.pass.Reportf(c.e.Pos(o.Start), "%s", msg)
				return true
			}
		}
		facts = append(facts, made...)
	}
	return false
}

// fact says something of the value of an expression: what it is compared with.
type fact struct {
	of       string // the expression, in one spelling
	operator string // ==, !=, <, <=, >, >=, or in: one of values
	values   []folded
}

var negated = map[string]string{"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<", "in": "not in"}

// factsOf are what an operand says if it is true, or false.
func factsOf(n *expression.Node, truth bool) []fact {
	for n.Is("!") {
		n, truth = n.Args[0], !truth
	}
	self := fact{of: canonical(n), operator: "==", values: []folded{constantOf(truth)}}
	if n.Kind != expression.Call || n.Target != nil || len(n.Args) != 2 || negated[n.Name] == "" {
		return []fact{self}
	}
	of, operator, value := n.Args[0], n.Name, n.Args[1]
	if flipped, ok := map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}[operator]; ok && of.Kind == expression.Literal {
		of, operator, value = value, flipped, of
	}
	var values []folded
	switch {
	case operator == "in" && value.Kind == expression.List && len(value.Args) > 0:
		for _, item := range value.Args {
			if item.Kind != expression.Literal {
				return []fact{self}
			}
			values = append(values, constantOf(item.Value))
		}
	case operator != "in" && value.Kind == expression.Literal:
		values = []folded{constantOf(value.Value)}
	default:
		return []fact{self}
	}
	if !truth {
		operator = negated[operator]
	}
	return []fact{self, {of: canonical(of), operator: operator, values: values}}
}

// excludes reports whether two facts cannot both hold. Ranges are compared only
// where both have values of one kind: CEL fails on others.
func (a fact) excludes(b fact) bool {
	if a.of != b.of {
		return false
	}
	// One of them names all values that are possible: none may fit the other.
	if a.operator == "==" || a.operator == "in" {
		return !slices.ContainsFunc(a.values, b.allows)
	}
	if b.operator == "==" || b.operator == "in" {
		return !slices.ContainsFunc(b.values, a.allows)
	}
	lower, upper := a, b
	if strings.HasPrefix(a.operator, "<") {
		lower, upper = b, a
	}
	if !strings.HasPrefix(lower.operator, ">") || !strings.HasPrefix(upper.operator, "<") {
		return false
	}
	order, ok := compare(lower.values[0], upper.values[0])
	return ok && (order > 0 || order == 0 && (lower.operator == ">" || upper.operator == "<"))
}

// allows reports whether a value may be one of which the fact holds.
func (a fact) allows(v folded) bool {
	one := func(w folded) (order int, known bool) {
		order, known = compare(v, w)
		if !known && v.kind == constant && w.kind == constant && kindName(v) != kindName(w) {
			return 1, a.operator != "<" && a.operator != "<=" && a.operator != ">" && a.operator != ">="
		}
		return order, known
	}
	for _, w := range a.values {
		order, known := one(w)
		if !known {
			return true
		}
		switch a.operator {
		case "==", "in":
			if order == 0 {
				return true
			}
		case "!=", "not in":
			if order == 0 {
				return false
			}
		default:
			return apply(a.operator, []folded{v, w}).is(true)
		}
	}
	return a.operator == "!=" || a.operator == "not in"
}

// kindName tells apart values that are never equal: 1 and 1.0 are.
func kindName(v folded) string {
	switch v.v.(type) {
	case int64, uint64, float64:
		return "number"
	}
	return fmt.Sprintf("%T", v.v)
}

// canonical writes an expression in one spelling, whatever white space and
// quotes it has.
func canonical(n *expression.Node) string {
	var b strings.Builder
	n.Walk(func(n *expression.Node) bool {
		fmt.Fprintf(&b, "(%s %q %v %v %v %q %#v %d", n.Kind, n.Name, n.Declared, n.Optional, n.Test, n.Fields, n.Value, len(n.Children()))
		for _, v := range n.Vars {
			b.WriteString(" " + v)
		}
		return true
	})
	return b.String()
}
