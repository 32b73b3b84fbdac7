package lint

import (
	"slices"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// mixedNumbers finds arithmetic between a double and a value whose type is
// known at run time only. A number that is whole is stored as an int, whatever
// its schema says, and CEL has no arithmetic of an int with a double.
var mixedNumbers = &Check{ID: "mixed-numbers", Severity: Warning, Summary: "Arithmetic with a double on a value that may be an int", Run: func(p *Pass) {
	s := newScene(p)
	for _, e := range p.Expressions {
		s.visit(s.trees[e], nil, func(n *expression.Node, f *frame) {
			if n.Kind != expression.Call || n.Target != nil || len(n.Args) != 2 || !slices.Contains(arithmetic, n.Name) {
				return
			}
			for i, dynamic := range n.Args {
				if dynamic.Type.String() == "dyn" && n.Args[1-i].Type.String() == "double" && !s.spot(dynamic, f).isInt() {
					what := spell(dynamic, "this")
					p.Reportf(e.Pos(dynamic.Start), "%s is an int where its value is a whole number, and an int %s a double is an error: write double(%s)",
						what, n.Name, spell(dynamic, "…"))
				}
			}
		})
	}
}}

var arithmetic = []string{"+", "-", "*", "/"}

// isInt reports whether a place holds an int for all objects: cel-type has told
// of it.
func (p spot) isInt() bool {
	return len(p.shapes) > 0 && !slices.ContainsFunc(p.shapes, func(s *shape) bool { return s.kind != expression.IntShape })
}
