package lint

import (
	"slices"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// cost finds shapes whose work grows as a product, or with the cluster: they are
// allowed, under a deadline, which a large cluster then runs into.
//
// A loop within a loop over a part of the outer one's element walks a tree: its
// cost is that of the object, and is not reported.
var cost = &Check{ID: "cost", Severity: Warning, Summary: "An expression costs more than its size suggests", Run: func(p *Pass) {
	s := newScene(p)
	for _, e := range p.Expressions {
		s.loops(s.trees[e], nil, func(n *expression.Node, outer []*expression.Node) {
			lookup := s.lookupOf(n.Target)
			inner := len(outer) > 0 && !slices.ContainsFunc(outer, func(o *expression.Node) bool { return dependsOn(n.Target, o.Vars) })
			switch {
			case lookup != "" && s.unbounded(lookup):
				p.Reportf(e.Pos(n.Offset), "%s goes over all objects that %s finds, each time that an object is looked at: let where, or namespace, find those that are meant", n.Name, lookup)
			case inner && lookup != "":
				p.Reportf(e.Pos(n.Offset), "%s goes over all that %s finds, once for each element of the list around it: let where find those that are meant", n.Name, lookup)
			case inner && !s.small(n.Target) && !s.small(outer[len(outer)-1].Target):
				p.Reportf(e.Pos(n.Offset), "%s runs once for each element of the list around it: the cost is the product of both lengths", n.Name)
			}
		})
	}
}}

// loops visits what iterates, with the loops around it.
func (s *scene) loops(n *expression.Node, outer []*expression.Node, visit func(n *expression.Node, outer []*expression.Node)) {
	inner := outer
	if n.Kind == expression.Macro && n.Name != "optMap" && n.Name != "optFlatMap" {
		visit(n, outer)
		inner = append(slices.Clip(outer), n)
	}
	if n.Target != nil {
		s.loops(n.Target, outer, visit)
	}
	for _, arg := range n.Args {
		s.loops(arg, inner, visit)
	}
	for _, key := range n.Keys {
		s.loops(key, inner, visit)
	}
}

// lookupOf is the lookup that a list consists of, or a part of it; empty if it
// is another list.
func (s *scene) lookupOf(n *expression.Node) string {
	for v := s.variable(n); v != nil; v = s.variable(n) {
		n = v
	}
	switch {
	case n.Kind == expression.Ident && n.Declared && len(n.Name) > len("lookups.") && n.Name[:len("lookups.")] == "lookups.":
		return n.Name
	case n.Kind == expression.Macro && n.Target != nil:
		return s.lookupOf(n.Target)
	case n.Is("+") && len(n.Args) == 2:
		if left := s.lookupOf(n.Args[0]); left != "" {
			return left
		}
		return s.lookupOf(n.Args[1])
	}
	return ""
}

// unbounded reports whether a lookup takes all objects of a resource, in all
// namespaces.
func (s *scene) unbounded(name string) bool {
	list := s.pass.Field("spec", "lookups")
	if list == nil {
		return false
	}
	for _, item := range list.Content {
		if _, n := yamldoc.Field(item, "name"); n == nil || "lookups."+n.Value != name {
			continue
		}
		for _, bound := range []string{"where", "labelSelector", "namespace"} {
			if _, n := yamldoc.Field(item, bound); n != nil {
				return false
			}
		}
		return true
	}
	return false
}

// small reports whether a list or map is written in the rule, or a map of the
// object, such as its labels.
func (s *scene) small(n *expression.Node) bool {
	for v := s.variable(n); v != nil; v = s.variable(n) {
		n = v
	}
	return n.Kind == expression.List || n.Kind == expression.Map || s.spot(n, nil).isMap()
}

// dependsOn reports whether a node reads one of the names that a loop binds.
func dependsOn(n *expression.Node, names []string) bool {
	found := false
	n.Walk(func(n *expression.Node) bool {
		found = found || n.Kind == expression.Ident && !n.Declared && slices.Contains(names, n.Name)
		return !found
	})
	return found
}
