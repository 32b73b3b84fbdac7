package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// scene is a rule as one text: what its expressions say when variables and
// lookups are read where they are used.
type scene struct {
	pass      *Pass
	trees     map[*rules.Expression]*expression.Node
	variables map[string]*rules.Expression
	lookups   map[string][]*rules.Expression
	condition *rules.Expression // nil: there is none
	steps     int               // of walking and evaluating, see tired
}

func newScene(p *Pass) *scene {
	s := &scene{pass: p, trees: map[*rules.Expression]*expression.Node{}, variables: map[string]*rules.Expression{}, lookups: map[string][]*rules.Expression{}}
	for _, e := range p.Expressions {
		s.trees[e] = e.Program.Syntax()
		switch e.Part {
		case rules.PartVariable:
			s.variables["variables."+e.Name] = e
		case rules.PartLookup:
			s.lookups["lookups."+e.Name] = append(s.lookups["lookups."+e.Name], e)
		case rules.PartCondition:
			s.condition = e
		}
	}
	return s
}

// maxSteps bounds the work on one rule: variables that read variables, many
// times each, would make it without measure.
const maxSteps = 200_000

// tired counts a step, and reports whether there were enough.
func (s *scene) tired() bool {
	s.steps++
	return s.steps > maxSteps
}

// frame is a name that a macro binds, within those of the macros around it.
type frame struct {
	outer *frame
	name  string
	key   string
	spot  spot
}

func (f *frame) find(name string) *frame {
	for ; f != nil; f = f.outer {
		if f.name == name {
			return f
		}
	}
	return nil
}

// variable is the tree of the variable that a node names, nil if it names none.
func (s *scene) variable(n *expression.Node) *expression.Node {
	if n.Kind != expression.Ident || !n.Declared {
		return nil
	}
	return s.trees[s.variables[n.Name]]
}

const keySeparator = "\x00"

// key names the place in the object that a node reads, the same for all ways to
// read it: by selection, by index, optional or with a default, through a
// variable. It is empty where the node is no such place.
func (s *scene) key(n *expression.Node, f *frame) string {
	if s.tired() {
		return ""
	}
	switch n.Kind {
	case expression.Ident:
		switch v := s.variable(n); {
		case v != nil:
			return s.key(v, nil)
		case n.Declared:
			return n.Name
		}
		if bound := f.find(n.Name); bound != nil {
			return bound.key
		}
	case expression.Select:
		return s.below(n.Target, f, n.Name)
	case expression.Index:
		switch v := n.Args[0].Value.(type) {
		case string:
			return s.below(n.Target, f, v)
		case int64:
			return s.below(n.Target, f, fmt.Sprintf("[%d]", v))
		}
		if at := s.key(n.Args[0], f); at != "" {
			return s.below(n.Target, f, "["+at+"]")
		}
	case expression.Call:
		switch {
		case n.Target != nil && (n.Name == "orValue" || n.Name == "value"):
			return s.key(n.Target, f)
		case n.Target == nil && (n.Name == "dyn" || n.Name == "optional.of"):
			return s.key(n.Args[0], f)
		}
	}
	return ""
}

func (s *scene) below(n *expression.Node, f *frame, name string) string {
	if key := s.key(n, f); key != "" {
		return key + keySeparator + name
	}
	return ""
}

// guard is what must hold for something to be evaluated: a condition that is
// true, or false, or, of a loop, that there is an element.
type guard struct {
	n       *expression.Node
	f       *frame
	truth   bool
	element bool
}

// fails reports whether the guard surely does not hold.
func (g guard) fails(s folder) bool {
	v := s.fold(g.n, g.f)
	if g.element {
		return v.empty()
	}
	return v.is(!g.truth)
}

// bind gives the frame in which the arguments of a macro stand, and what is
// known of the elements that it iterates over.
func (s *scene) bind(n *expression.Node, f *frame) (*frame, []guard) {
	if n.Name == "optMap" || n.Name == "optFlatMap" {
		return &frame{f, n.Vars[0], s.key(n.Target, f), s.spot(n.Target, f)}, nil
	}
	key, elem, guards := s.element(n, n.Target, f)
	guards = append(guards, guard{n: n.Target, f: f, element: true})
	last := len(n.Vars) - 1
	if last == 1 { // an index or a key, and the value
		f = &frame{f, n.Vars[0], fmt.Sprintf("#%p.0", n), spot{}}
	} else if s.spot(n.Target, f).isMap() { // keys
		key, elem = fmt.Sprintf("#%p", n), spot{}
	}
	return &frame{f, n.Vars[last], key, elem}, guards
}

// element tells of the elements of what a macro iterates over: what is left of
// a filter has passed it.
func (s *scene) element(macro, n *expression.Node, f *frame) (key string, elem spot, guards []guard) {
	for v := s.variable(n); v != nil; v = s.variable(n) {
		n, f = v, nil
	}
	switch {
	case n.Kind == expression.Macro && n.Name == "filter":
		key, elem, guards = s.element(n, n.Target, f)
		return key, elem, append(guards, guard{n: n.Args[0], f: &frame{f, n.Vars[0], key, elem}, truth: true})
	case n.Kind == expression.Macro && n.Name == "sortBy", n.Is("reverse") && n.Target != nil, n.Is("distinct") && n.Target != nil:
		return s.element(macro, n.Target, f)
	}
	return fmt.Sprintf("#%p", macro), s.spot(n, f).element(), nil
}

// spot is what is known of a place: where it is in an object, and its schema.
// The zero spot is a place of which nothing is known.
type spot struct {
	// root is object, namespaceObject or a lookup, whose elements are objects;
	// empty where the place is not known, or below a list.
	root string
	path []string
	// shapes are the schemas of the place, one for each resource; nil where one
	// is not known.
	shapes []*shape
	// builtin says that the object is of a kind of Kubernetes itself, which the
	// API server always writes with its status, if it has one.
	builtin bool
	// list says that it is a list of objects: a lookup.
	list bool
	// defaulted says that something else stands there where it is absent.
	defaulted bool
}

func (s *scene) spot(n *expression.Node, f *frame) spot {
	if s.tired() {
		return spot{}
	}
	switch n.Kind {
	case expression.Ident:
		if v := s.variable(n); v != nil {
			return s.spot(v, nil)
		}
		if n.Declared {
			return s.declared(n.Name)
		}
		if bound := f.find(n.Name); bound != nil {
			return bound.spot
		}
	case expression.Select:
		return s.spot(n.Target, f).field(n.Name)
	case expression.Index:
		if name, ok := n.Args[0].Value.(string); ok {
			return s.spot(n.Target, f).field(name)
		}
		return s.spot(n.Target, f).element()
	case expression.Call:
		switch {
		case n.Target == nil:
		case n.Name == "orValue":
			out := s.spot(n.Target, f)
			out.defaulted = true
			return out
		case n.Name == "value", n.Name == "reverse", n.Name == "distinct":
			return s.spot(n.Target, f)
		}
	case expression.Macro:
		if n.Name == "filter" || n.Name == "sortBy" {
			if at := s.spot(n.Target, f); !at.isMap() {
				return at
			}
		}
	}
	return spot{}
}

// declared is the spot of object, namespaceObject or a lookup.
func (s *scene) declared(name string) spot {
	kinds := s.pass.typing.kinds
	out := spot{root: name, builtin: true}
	switch {
	case name == "object":
		for _, resource := range s.pass.Rule.Resources {
			out.shapes = append(out.shapes, kinds.of(resource).shape)
			out.builtin = out.builtin && isBuiltinGroup(resource.Group)
		}
	case name == "namespaceObject":
		out.shapes = []*shape{kinds.of(namespaces).shape}
	case strings.HasPrefix(name, "lookups."):
		for _, l := range s.pass.Rule.Lookups {
			if "lookups."+l.Name == name {
				out.shapes = []*shape{kinds.of(l.Resource).shape}
				out.builtin = isBuiltinGroup(l.Resource.Group)
				out.list = true
			}
		}
	default:
		return spot{}
	}
	if slices.Contains(out.shapes, nil) {
		out.shapes = nil
	}
	return out
}

// isBuiltinGroup reports whether a group is one of Kubernetes itself.
func isBuiltinGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") &&
		!strings.HasSuffix(group, ".x-k8s.io") && group != "gateway.networking.k8s.io" && group != "snapshot.storage.k8s.io"
}

func (p spot) field(name string) spot {
	if p.list {
		return spot{}
	}
	out := p
	out.defaulted = false
	out.path = append(slices.Clip(p.path), name)
	out.shapes = nil
	for _, shape := range p.shapes {
		f := shape.field(name)
		if shape.kind == expression.MapShape {
			f = shape.element()
		}
		if f == nil {
			out.shapes = nil
			break
		}
		out.shapes = append(out.shapes, f)
	}
	return out
}

// element is any element of a list, or any value of a map.
func (p spot) element() spot {
	if p.list {
		p.list = false
		return p
	}
	out := spot{builtin: p.builtin}
	for _, shape := range p.shapes {
		out.shapes = append(out.shapes, shape.element())
	}
	return out
}

// isMap reports whether the place surely is a map or an object.
func (p spot) isMap() bool {
	if p.list || len(p.shapes) == 0 {
		return p.isMetadataMap()
	}
	for _, shape := range p.shapes {
		if shape.kind != expression.MapShape && shape.kind != expression.ObjectShape {
			return p.isMetadataMap()
		}
	}
	return true
}

// isObject reports whether the place is an object with fields of its own, not a
// map of any keys.
func (p spot) isObject() bool {
	return slices.ContainsFunc(p.shapes, func(s *shape) bool { return s.kind == expression.ObjectShape })
}

// isMetadataMap reports whether the place is labels or annotations.
func (p spot) isMetadataMap() bool {
	return p.root != "" && len(p.path) == 2 && p.path[0] == "metadata" && (p.path[1] == "labels" || p.path[1] == "annotations")
}
