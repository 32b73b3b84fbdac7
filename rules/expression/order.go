package expression

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// inKeyOrder lets comprehensions go through maps in the order of their keys. Go
// has another order each time, and a rule that makes a list of a map's keys
// would make another list at each evaluation: it would never come to rest.
func inKeyOrder(e ast.Expr) interpreter.InterpretableDecoratorV2 {
	ranges := map[int64]bool{}
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			ranges[e.AsComprehension().IterRange().ID()] = true
		}
	}))
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if _, constant := i.(interpreter.InterpretableConst); constant || !ranges[i.ID()] {
			return i, nil
		}
		return orderedRange{i}, nil
	}
}

// orderedRange is what a comprehension iterates over.
type orderedRange struct{ interpreter.InterpretableV2 }

func (r orderedRange) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := r.InterpretableV2.Exec(frame)
	if m, ok := v.(traits.Mapper); ok && m.Size().(types.Int) > 1 {
		return orderedMap{m}
	}
	return v
}

func (r orderedRange) Eval(vars interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(vars))
}

// orderedMap hides that a map can be folded otherwise than by its iterator.
type orderedMap struct{ traits.Mapper }

func (m orderedMap) Iterator() traits.Iterator {
	keys := make([]ref.Val, 0, int(m.Size().(types.Int)))
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

// compareKeys orders keys by type, then by value.
func compareKeys(a, b ref.Val) int {
	if a, ok := a.(types.String); ok {
		if b, ok := b.(types.String); ok {
			return strings.Compare(string(a), string(b))
		}
	}
	if byType := strings.Compare(a.Type().TypeName(), b.Type().TypeName()); byType != 0 {
		return byType
	}
	if a, ok := a.(traits.Comparer); ok {
		if order, ok := a.Compare(b).(types.Int); ok {
			return cmp.Compare(order, 0)
		}
	}
	return 0
}
