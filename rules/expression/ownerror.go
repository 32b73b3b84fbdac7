package expression

import (
	"errors"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Expressions stop with a message of their own by reading a key that cannot be
// there: {}['size must be s or m']. CEL has no function for it, and it puts words
// in front that say nothing to who reads the message.
const missingKey = "no such key: "

// ownMessage takes these words away, if the expression has such a message. A key
// without a blank is no message.
func (p *Program) ownMessage(err error) error {
	if err == nil || !p.stops {
		return err
	}
	if message, ok := strings.CutPrefix(err.Error(), missingKey); ok && strings.Contains(message, " ") {
		return errors.New(message)
	}
	return err
}

// stops reports whether an expression reads a key of {}, or of {”: …}, which
// says of what type the result would be.
func stops(e ast.Expr) bool {
	found := false
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Index {
			return
		}
		table := e.AsCall().Args()[0]
		if table.Kind() != ast.MapKind {
			return
		}
		entries := table.AsMap().Entries()
		if len(entries) == 1 {
			key, literal := stringLiteral(entries[0].AsMapEntry().Key())
			found = found || literal && key == ""
		}
		found = found || len(entries) == 0
	}))
	return found
}
