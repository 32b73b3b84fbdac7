package expression

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// Deadline bounds the evaluation of an expression with comprehensions.
	Deadline = 100 * time.Millisecond

	interruptCheckFrequency = 100
)

// ErrDeadline is what an evaluation that took longer than Deadline returns.
var ErrDeadline = fmt.Errorf("evaluation took longer than %v", Deadline)

// Resolver gives an evaluation the values of the names that its expression
// reads. A value is JSON-shaped (map[string]any, []any, string, bool, int64,
// float64, nil), a time.Time, or a Value; it is not modified. An error
// becomes the error of the name: `a || b` still is true when a is.
type Resolver interface {
	Resolve(name string) (any, error)
}

// Value is the result of an evaluation, to be given to a Resolver again or to
// be converted by Native, Bool or Text.
type Value struct{ val ref.Val }

// Program is a compiled expression: immutable, safe for concurrent use.
type Program struct {
	program cel.Program
	loops   bool
	stops   bool // it may fail with a message of its own
	reads   []string
	lists   []string // the declared names that are lists of objects
	result  Type
	ast     *ast.AST // checked, for Analysis and Syntax; nobody modifies it
	source  string
}

// Result is the static type of what the program yields.
func (p *Program) Result() Type { return p.result }

// Reads returns the declared names that the program reads, sorted. The caller
// must not modify it.
func (p *Program) Reads() []string { return p.reads }

// Eval evaluates the program. An error means that there is no value: a missing
// key, no matching overload, a failed conversion, or ErrDeadline.
func (p *Program) Eval(names Resolver) (Value, error) {
	var out ref.Val
	var err error
	vars, _ := activations.Get().(*activation)
	vars.names, vars.text = names, 0
	defer vars.release()
	if !p.loops {
		out, _, err = p.program.Eval(vars)
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), Deadline)
		defer cancel()
		out, _, err = p.program.ContextEval(ctx, vars)
		if errors.Is(err, context.DeadlineExceeded) { // what failed by itself, only late, says why
			err = ErrDeadline
		}
	}
	if err != nil {
		return Value{}, p.ownMessage(err)
	}
	if types.IsUnknownOrError(out) {
		if e, ok := out.(*types.Err); ok {
			return Value{}, p.ownMessage(e.Unwrap())
		}
		return Value{}, errors.New("the value is unknown")
	}
	return Value{out}, nil
}

// activation hands cel-go's look-ups to a Resolver, and counts what one
// evaluation makes.
type activation struct {
	names Resolver
	text  int // bytes of text that have been made
}

// activations are used again: what an evaluation returns does not refer to its own.
var activations = sync.Pool{New: func() any { return &activation{} }}

func (a *activation) release() {
	a.names = nil
	activations.Put(a)
}

func (a *activation) ResolveName(name string) (any, bool) {
	if name == budgetName {
		return a, true
	}
	v, err := a.names.Resolve(name)
	if err != nil {
		return types.WrapErr(err), true
	}
	switch v := v.(type) {
	case Value:
		return v.val, true
	case time.Time:
		return v.UTC(), true // as string() shall write it
	}
	return v, true
}

func (a *activation) Parent() cel.Activation { return nil }
