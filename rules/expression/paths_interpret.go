package expression

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// locals are the variables of the comprehensions around an expression.
type locals struct {
	name  string
	value alias
	outer *locals
}

func (l *locals) bind(name string, value alias) *locals { return &locals{name, value, l} }

// eval interprets an expression: it marks what the expression reads, and
// returns what its value may be a part of. Static types are not trusted: a
// value that came through dyn may be of another.
func (a *Analysis) eval(e ast.Expr, l *locals) alias {
	switch e.Kind() {
	case ast.LiteralKind:
		return alias{}
	case ast.IdentKind:
		return a.ident(e.AsIdent(), l)
	case ast.SelectKind:
		s := e.AsSelect()
		v := a.eval(s.Operand(), l).field(s.FieldName())
		if s.IsTestOnly() { // presence: what Field marks
			return alias{}
		}
		return v
	case ast.CallKind:
		return a.call(e.AsCall(), l)
	case ast.ListKind:
		var inside alias
		for _, item := range e.AsList().Elements() {
			inside = inside.join(a.eval(item, l))
		}
		return container(inside)
	case ast.MapKind:
		var inside alias
		for _, entry := range e.AsMap().Entries() {
			a.eval(entry.AsMapEntry().Key(), l).whole()
			inside = inside.join(a.eval(entry.AsMapEntry().Value(), l))
		}
		return container(inside)
	case ast.StructKind:
		var inside alias
		for _, f := range e.AsStruct().Fields() {
			inside = inside.join(a.eval(f.AsStructField().Value(), l))
		}
		return container(inside)
	case ast.ComprehensionKind:
		return a.comprehension(e.AsComprehension(), l)
	}
	// The checker leaves no other kind. If there were one, all would be needed.
	for _, root := range a.roots {
		root.Whole()
	}
	return alias{}
}

// ident is a name. A variable of a comprehension hides a declared name; taking
// both as possible is sound without knowing how the checker decides.
func (a *Analysis) ident(name string, l *locals) alias {
	v := a.name(strings.TrimPrefix(name, "."))
	for ; l != nil; l = l.outer {
		if l.name == name {
			return v.join(l.value)
		}
	}
	return v
}

// comprehension interprets a loop until what its accumulator may hold does not
// grow any more.
func (a *Analysis) comprehension(c ast.ComprehensionExpr, l *locals) alias {
	over := a.eval(c.IterRange(), l)
	inner := l
	if c.HasIterVar2() {
		inner = inner.bind(c.IterVar(), alias{}).bind(c.IterVar2(), over.element())
	} else {
		// One variable is the element of a list, but the key of a map.
		inner = inner.bind(c.IterVar(), over.item())
	}
	accu := a.eval(c.AccuInit(), l)
	for pass := 1; ; pass++ {
		before := accu.size()
		body := inner.bind(c.AccuVar(), accu)
		a.eval(c.LoopCondition(), body).whole()
		accu = accu.join(a.eval(c.LoopStep(), body))
		if accu.size() == before {
			break
		}
		if pass == a.passes {
			accu.whole()
			break
		}
	}
	return a.eval(c.Result(), l.bind(c.AccuVar(), accu))
}

// call interprets a call. The functions that are not named here get all of
// their arguments whole, so that their results are parts of nothing else.
func (a *Analysis) call(c ast.CallExpr, l *locals) alias {
	args := c.Args()
	if c.IsMemberFunction() {
		args = append([]ast.Expr{c.Target()}, args...)
	}
	switch f := c.FunctionName(); {
	case (f == operators.Index || f == operators.OptIndex || f == operators.OptSelect) && len(args) == 2:
		return a.index(args[0], args[1], l)
	case f == operators.In && len(args) == 2:
		return a.in(args[0], args[1], l)
	case (f == operators.Equals || f == operators.NotEquals) && len(args) == 2:
		return a.equals(args[0], args[1], l)
	case f == operators.Conditional && len(args) == 3:
		a.eval(args[0], l).whole()
		return a.eval(args[1], l).join(a.eval(args[2], l))
	case f == operators.Add && len(args) == 2:
		return a.add(args[0], args[1], l)
	case (f == "dyn" || f == "optional.of" || f == "value") && len(args) == 1:
		return a.eval(args[0], l)
	case (f == "or" || f == "orValue") && len(args) == 2:
		return a.eval(args[0], l).join(a.eval(args[1], l))
	case (f == "hasValue" || f == "type") && len(args) == 1:
		a.eval(args[0], l) // presence and kind: what reaching the value marks
		return alias{}
	case (f == "size" || f == "optional.ofNonZeroValue") && len(args) == 1:
		v := a.eval(args[0], l)
		v.keys()
		if f == "size" {
			return alias{}
		}
		return v
	case (f == "first" || f == "last") && len(args) == 1:
		return a.list(args, l)
	case f == "reverse" || f == "slice" || f == "unwrapOpt" || f == "optional.unwrap" || f == "@sortByAssociatedKeys":
		return container(a.list(args, l))
	case f == "cel.@mapInsert":
		return a.mapInsert(args, l)
	}
	for _, arg := range args {
		a.eval(arg, l).whole()
	}
	return alias{}
}

// index is x[k], x[?k] and x.?k.
func (a *Analysis) index(x, k ast.Expr, l *locals) alias {
	v := a.eval(x, l)
	if k.Kind() == ast.LiteralKind {
		switch key := k.AsLiteral().(type) {
		case types.String:
			return v.field(string(key))
		case types.Int:
			return v.item()
		}
	}
	a.eval(k, l).whole()
	return v.element()
}

// in is k in x: a key of a map, or an element of a list.
func (a *Analysis) in(k, x ast.Expr, l *locals) alias {
	v := a.eval(x, l)
	for _, p := range v.places {
		p.Lists()
	}
	key, ok := types.String(""), false
	if k.Kind() == ast.LiteralKind {
		key, ok = k.AsLiteral().(types.String)
	}
	if ok {
		v.field(string(key))
	} else {
		a.eval(k, l).whole()
		v.keys()
	}
	if v.inside != nil {
		v.inside.whole()
	}
	return alias{}
}

// add is x + y of two scalars, or of two lists whose elements become those of
// the result.
func (a *Analysis) add(x, y ast.Expr, l *locals) alias {
	v := a.eval(x, l).join(a.eval(y, l))
	if isScalar(x) || isScalar(y) {
		v.whole()
		return alias{}
	}
	return container(v.item())
}

// isScalar reports whether an expression certainly is not a list.
func isScalar(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.CallKind:
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Add:
			return len(args) == 2 && (isScalar(args[0]) || isScalar(args[1]))
		case "string", "int", "double", "size":
			return true
		}
	}
	return false
}

// equals is x == y and x != y. Whether a value is null is its kind; whether it
// is an empty list or map, its size.
func (a *Analysis) equals(x, y ast.Expr, l *locals) alias {
	v, w := a.eval(x, l), a.eval(y, l)
	switch {
	case isNull(x), isNull(y):
	case isEmpty(x), isEmpty(y):
		v.keys()
		w.keys()
	default:
		v.whole()
		w.whole()
	}
	return alias{}
}

func isNull(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue
}

func isEmpty(e ast.Expr) bool {
	return e.Kind() == ast.ListKind && e.AsList().Size() == 0 || e.Kind() == ast.MapKind && e.AsMap().Size() == 0
}

// list is any element of the first argument, a list that the function keeps
// the elements of; the others are read.
func (a *Analysis) list(args []ast.Expr, l *locals) alias {
	v := a.eval(args[0], l)
	for _, arg := range args[1:] {
		a.eval(arg, l).whole()
	}
	return v.item()
}

// mapInsert adds an entry, or all of another map, to a map: what transformMap
// and transformMapEntry are made of.
func (a *Analysis) mapInsert(args []ast.Expr, l *locals) alias {
	inside := a.eval(args[0], l).element()
	if len(args) == 3 {
		a.eval(args[1], l).whole()
		return container(inside.join(a.eval(args[2], l)))
	}
	for _, arg := range args[1:] {
		inside = inside.join(a.eval(arg, l).element())
	}
	return container(inside)
}
