package expression

import (
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// What an evaluation may make. The deadline ends loops; but a text or a list can
// also double with each call, and each variable: thirty of them fill any memory,
// and nothing iterates. So every call that makes a text counts what it makes, and
// lists and maps that are made are counted as trees: what holds another value
// twice holds twice as many. Calls whose result may be much larger than what they
// are given, or that compare all with all, are refused before (guards.go).
//
// CEL's own tracking of costs would count everything, at four times the cost of
// an evaluation, and finds out when the text is there.
const (
	// MaxText is how many bytes of text one evaluation makes.
	MaxText = 16 << 20
	// smallText is not counted.
	smallText = 64
)

// ErrTooMuchText is what an evaluation returns that would make more text.
var ErrTooMuchText = fmt.Errorf("the expression makes more than %d MiB of text", MaxText>>20)

// budgetName is the name by which limits find the activation.
const budgetName = "@budget"

// makesText are the functions that make a text of their own. What is missing
// returns a part of a text that is there, or something short.
var makesText = map[string]bool{
	operators.Add: true, "bytes": true, "format": true, "join": true, "jsonpatch.escapeKey": true, "lowerAscii": true,
	"replace": true, "string": true, "strings.quote": true, "substring": true, "upperAscii": true,
}

// limited lets a program count what it makes.
func limited(e ast.Expr) interpreter.InterpretableDecoratorV2 {
	steps := accumulations(e)
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		switch n := i.(type) {
		case interpreter.InterpretableCall:
			if makesText[n.Function()] && !steps[n.ID()] {
				return limitedCall{n}, nil
			}
		case interpreter.InterpretableConstructor:
			if steps[n.ID()] {
				return i, nil
			}
			for _, part := range n.InitVals() {
				if _, constant := part.(interpreter.InterpretableConst); !constant {
					return limitedConstructor{n}, nil
				}
			}
		}
		return i, nil
	}
}

// accumulations are the calls by which comprehensions add a list of one element to
// what they have: that must not be counted again each time.
func accumulations(e ast.Expr) map[int64]bool {
	steps := map[int64]bool{}
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.ComprehensionKind {
			return
		}
		loop := e.AsComprehension()
		ast.PreOrderVisit(loop.LoopStep(), ast.NewExprVisitor(func(e ast.Expr) {
			if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Add {
				return
			}
			if args := e.AsCall().Args(); args[0].Kind() == ast.IdentKind && args[0].AsIdent() == loop.AccuVar() && args[1].Kind() == ast.ListKind {
				steps[e.ID()], steps[args[1].ID()] = true, true
			}
		}))
	}))
	return steps
}

// limitedCall counts the text, or the list, that a call makes.
type limitedCall struct{ interpreter.InterpretableCall }

func (c limitedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	out := c.InterpretableCall.Exec(frame)
	switch v := out.(type) {
	case types.String:
		return spend(frame, len(v), out)
	case types.Bytes:
		return spend(frame, len(v), out)
	case traits.Lister:
		return withinSize(out)
	}
	return out
}

func (c limitedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// limitedConstructor counts a list, map or object that is written out.
type limitedConstructor struct {
	interpreter.InterpretableConstructor
}

func (c limitedConstructor) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return withinSize(c.InterpretableConstructor.Exec(frame))
}

func (c limitedConstructor) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// spend takes a text from the budget of the evaluation. Without one, constants
// are folded.
func spend(frame *interpreter.ExecutionFrame, size int, made ref.Val) ref.Val {
	if size < smallText {
		return made
	}
	v, _ := frame.ResolveName(budgetName)
	budget, ok := v.(*activation)
	if !ok {
		return made
	}
	if budget.text += size; budget.text > MaxText {
		return types.WrapErr(ErrTooMuchText)
	}
	return made
}

func withinSize(v ref.Val) ref.Val {
	w := weight{values: MaxValues}
	if !w.take(v) {
		return types.WrapErr(ErrTooLarge)
	}
	return v
}

// weight counts a value as a tree, down to what is left. A map that is a part of
// the object counts as one value: nothing that is made holds it but whole.
type weight struct{ values, text int }

// take reports whether a value still fits.
func (w *weight) take(v ref.Val) bool {
	w.values--
	switch v := v.(type) {
	case types.String:
		w.text += len(v)
	case *types.Optional:
		return !v.HasValue() || w.take(v.GetValue())
	case *patchValue:
		for _, field := range v.fields {
			if !w.take(field) {
				return false
			}
		}
	case traits.Mapper:
		if _, part := v.Value().(map[string]any); part {
			break
		}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if !w.take(key) || !w.take(v.Get(key)) {
				return false
			}
		}
	case traits.Lister:
		n := int(v.Size().(types.Int))
		if n > w.values {
			return false
		}
		for i := range n {
			if !w.take(v.Get(types.Int(i))) {
				return false
			}
		}
	}
	return w.values >= 0
}
