package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// quantityCompare finds quantities that are compared as strings, letter by
// letter: '900Mi' > '1Gi' is true.
var quantityCompare = &Check{ID: "quantity-compare", Severity: Error, Summary: "Quantities are compared as strings", Run: func(p *Pass) {
	s := newScene(p)
	for _, e := range p.Expressions {
		s.visit(s.trees[e], nil, func(n *expression.Node, f *frame) {
			if n.Kind != expression.Call || n.Target != nil || len(n.Args) != 2 {
				return
			}
			method := map[string]string{"<": "isLessThan", "<=": "isLessThan", ">": "isGreaterThan", ">=": "isGreaterThan"}[n.Name]
			if method == "" {
				return
			}
			a, b := n.Args[0], n.Args[1]
			switch {
			case !isQuantity(a) && !isQuantity(b) && !s.holdsQuantity(a, f) && !s.holdsQuantity(b, f):
				return
			case !mayBeText(a) || !mayBeText(b):
				return
			}
			better := "quantity(" + operand(a) + ")." + method + "(quantity(" + operand(b) + "))"
			switch n.Name {
			case "<=":
				better = "!quantity(" + operand(a) + ").isGreaterThan(quantity(" + operand(b) + "))"
			case ">=":
				better = "!quantity(" + operand(a) + ").isLessThan(quantity(" + operand(b) + "))"
			}
			p.Reportf(e.Pos(n.Offset), "a quantity is a string, and %s compares strings letter by letter: write %s", n.Name, better)
		})
	}
}}

// operand writes a side of a comparison as the argument of quantity(), which
// takes strings only: a quantity that is written as a number may be stored so.
func operand(n *expression.Node) string {
	switch v := n.Value.(type) {
	case string:
		return quote(v)
	case int64, uint64, float64:
		return "'…'"
	}
	if n.Type.String() == "string" {
		return spell(n, "…")
	}
	return "string(" + spell(n, "…") + ")"
}

// isQuantity reports whether a node is a string that reads as a quantity.
func isQuantity(n *expression.Node) bool {
	text, ok := n.Value.(string)
	if n.Kind != expression.Literal || !ok {
		return false
	}
	_, err := resource.ParseQuantity(text)
	return err == nil
}

// mayBeText leaves out what certainly is no string: it fails, or was converted.
func mayBeText(n *expression.Node) bool {
	switch n.Type.String() {
	case "string", "dyn":
		return true
	case "int", "double", "uint":
		return n.Kind == expression.Literal // what it is compared with still may be
	}
	return false
}

// holdsQuantity reports whether a field holds a quantity, by its schema, or by
// where it stands.
func (s *scene) holdsQuantity(n *expression.Node, f *frame) bool {
	for v := s.variable(n); v != nil; v = s.variable(n) {
		n, f = v, nil
	}
	for n.Kind == expression.Call && n.Target != nil && (n.Name == "orValue" || n.Name == "value") {
		n = n.Target
	}
	if n.Kind != expression.Select && n.Kind != expression.Index {
		return false
	}
	at := s.spot(n, f)
	if len(at.shapes) > 0 && !slices.ContainsFunc(at.shapes, func(s *shape) bool { return s.kind != expression.QuantityShape }) {
		return true
	}
	_, path := n.Path()
	if len(path) < 2 {
		return false
	}
	switch path[len(path)-2] {
	case "requests", "limits":
		return len(path) > 2 && path[len(path)-3] == "resources"
	case "capacity", "allocatable", "hard":
		return len(path) > 2
	}
	return false
}

// visit visits all nodes of a tree with the names that are bound there.
func (s *scene) visit(n *expression.Node, f *frame, do func(*expression.Node, *frame)) {
	do(n, f)
	if n.Kind != expression.Macro {
		for _, c := range n.Children() {
			s.visit(c, f, do)
		}
		return
	}
	s.visit(n.Target, f, do)
	inner, _ := s.bind(n, f)
	for _, arg := range n.Args {
		s.visit(arg, inner, do)
	}
}
