package expression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// MaxNesting is how deeply comprehensions (map, filter, exists, …) may be
// nested. A dynamically typed object has no size bound that an estimator could
// use, so depth is the bound.
const MaxNesting = 2

// Type is the static type of an expression's result.
type Type struct{ cel *cel.Type }

// The types that names are declared with.
var (
	Dyn       = Type{cel.DynType} // known at run time only, such as `object`
	Bool      = Type{cel.BoolType}
	Timestamp = Type{cel.TimestampType}              // a Resolver gives a time.Time
	ListOfDyn = Type{cel.ListType(cel.DynType)}      // a Resolver gives a []any, such as the objects of a lookup
	Object    = Type{cel.ObjectType(objectTypeName)} // what `Object{…}` makes
)

// String names the type as CEL writes it: int, string, list(dyn), dyn.
func (t Type) String() string { return t.cel.String() }

// MayBeBool reports whether a value of the type can be a bool. An optional bool
// is none: nothing says what it is where it is absent.
func (t Type) MayBeBool() bool {
	return t.cel.IsExactType(cel.BoolType) || t.dynamic() && !t.Optional()
}

// MayBeText reports whether a value of the type can be put into a string: a
// string, number, bool, timestamp or duration.
func (t Type) MayBeText() bool {
	switch t.present().Kind() {
	case types.IntKind, types.UintKind, types.DoubleKind, types.BoolKind, types.StringKind, types.TimestampKind, types.DurationKind:
		return true
	}
	return t.dynamic()
}

// MayBeString reports whether a value of the type can be a string once it is
// written: times are written as strings.
func (t Type) MayBeString() bool {
	switch t.present().Kind() {
	case types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind:
		return true
	}
	return t.dynamic()
}

// MayBeScalars reports whether a value of the type can be a string, number or
// bool, or a list of them.
func (t Type) MayBeScalars() bool {
	inner := t.present()
	if inner.Kind() == types.ListKind {
		inner = Type{inner.Parameters()[0]}.present()
	}
	scalar := Type{inner}
	return scalar.MayBeText() || scalar.MayBeString()
}

// MayBeMapping reports whether a value of the type can be a map or an object.
func (t Type) MayBeMapping() bool {
	kind := t.present().Kind()
	return kind == types.MapKind || kind == types.StructKind || t.dynamic()
}

// MayBeMappings reports whether a value of the type can be a list of maps or
// objects.
func (t Type) MayBeMappings() bool {
	inner := t.present()
	return inner.Kind() == types.ListKind && Type{inner.Parameters()[0]}.MayBeMapping() || t.dynamic()
}

// NeverString reports whether a value of the type certainly is not a string:
// it is an int, bool, null, list or map.
func (t Type) NeverString() bool {
	return t.present().Kind() != types.StringKind && !t.dynamic()
}

// Optional reports whether a value of the type may be absent: it is what .? and
// [? give.
func (t Type) Optional() bool {
	_, optional := unwrapOptional(t.cel)
	return optional
}

// present is the type of the value where it is not absent. An absent one drops
// the key or element that it is the value of.
func (t Type) present() *types.Type {
	inner, _ := unwrapOptional(t.cel)
	return inner
}

// dynamic reports whether the type is known at run time only.
func (t Type) dynamic() bool {
	switch t.present().Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return true
	}
	return false
}

// Issue is one thing wrong with an expression.
type Issue struct {
	Offset int // where in the source, in bytes
	Msg    string
	Cost   bool // it compiles, but what it costs has no bound
}

// Error gives the message without the position, which only the caller can
// turn into one in a file.
func (i *Issue) Error() string { return i.Msg }

// Env is the language with the names that an expression may read. It is
// immutable and safe for concurrent use.
type Env struct {
	cel   *cel.Env
	names []declaration
}

type declaration struct {
	name string
	t    Type
}

// NewEnv returns the language without any name.
func NewEnv() *Env { return &Env{cel: base()} }

// Declare returns an environment that knows one more name. The name may have
// dots (`variables.expected`): it is then one name, resolved as a whole.
func (e *Env) Declare(name string, t Type) (*Env, error) {
	env, err := e.cel.Extend(cel.Variable(name, t.cel))
	if err != nil {
		return nil, fmt.Errorf("declare %q: %w", name, err)
	}
	return &Env{cel: env, names: append(slices.Clip(e.names), declaration{name, t})}, nil
}

// Compile parses, checks and plans an expression. All issues are returned, in
// the order of the source; the program is nil if there is any.
func (e *Env) Compile(source string) (*Program, []*Issue) {
	if strings.TrimSpace(source) == "" {
		return nil, []*Issue{{Msg: "the expression is empty"}}
	}
	checked, iss := e.cel.Compile(source)
	if iss.Err() != nil {
		return nil, issuesOf(source, iss.Errors(), e.declared())
	}
	depth := nesting(checked.NativeRep().Expr())
	if depth > MaxNesting {
		return nil, []*Issue{{Cost: true, Msg: fmt.Sprintf(
			"comprehensions are nested %d deep, at most %d are allowed: the cost on a large object would have no bound", depth, MaxNesting)}}
	}
	program, err := e.cel.Program(checked, planning(checked.NativeRep().Expr(), cel.OptOptimize)...)
	if err != nil {
		return nil, []*Issue{{Msg: err.Error()}}
	}
	return &Program{
		program: program,
		loops:   depth > 0,
		stops:   stops(checked.NativeRep().Expr()),
		reads:   e.read(checked.NativeRep()),
		lists:   e.lists(),
		ast:     checked.NativeRep(),
		source:  source,
		result:  Type{checked.OutputType()},
	}, nil
}

// planning is how all programs are planned.
func planning(e ast.Expr, option cel.EvalOption) []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.EvalOptions(option),
		cel.InterruptCheckFrequency(interruptCheckFrequency),
		cel.CustomDecoratorV2(inKeyOrder(e)),
		cel.CustomDecoratorV2(limited(e)),
	}
}

// offset turns CEL's line and column (in code points, from 0) into bytes.
func offset(source string, at common.Location) int {
	off := 0
	for line := 1; line < at.Line(); line++ {
		nl := strings.IndexByte(source[off:], '\n')
		if nl < 0 {
			return off
		}
		off += nl + 1
	}
	col := 0
	for i := range source[off:] {
		if col == at.Column() {
			return off + i
		}
		col++
	}
	return len(source)
}

// nesting returns how deeply comprehensions are nested in an expression.
func nesting(e ast.Expr) int {
	deepest := func(es ...ast.Expr) int {
		d := 0
		for _, e := range es {
			d = max(d, nesting(e))
		}
		return d
	}
	switch e.Kind() {
	case ast.CallKind:
		c := e.AsCall()
		d := deepest(c.Args()...)
		if c.IsMemberFunction() {
			d = max(d, nesting(c.Target()))
		}
		return d
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		body := deepest(c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
		if r := c.IterRange(); r.Kind() == ast.ListKind && r.AsList().Size() == 0 {
			return body // optMap and the like bind a name; nothing is iterated
		}
		// The range is evaluated once, before the loop: beside, not inside.
		return max(nesting(c.IterRange()), 1+body)
	case ast.ListKind:
		return deepest(e.AsList().Elements()...)
	case ast.MapKind:
		d := 0
		for _, entry := range e.AsMap().Entries() {
			d = max(d, deepest(entry.AsMapEntry().Key(), entry.AsMapEntry().Value()))
		}
		return d
	case ast.SelectKind:
		return nesting(e.AsSelect().Operand())
	case ast.StructKind:
		d := 0
		for _, f := range e.AsStruct().Fields() {
			d = max(d, nesting(f.AsStructField().Value()))
		}
		return d
	}
	return 0
}

// read returns the declared names that a checked expression reads, sorted.
func (e *Env) read(a *ast.AST) []string {
	var names []string
	for _, ref := range a.ReferenceMap() {
		// A dot marks a name that a comprehension's variable would hide.
		name := strings.TrimPrefix(ref.Name, ".")
		if e.declares(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (e *Env) declares(name string) bool {
	return slices.ContainsFunc(e.names, func(d declaration) bool { return d.name == name })
}

func (e *Env) declared() []string {
	names := make([]string, len(e.names))
	for i, d := range e.names {
		names[i] = d.name
	}
	return names
}

// lists returns the declared names whose values are lists of objects.
func (e *Env) lists() []string {
	var names []string
	for _, d := range e.names {
		if d.t == ListOfDyn {
			names = append(names, d.name)
		}
	}
	return names
}
