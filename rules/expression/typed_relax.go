package expression

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// selectLiterals turns x['key'] into x.key: on a plain map they are the same,
// but only the second is an access to a field for the checker.
func selectLiterals(e ast.Expr) {
	if e.Kind() != ast.CallKind {
		return
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.Index:
		if key, ok := stringLiteral(args[1]); ok {
			e.SetKindCase(factory.NewSelect(e.ID(), args[0], key))
		}
	case operators.OptIndex:
		if _, ok := stringLiteral(args[1]); ok {
			e.SetKindCase(factory.NewCall(e.ID(), operators.OptSelect, args...))
		}
	}
}

// relax changes the expression where the checker refused what works on plain
// maps, and reports whether it did. Each node is relaxed once.
func (t *typeCheck) relax(id int64) bool {
	e := t.byID[id]
	if e == nil {
		return false
	}
	if _, done := t.relaxed[id]; done {
		return false
	}
	if t.ranges[id] && holdsObject(t.typeOf(e)) {
		t.relaxed[id] = nil
		t.loosen(e)
		return true
	}
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() == operators.OptSelect || t.typeOf(e).Kind() != types.ErrorKind {
		return false
	}
	args := operands(e)
	before := make([]*types.Type, len(args))
	for i, arg := range args {
		before[i] = t.typeOf(arg)
	}
	t.relaxed[id] = before
	switch e.AsCall().FunctionName() {
	case operators.Conditional:
		return t.join(args[1], args[2])
	case "orValue", "or":
		return t.join(args...)
	case operators.Equals, operators.NotEquals:
		if mayBeEqual(before[0], before[1]) {
			return t.forget(args...)
		}
	case operators.In:
		if elem := before[1]; elem.Kind() == types.ListKind && mayBeEqual(before[0], elem.Parameters()[0]) {
			return t.forget(args...)
		}
	case operators.Add:
		if before[0].Kind() == types.ListKind && before[1].Kind() == types.ListKind {
			return t.forget(args...)
		}
	}
	changed := false
	for _, arg := range args {
		if holdsObject(t.typeOf(arg)) {
			t.loosen(arg)
			changed = true
		}
	}
	return changed
}

// mayBeEqual reports whether values of two types can be equal though the
// checker does not compare them: numbers, and null with anything.
func mayBeEqual(a, b *types.Type) bool {
	return numeric(a) && numeric(b) || a.Kind() == types.NullTypeKind || b.Kind() == types.NullTypeKind
}

func numeric(t *types.Type) bool {
	return t.Kind() == types.IntKind || t.Kind() == types.UintKind || t.Kind() == types.DoubleKind
}

// join makes values of different types meet: the one that is there at run time
// counts. {} beside an object is one without fields.
func (t *typeCheck) join(args ...ast.Expr) bool {
	object := false
	for _, arg := range args {
		inner, _ := unwrapOptional(t.typeOf(arg))
		object = object || inner.Kind() == types.StructKind && holdsObject(inner)
	}
	empty := false
	for _, arg := range args {
		if object && arg.Kind() == ast.MapKind && arg.AsMap().Size() == 0 {
			arg.SetKindCase(factory.NewCall(arg.ID(), asEmpty))
			empty = true
		}
	}
	return empty || t.forget(args...)
}

// forget gives expressions the type that fits everywhere.
func (t *typeCheck) forget(args ...ast.Expr) bool {
	for _, arg := range args {
		t.wrap(arg, asAny)
	}
	return true
}

// loosen makes a map of an object, and something unknown of what holds one.
func (t *typeCheck) loosen(e ast.Expr) {
	if t.typeOf(e).Kind() == types.StructKind {
		t.wrap(e, asMap)
		return
	}
	t.wrap(e, asAny)
}

// wrap puts a call around a node. The call takes its place and ID, so that
// what holds the node need not be changed.
func (t *typeCheck) wrap(e ast.Expr, function string) {
	t.lastID++
	inner := factory.NewUnspecifiedExpr(t.lastID)
	inner.SetKindCase(e)
	t.standsIn[inner.ID()] = e.ID()
	e.SetKindCase(factory.NewCall(e.ID(), function, inner))
}

// unwrapped is the node within the calls that relax put around it.
func unwrapped(e ast.Expr) ast.Expr {
	for e.Kind() == ast.CallKind && (e.AsCall().FunctionName() == asMap || e.AsCall().FunctionName() == asAny) {
		e = e.AsCall().Args()[0]
	}
	return e
}
