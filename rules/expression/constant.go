package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// Constant is the value of a node that names nothing, such as 1000 + 37 or
// int('3'): a bool, int64, uint64, float64 or string. It is false of all other nodes
// and values, and where the evaluation fails. It is worked out by each call.
func (n *Node) Constant() (any, bool) {
	if n.Kind == Literal {
		switch n.Value.(type) {
		case bool, int64, uint64, float64, string:
			return n.Value, true
		}
		return nil, false
	}
	if n.names() {
		return nil, false
	}
	part := ast.NewCheckedAST(ast.NewAST(n.expr, n.ast.SourceInfo()), n.ast.TypeMap(), n.ast.ReferenceMap())
	program, err := base().PlanProgram(part, planning(n.expr, cel.OptOptimize)...)
	if err != nil {
		return nil, false
	}
	v, err := (&Program{program: program}).Eval(noNames{})
	if err != nil {
		return nil, false
	}
	switch v := v.val.(type) {
	case types.Bool:
		return bool(v), true
	case types.Int:
		return int64(v), true
	case types.Uint:
		return uint64(v), true
	case types.Double:
		return float64(v), true
	case types.String:
		return string(v), true
	}
	return nil, false
}

// names reports whether a node reads a name, or may: a loop binds some, and types
// of objects are those of one environment.
func (n *Node) names() bool {
	found := false
	n.Walk(func(n *Node) bool {
		found = found || n.Kind == Ident || n.Kind == Macro || n.Kind == Struct
		return !found
	})
	return found
}

// noNames resolves the names of an expression that has none.
type noNames struct{}

func (noNames) Resolve(string) (any, error) { return nil, nil }
