package expression

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// issue says in words what the checker refused at a node.
func (t *typeCheck) issue(e ast.Expr) *TypeIssue {
	if target, field, ok := selection(e); ok {
		if issue := t.selectionIssue(e, target, field); issue != nil {
			return issue
		}
	}
	at, _ := t.fieldOf(e)
	msg := ""
	switch {
	case e.Kind() == ast.CallKind && t.typeOf(e).Kind() == types.ErrorKind:
		at, msg = t.callOffset(e), t.callIssue(e)
	case t.ranges[e.ID()]:
		msg = fmt.Sprintf("%s cannot be iterated: a list or map is needed", spell(t.typeOf(e)))
	case t.isOperand(e, operators.LogicalAnd, operators.LogicalOr):
		msg = fmt.Sprintf("bool is needed on both sides of && and ||, but this is %s", spell(t.typeOf(e)))
	default:
		msg = fmt.Sprintf("%s does not fit here", spell(t.typeOf(e)))
	}
	return &TypeIssue{Issue: Issue{Offset: at, Msg: msg}}
}

// selection takes apart x.field, x.?field and has(x.field).
func selection(e ast.Expr) (target ast.Expr, field string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case ast.CallKind:
		if e.AsCall().FunctionName() == operators.OptSelect {
			args := e.AsCall().Args()
			field, ok = stringLiteral(args[1])
			return args[0], field, ok
		}
	}
	return nil, "", false
}

// selectionIssue says why a field cannot be selected, nil if it can.
func (t *typeCheck) selectionIssue(e, target ast.Expr, field string) *TypeIssue {
	inner, _ := unwrapOptional(t.typeOf(target))
	at := t.fieldOffset(e, field)
	if shape := t.types.object(inner); shape != nil {
		if _, ok := shape.Field(field); ok {
			return nil
		}
		msg := fmt.Sprintf("undefined field '%s'", field)
		if near := suggest.Closest(field, shape.Fields()); near != "" {
			msg += fmt.Sprintf(" (did you mean '%s'?)", near)
		} else {
			msg += " of " + shape.Name()
		}
		return &TypeIssue{Issue: Issue{Offset: at, Msg: msg}, Field: field}
	}
	switch inner.Kind() {
	case types.MapKind, types.DynKind, types.AnyKind, types.ErrorKind, types.TypeParamKind, types.StructKind:
		return nil
	}
	return &TypeIssue{Issue: Issue{Offset: at, Msg: fmt.Sprintf("%s has no field '%s'%s", spell(inner), field, t.dottedKey(target))}}
}

// dottedKey is what to write instead of a key with dots that was written as if it
// were fields, such as labels.app.kubernetes; target is what the second of them is
// selected from.
func (t *typeCheck) dottedKey(target ast.Expr) string {
	labels, key, ok := selection(unwrapped(target))
	if !ok {
		return ""
	}
	if s := t.shapeOf(labels); s == nil || s.Kind() != MapShape {
		return ""
	}
	rest := t.source[min(t.fieldOffset(target, key), len(t.source)):]
	if key = restOfKey.FindString(rest); strings.HasPrefix(rest[len(key):], "(") {
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return fmt.Sprintf(": a key with dots is an index, such as ['%s']", key)
}

// fieldOffset is where the name of a selected field stands. The position of a
// selection is that of its dot or bracket, that of has() its parenthesis.
func (t *typeCheck) fieldOffset(e ast.Expr, field string) int {
	at := t.offset(e)
	if call, ok := t.macros[e.ID()]; ok && call.AsCall().FunctionName() == operators.Has && len(call.AsCall().Args()) == 1 {
		at = t.offsets[call.AsCall().Args()[0].ID()]
	}
	rest := t.source[min(at, len(t.source)):]
	name := strings.TrimLeft(rest, ".[? \t\r\n")
	for _, quote := range []string{"", `'`, `"`} {
		if strings.HasPrefix(name, quote+field) {
			return len(t.source) - len(name)
		}
	}
	return at
}

func (t *typeCheck) isOperand(e ast.Expr, functions ...string) bool {
	parent, ok := t.parent[e.ID()]
	if !ok {
		return false
	}
	for _, f := range functions {
		if parent.AsCall().FunctionName() == f {
			return true
		}
	}
	return false
}

// callOffset is where the operator or the name of the function stands.
func (t *typeCheck) callOffset(e ast.Expr) int {
	name := e.AsCall().FunctionName()
	if operator(name) != name {
		return t.offset(e)
	}
	return t.location.wordBefore(t.offset(e), name[strings.LastIndex(name, ".")+1:])
}

// callIssue says why no overload of a function takes what it is given. The end
// is what CEL says, so that it can be searched for.
func (t *typeCheck) callIssue(e ast.Expr) string {
	c := e.AsCall()
	given := t.relaxed[e.ID()]
	args := make([]string, len(given))
	for i, arg := range given {
		args[i] = spell(arg)
	}
	signature := "(" + strings.Join(args, ", ") + ")"
	if c.IsMemberFunction() {
		signature = args[0] + ".(" + strings.Join(args[1:], ", ") + ")"
	}
	return fmt.Sprintf("%s: found no matching overload for '%s' applied to '%s'", mismatch(c, args), c.FunctionName(), signature)
}

func mismatch(c ast.CallExpr, args []string) string {
	name := operator(c.FunctionName())
	switch c.FunctionName() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return fmt.Sprintf("%s and %s cannot be compared with %s", args[0], args[1], name)
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo:
		return fmt.Sprintf("%s and %s cannot be combined with %s", args[0], args[1], name)
	case operators.In:
		return fmt.Sprintf("%s cannot be in %s", args[0], args[1])
	case operators.LogicalNot:
		return fmt.Sprintf("%s cannot be negated with !", args[0])
	case operators.Negate:
		return fmt.Sprintf("%s cannot be negated with -", args[0])
	case operators.Index, operators.OptIndex:
		return fmt.Sprintf("%s cannot be indexed with %s", args[0], args[1])
	case operators.Conditional:
		return fmt.Sprintf("the condition must be bool, not %s", args[0])
	}
	if c.IsMemberFunction() {
		return fmt.Sprintf("%s has no function %s(%s)", args[0], name, strings.Join(args[1:], ", "))
	}
	return fmt.Sprintf("%s does not take (%s)", name, strings.Join(args, ", "))
}
