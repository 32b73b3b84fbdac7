package rules

import (
	"slices"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// alternatives are what an expression may come to: the branches of a
// condition, the value of a variable, the elements that a name is bound to.
func (m *maker) alternatives(v *made) []*made {
	if m.steps--; m.steps < 0 {
		return []*made{v}
	}
	all := func(parts ...*expression.Node) (out []*made) {
		for _, part := range parts {
			out = append(out, m.alternatives(v.part(part))...)
		}
		return out
	}
	switch {
	case v.Is("?:") && len(v.Args) == 3:
		return all(v.Args[1:]...)
	case v.Kind == expression.Call && v.Target == nil && len(v.Args) == 1 && slices.Contains(transparent, v.Name):
		return all(v.Args...)
	case v.Is("orValue") && v.Target != nil && len(v.Args) == 1, v.Is("or") && v.Target != nil && len(v.Args) == 1:
		return all(v.Target, v.Args[0])
	case v.Is("value") && v.Target != nil:
		return all(v.Target)
	case v.Kind == expression.Ident && v.Declared && m.variables[v.Name] != nil:
		return m.alternatives(m.variables[v.Name])
	case v.Kind == expression.Ident && !v.Declared:
		for b := v.bound; b != nil; b = b.outer {
			if b.name != v.Name {
				continue
			}
			if elements, ok := m.elements(b.of); ok {
				var out []*made
				for _, e := range elements {
					out = append(out, m.alternatives(e)...)
				}
				return out
			}
			break
		}
	}
	return []*made{v}
}

// transparent are functions that give what they are given.
var transparent = []string{"dyn", "optional.of", "optional.ofNonZeroValue"}

// elements are what may be in the list that an expression gives.
func (m *maker) elements(v *made) (out []*made, ok bool) {
	if v == nil {
		return nil, false
	}
	for _, v := range m.alternatives(v) {
		some, ok := m.elementsOf(v)
		if !ok || m.steps < 0 {
			return nil, false
		}
		out = append(out, some...)
	}
	return out, true
}

func (m *maker) elementsOf(v *made) (out []*made, ok bool) {
	switch {
	case v.Kind == expression.List:
		for _, arg := range v.Args {
			out = append(out, v.part(arg))
		}
		return out, true
	case v.Is("+") && len(v.Args) == 2:
		for _, arg := range v.Args {
			some, ok := m.elements(v.part(arg))
			if !ok {
				return nil, false
			}
			out = append(out, some...)
		}
		return out, true
	case v.Target == nil:
		return nil, false
	case v.Kind == expression.Macro:
		return m.macro(v)
	case v.Kind == expression.Call && slices.Contains([]string{"reverse", "slice", "distinct", "sort"}, v.Name):
		return m.elements(v.part(v.Target))
	case v.Is("flatten"):
		return m.flatten(v)
	}
	return nil, false
}

// flatten gives the elements of the lists in a list, and what in it is no
// list.
func (m *maker) flatten(v *made) (out []*made, ok bool) {
	lists, ok := m.elements(v.part(v.Target))
	if !ok {
		return nil, false
	}
	for _, l := range lists {
		if elements, ok := m.elements(l); ok {
			out = append(out, elements...)
		} else {
			out = append(out, l)
		}
	}
	return out, true
}

// macro are the elements of a list that a macro makes of another.
func (m *maker) macro(v *made) ([]*made, bool) {
	over := v.part(v.Target)
	last := func(names ...boundName) *made {
		bound := v.bound
		for _, b := range names {
			bound = &boundName{b.name, b.of, bound}
		}
		return &made{v.Args[len(v.Args)-1], v.in, bound}
	}
	switch {
	case v.Name == "filter" || v.Name == "sortBy":
		return m.elements(over)
	case v.Name == "map" && len(v.Vars) == 1:
		return []*made{last(boundName{name: v.Vars[0], of: over})}, true
	case v.Name == "transformList" && len(v.Vars) == 2:
		return []*made{last(boundName{name: v.Vars[0]}, boundName{name: v.Vars[1], of: over})}, true
	}
	return nil, false
}

// maxTexts bounds how many texts an expression may come to.
const maxTexts = 64

// texts are the strings that an expression may give, with what is unknown of
// them.
func (m *maker) texts(v *made) []string {
	var out []string
	for _, v := range m.alternatives(v) {
		text, ok := literal(v.Node)
		switch {
		case ok:
			out = append(out, text)
		case v.Is("+") && len(v.Args) == 2:
			ends := m.texts(v.part(v.Args[1]))
			for _, begin := range m.texts(v.part(v.Args[0])) {
				for _, end := range ends {
					out = append(out, begin+end)
				}
			}
		default:
			out = append(out, unknown)
		}
		if len(out) > maxTexts || m.steps < 0 {
			return []string{unknown}
		}
	}
	return out
}

// literal is the value of a string literal.
func literal(n *expression.Node) (string, bool) {
	text, ok := n.Value.(string)
	return text, ok && n.Kind == expression.Literal
}
