package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// emptyLookup finds reads of an element of a lookup, where nothing asks before
// whether the lookup has found that many objects. As of optional-field, guards
// are found out by evaluating conditions as far as possible, here with a lookup
// that has found too few.
var emptyLookup = &Check{ID: "empty-lookup", Severity: Warning, Summary: "An element of a lookup is read that may not be there", Run: func(p *Pass) {
	r := reads{scene: newScene(p)}
	r.look = func(e *rules.Expression, links []*expression.Node, f *frame, met []guard) bool {
		link := links[len(links)-1]
		index, literal := elementIndex(link)
		lookup, all := r.lookupBehind(link.Target)
		key := fmt.Sprintf("%s[%d]", lookup, index)
		if !literal || lookup == "" || slices.Contains(r.told, key) || !r.mayLackElement(lookup, index, all, met) {
			return false
		}
		r.told = append(r.told, key)
		list := spell(link.Target, "this list")
		ask := list + ".size()"
		if list == "this list" {
			ask = "whether its size()"
		}
		may := "may be empty"
		if index > 0 {
			may = fmt.Sprintf("may have no element %d", index)
		}
		p.Reportf(e.Pos(link.Offset), "%s %s: ask %s > %d first, or write %s", list, may, ask, index, r.defaulted(links, f))
		return true
	}
	r.walkRule()
}}

// elementIndex is the number of the element that an index reads, if it is literal.
func elementIndex(n *expression.Node) (index int64, literal bool) {
	if n.Kind != expression.Index {
		return 0, false
	}
	index, literal = n.Args[0].Value.(int64)
	return index, literal && index >= 0
}

// lookupBehind is the lookup of which a list holds objects, empty if it is none; all
// says that it holds all of them.
func (s *scene) lookupBehind(n *expression.Node) (name string, all bool) {
	all = true
	for !s.tired() {
		if v := s.variable(n); v != nil {
			n = v
			continue
		}
		switch {
		case n.Kind == expression.Ident && n.Declared && strings.HasPrefix(n.Name, "lookups."):
			return n.Name, all
		case n.Kind == expression.Macro && n.Name == "sortBy", n.Is("reverse") && n.Target != nil:
		case n.Kind == expression.Macro && (n.Name == "filter" || n.Name == "map"):
			all = false
		default:
			return "", false
		}
		n = n.Target
	}
	return "", false
}

// maxFound bounds the numbers of objects that are tried.
const maxFound = 10

// mayLackElement reports whether a lookup may have found too few objects for an index,
// whatever has been asked before. Of a list that holds only some of them it is
// only asked whether there is any at all.
func (r *reads) mayLackElement(lookup string, index int64, all bool, met []guard) bool {
	if !all {
		index = 0
	}
	for finds := range min(index, maxFound) + 1 {
		few := folder{scene: r.scene, lookup: lookup, finds: finds}
		if !slices.ContainsFunc(met, func(g guard) bool { return g.fails(few) }) {
			return !r.tired() // without all steps, a guard may not have been understood
		}
	}
	return false
}
