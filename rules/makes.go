package rules

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// maker tells what the expressions of patches make, as far as their literals
// tell it: the paths of a computed partial object, or of computed operations.
// What is not understood may be anything.
type maker struct {
	expressions []*Expression // of the patches
	variables   map[string]*made
	steps       int    // left until it is given up
	taken       []spot // what operations of the patch at hand copy and move
	tested      []spot // and what they test
}

// take notes from where an operation takes its value; empty: op may be any.
func (m *maker) take(op string, from spot) {
	if op == "" || op == "copy" || op == "move" {
		m.taken = append(m.taken, from)
	}
}

// test notes the path of a test; without one it is an error when it is made.
func (m *maker) test(path *made) {
	if path == nil {
		return
	}
	for _, pattern := range m.texts(path) {
		at, _ := pointerSpot(pattern)
		m.tested = append(m.tested, at)
	}
}

// maxSteps bounds the work on expressions that multiply: variables that are
// twice the one before.
const maxSteps = 10_000

// made is an expression in its place: what its free names are bound to.
type made struct {
	*expression.Node
	in    *Expression
	bound *boundName
}

// boundName is a name that a macro binds to the elements of a list; of is nil
// where it is bound to something else.
type boundName struct {
	name  string
	of    *made
	outer *boundName
}

func (m *made) part(n *expression.Node) *made { return &made{n, m.in, m.bound} }

// target is a place that an expression can change.
type target struct {
	spot
	write Write
	at    *made // nil: somewhere
}

func (t target) pos(fallback yamldoc.Position) yamldoc.Position {
	if t.at == nil || t.at.in == nil {
		return fallback
	}
	return t.at.in.Pos(t.at.Start)
}

func newMaker(expressions []*Expression) *maker {
	m := &maker{variables: map[string]*made{}, steps: maxSteps}
	for _, e := range expressions {
		switch e.Part {
		case PartPatch:
			m.expressions = append(m.expressions, e)
		case PartVariable:
			m.variables[variablePrefix+e.Name] = &made{Node: e.Program.Syntax(), in: e}
		}
	}
	return m
}

// expression is the one that a scalar consists of; nil if it is not found.
func (m *maker) expression(n *yaml.Node) *made {
	for _, e := range m.expressions {
		if e.node == n {
			return &made{Node: e.Program.Syntax(), in: e}
		}
	}
	return nil
}

// partial are the places that a computed part of a merge patch or of a
// configuration can change; at is where the part stands.
func (m *maker) partial(n *yaml.Node, at spot, kind PatchKind) []target {
	root := m.expression(n)
	if root == nil {
		return []target{{spot: at}}
	}
	out := m.fields(root, at, kind, true)
	if m.steps < 0 {
		return []target{{spot: at}}
	}
	return out
}

// fields are the places of a partial object; sure says that it is what comes
// out on every object.
func (m *maker) fields(v *made, at spot, kind PatchKind, sure bool) []target {
	var out []target
	alternatives := m.alternatives(v)
	sure = sure && len(alternatives) == 1
	for _, v := range alternatives {
		switch {
		case v.Kind == expression.Map && len(v.Args) > 0:
			for i, arg := range v.Args {
				if key, ok := literal(v.Keys[i]); ok {
					out = append(out, m.fields(v.part(arg), at.at(key), kind, sure)...)
				} else {
					out = append(out, target{spot: at, at: v.part(v.Keys[i])})
				}
			}
		case v.Kind == expression.Struct && len(v.Args) > 0:
			for i, arg := range v.Args {
				out = append(out, m.fields(v.part(arg), at.at(v.Fields[i]), kind, sure)...)
			}
		case v.Kind == expression.Map, v.Kind == expression.Struct:
			out = append(out, target{at, Write{ensures: true}, v})
		case v.Kind == expression.Literal && len(at.path) > 0:
			removes := v.Value == nil && kind == KindMerge
			out = append(out, target{at, Write{Exact: true, Constant: sure, Value: v.Value, Removes: sure && removes}, v})
		case kind == KindApplyConfiguration && len(at.path) > 0:
			out = append(out, m.list(v, at, kind)...)
		default:
			exact := len(at.path) > 0 && v.Kind != expression.Macro
			out = append(out, target{at, Write{Exact: exact && kind == KindMerge}, v})
		}
	}
	return out
}

// list are the places of a computed list of a configuration, if it is one of
// objects: they are merged by their keys.
func (m *maker) list(v *made, at spot, kind PatchKind) []target {
	elements, ok := m.elements(v)
	if !ok || len(elements) == 0 {
		return []target{{at, Write{}, v}}
	}
	var out []target
	for _, e := range elements {
		for _, e := range m.alternatives(e) {
			if e.Kind != expression.Map && e.Kind != expression.Struct {
				return []target{{at, Write{}, v}}
			}
			out = append(out, m.fields(e, at.at(fieldset.Elem), kind, false)...)
		}
	}
	return out
}

// operations are the places that a computed list of operations, or one
// computed operation, can change.
func (m *maker) operations(n *yaml.Node) []target {
	if root := m.expression(n); root != nil {
		if out, ok := m.ops(root); ok && m.steps >= 0 {
			return out
		}
	}
	m.take("", spot{})
	return []target{{}}
}

func (m *maker) ops(v *made) (out []target, ok bool) {
	for _, v := range m.alternatives(v) {
		switch v.Kind {
		case expression.Map:
			members := map[string]*made{}
			for i, arg := range v.Args {
				key, ok := literal(v.Keys[i])
				if !ok {
					return nil, false
				}
				members[key] = v.part(arg)
			}
			out = append(out, m.op(v, members)...)
		case expression.Struct:
			members := map[string]*made{}
			for i, arg := range v.Args {
				members[v.Fields[i]] = v.part(arg)
			}
			out = append(out, m.op(v, members)...)
		default:
			elements, ok := m.elements(v)
			if !ok {
				return nil, false
			}
			for _, e := range elements {
				some, ok := m.ops(e)
				if !ok {
					return nil, false
				}
				out = append(out, some...)
			}
		}
	}
	return out, true
}

func (m *maker) op(at *made, members map[string]*made) []target {
	op := ""
	if v := members["op"]; v != nil {
		op, _ = literal(v.Node)
	}
	if op == "test" {
		m.test(members["path"])
		return nil
	}
	var out []target
	for name, v := range members {
		if name != "path" && name != "from" {
			continue
		}
		for _, pattern := range m.texts(v) {
			at, exact := pointerSpot(pattern)
			if name == "from" {
				m.take(op, at)
			}
			if name == "from" && op == "copy" {
				continue
			}
			out = append(out, target{at, Write{Exact: exact, op: op}, v})
		}
	}
	slices.SortFunc(out, func(a, b target) int {
		return cmp.Or(slices.Compare(a.path, b.path), slices.Compare(a.within, b.within))
	})
	if out == nil {
		return []target{{at: at}} // no operation, which is an error when it is made
	}
	return out
}
