package expression

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// shapeOf is what a schema says of the value of an expression, nil where it is
// computed or not known.
func (t *typeCheck) shapeOf(e ast.Expr) Shape {
	e = unwrapped(e)
	if target, field, ok := selection(e); ok {
		if e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() {
			return nil
		}
		return t.memberShape(target, field)
	}
	switch e.Kind() {
	case ast.IdentKind:
		// A name that a macro binds may hide a declared one, but not its type.
		s := t.names[strings.TrimPrefix(e.AsIdent(), ".")]
		if s == nil || s.Kind() == ObjectShape || !t.types.of(s).IsExactType(t.typeOf(e)) {
			return t.objectShape(e)
		}
		return s
	case ast.CallKind:
		args := operands(e)
		switch e.AsCall().FunctionName() {
		case "orValue", "or", "value":
			return t.shapeOf(args[0])
		case operators.Index, operators.OptIndex:
			if s := t.shapeOf(args[0]); s != nil && (s.Kind() == ListShape || s.Kind() == MapShape) {
				return s.Elem()
			}
		}
	}
	return nil
}

// objectShape is the shape of what is an object by its type.
func (t *typeCheck) objectShape(e ast.Expr) Shape {
	typ := t.typeOf(e)
	if typ == nil {
		return nil
	}
	inner, _ := unwrapOptional(typ)
	return t.types.object(inner)
}

func (t *typeCheck) memberShape(target ast.Expr, field string) Shape {
	s := t.objectShape(unwrapped(target))
	if s == nil {
		s = t.shapeOf(target)
	}
	switch {
	case s == nil:
	case s.Kind() == ObjectShape:
		below, _ := s.Field(field)
		return below
	case s.Kind() == MapShape:
		return s.Elem()
	}
	return nil
}

var comparing = []string{
	operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In,
}

// comparisons finds what is compared with literals, in the order of the source.
func (t *typeCheck) comparisons() []Comparison {
	var out []Comparison
	ast.PreOrderVisit(t.parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || !slices.Contains(comparing, e.AsCall().FunctionName()) || len(e.AsCall().Args()) != 2 {
			return
		}
		args := e.AsCall().Args()
		for _, sides := range [][2]ast.Expr{{args[0], args[1]}, {args[1], args[0]}} {
			values := t.literals(sides[1])
			if values == nil {
				continue
			}
			if s := t.shapeOf(sides[0]); s != nil {
				at, field := t.fieldOf(sides[0])
				out = append(out, Comparison{at, field, s, operator(e.AsCall().FunctionName()), values})
			}
		}
	}))
	slices.SortStableFunc(out, func(a, b Comparison) int { return cmp.Compare(a.Offset, b.Offset) })
	return out
}

// literals are the literal, or those of a list of nothing else; nil for
// anything else.
func (t *typeCheck) literals(e ast.Expr) []Operand {
	e = unwrapped(e)
	switch e.Kind() {
	case ast.LiteralKind:
		value := e.AsLiteral().Value()
		if e.AsLiteral().Type() == types.NullType {
			value = nil
		}
		return []Operand{{t.offset(e), value}}
	case ast.ListKind:
		var out []Operand
		for _, item := range e.AsList().Elements() {
			if unwrapped(item).Kind() != ast.LiteralKind {
				return nil
			}
			out = append(out, t.literals(item)...)
		}
		return out
	}
	return nil
}

// fieldOf is the field that gives a value, and where it stands.
func (t *typeCheck) fieldOf(e ast.Expr) (int, string) {
	e = unwrapped(e)
	if _, field, ok := selection(e); ok {
		return t.fieldOffset(e, field), field
	}
	if e.Kind() == ast.CallKind && len(operands(e)) > 0 {
		return t.fieldOf(operands(e)[0])
	}
	if e.Kind() == ast.IdentKind {
		at, name := t.offset(e), strings.TrimPrefix(e.AsIdent(), ".")
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 { // the position is that of the dot
			at = t.location.wordBefore(at, name[:dot])
		}
		return at, name
	}
	return t.offset(e), ""
}
