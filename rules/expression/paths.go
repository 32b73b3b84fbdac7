package expression

import (
	"slices"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// Analysis finds out which fields of the values of declared names a number of
// programs can read: an abstract interpretation of their checked expressions.
// It is sound: evaluated on values reduced to these fields, every program gives
// the same result, or fails where it failed. What is not understood is needed
// whole.
//
// An Analysis is not safe for concurrent use; the sets that it returns are.
type Analysis struct {
	roots  map[string]*fieldset.Builder
	lists  map[string]bool
	bound  map[string]*binding
	passes int // how often a loop is interpreted until it is given up
}

// binding is a name whose value is the result of a program.
type binding struct {
	program *Program
	done    bool
	alias   alias
}

// NewAnalysis returns an Analysis that has seen no program.
func NewAnalysis() *Analysis {
	return &Analysis{
		roots:  map[string]*fieldset.Builder{},
		lists:  map[string]bool{},
		bound:  map[string]*binding{},
		passes: 4,
	}
}

// Bind says that the value of a declared name is what a program yields: a
// variable. It may be a part of an object that other programs read deeper.
// What a bound program reads counts only if a program that is read uses the
// name. Bind comes before the Read of what uses it.
func (a *Analysis) Bind(name string, p *Program) { a.bound[name] = &binding{program: p} }

// Read adds what a program can read. Its result is used whole: it is a
// condition, or what a template writes.
func (a *Analysis) Read(p *Program) { a.run(p).whole() }

// Paths returns the fields of the value of a declared name that are needed. Of
// a name declared as ListOfDyn they are the fields of the elements; the number
// of elements is always known. The set is empty, never nil, if nothing is read.
func (a *Analysis) Paths(name string) *fieldset.Set {
	root := a.roots[name]
	switch {
	case root == nil:
		return fieldset.Empty()
	case a.lists[name]:
		return root.ItemsSet()
	}
	return root.Set()
}

// Paths returns the fields of the value of a declared name that the program
// alone can read: see Analysis.Paths.
func (p *Program) Paths(name string) *fieldset.Set {
	a := NewAnalysis()
	a.Read(p)
	return a.Paths(name)
}

func (a *Analysis) run(p *Program) alias {
	for _, name := range p.lists {
		a.lists[name] = true
	}
	return a.eval(p.ast.Expr(), nil)
}

// name returns what the value of a declared name is.
func (a *Analysis) name(name string) alias {
	if b := a.bound[name]; b != nil {
		if !b.done {
			b.done = true
			b.alias = a.run(b.program)
		}
		return b.alias
	}
	root := a.roots[name]
	if root == nil {
		root = fieldset.NewBuilder()
		a.roots[name] = root
	}
	return alias{places: []*fieldset.Builder{root}}
}

// alias is the abstract value of an expression: what its value may be a part
// of. An optional value is what it holds. The zero alias is a value that is
// made of nothing but what has been marked as needed already.
type alias struct {
	places []*fieldset.Builder
	// inside is what may be in a list, map or message that the expression
	// built; nil: nothing of interest.
	inside *alias
}

// container is a list, map or message that has values inside.
func container(inside alias) alias {
	if inside.places == nil && inside.inside == nil {
		return alias{}
	}
	return alias{inside: &inside}
}

func (v alias) join(w alias) alias {
	out := alias{places: slices.Clip(v.places), inside: v.inside}
	for _, p := range w.places {
		if !slices.Contains(out.places, p) {
			out.places = append(out.places, p)
		}
	}
	if v.inside != nil && w.inside != nil && v.inside != w.inside {
		both := v.inside.join(*w.inside)
		out.inside = &both
	} else if out.inside == nil {
		out.inside = w.inside
	}
	return out
}

// size grows whenever a join adds something.
func (v alias) size() int {
	if v.inside == nil {
		return len(v.places)
	}
	return len(v.places) + 1 + v.inside.size()
}

// whole marks the value as needed with all that is in it.
func (v alias) whole() {
	for _, p := range v.places {
		p.Whole()
	}
	if v.inside != nil {
		v.inside.whole()
	}
}

// keys marks the value's own shape as needed: the keys of a map, the length of
// a list, a scalar itself. The shape of a container that the expression built
// depends on nothing that is not marked.
func (v alias) keys() {
	for _, p := range v.places {
		p.Keys()
	}
}

// step is a value one level down: in the value's places, and inside of what
// the expression built.
func (v alias) step(down ...func(*fieldset.Builder) *fieldset.Builder) alias {
	var out alias
	if v.inside != nil {
		out = *v.inside
		out.places = slices.Clip(out.places)
	}
	for _, p := range v.places {
		for _, d := range down {
			out.places = append(out.places, d(p))
		}
	}
	return out
}

func (v alias) field(name string) alias {
	return v.step(func(b *fieldset.Builder) *fieldset.Builder { return b.Field(name) })
}

// item is any element of a list. It marks the value's keys: the length of the
// list, or a scalar that is there instead.
func (v alias) item() alias { return v.step((*fieldset.Builder).Items) }

// element is any element of a list or any value of a map. It marks the keys.
func (v alias) element() alias {
	return v.step((*fieldset.Builder).Items, (*fieldset.Builder).Values)
}
