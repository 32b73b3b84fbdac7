package expression

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Explanation is an expression, or a part of one, with what it gives.
type Explanation struct {
	// Source is the part as it is written, on one line, without comments and
	// without parentheses around it. It is empty for operands of functions.
	Source string
	// Offset is where the part begins in the program's source, in bytes.
	Offset int
	// Operator is what joins Parts (&& || ! ?:) or Operands (a comparison, or the
	// name of a function or macro). Empty: neither is there.
	Operator string
	// Parts are the operands of a logical operator: of a chain of && or || all
	// of them, of ?: three, of ! one.
	Parts []*Explanation
	// Operands are what a comparison compares, or what a method is called on
	// and with; of a macro only what it goes through.
	Operands []*Explanation
	// Value is what the part gives, if Err is nil.
	Value Value
	Err   error
	// ErrOffset is where in the program's source the failure comes from, with
	// Err; -1 where that is not known.
	ErrOffset int
	// NotNeeded says that the evaluation did not come to this part: another one
	// had decided already. It was evaluated for the explanation only.
	NotNeeded bool
}

// Explain evaluates the program again and keeps what its parts give. The value
// of the whole is that of Eval on the same names. It is not for a hot path: it
// plans the program anew, twice, and evaluates also what Eval skips. Each
// evaluation of a program with comprehensions ends after TrackingDeadline.
func (p *Program) Explain(names Resolver) *Explanation {
	x := explainer{program: p, names: names, text: scan(p.source), offsets: byteOffsets(p.source)}
	x.taken = p.track(names, cel.OptTrackState)
	x.all = p.track(names, cel.OptExhaustiveEval)
	root := x.branch(p.ast.Expr(), 0, len(p.source), true)
	if root.Value, root.Err = p.Eval(names); root.Err != nil {
		root.ErrOffset = x.failing(p.ast.Expr())
	} else {
		root.ErrOffset = -1
	}
	return root
}

// TrackingDeadline bounds an evaluation that keeps what its parts give. It is
// longer than Deadline: to keep everything takes its time, and what Eval did in
// time shall be explained.
const TrackingDeadline = 10 * Deadline

var tracking = sync.OnceValues(func() (*Env, error) { return NewEnv().WithPatchTypes() })

// track evaluates the program and returns what its nodes gave, as far as the
// evaluation came; nil: nowhere.
func (p *Program) track(names Resolver, option cel.EvalOption) interpreter.EvalState {
	// The names and types of the environment are in the checked tree; what is
	// left to know are the functions, and the types of patches.
	env, err := tracking()
	if err != nil {
		return nil
	}
	program, err := env.cel.PlanProgram(p.ast, planning(p.ast.Expr(), option)...)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), TrackingDeadline)
	defer cancel()
	var details *cel.EvalDetails
	if p.loops {
		_, details, _ = program.ContextEval(ctx, &activation{names: names}) // the error is that of a node
	} else {
		_, details, _ = program.Eval(&activation{names: names})
	}
	if details == nil {
		return nil
	}
	return details.State()
}

// explainer puts the parts of one evaluation together.
type explainer struct {
	program *Program
	names   Resolver
	text    scanned
	offsets []int
	taken   interpreter.EvalState // what the evaluation came to; may be nil
	all     interpreter.EvalState // what an evaluation of everything came to; may be nil
}

// part explains what stands between two offsets of the source.
func (x *explainer) part(e ast.Expr, start, end int) *Explanation {
	start, end = x.text.trim(start, end)
	return x.complete(x.value(e), e, start, end)
}

// branch explains an operand of ?:, of which only one counts.
func (x *explainer) branch(e ast.Expr, start, end int, needed bool) *Explanation {
	start, end = x.text.trim(start, end)
	out := x.value(e)
	out.NotNeeded = !needed
	if optional(e) {
		x.wrap(out, e)
	}
	return x.complete(out, e, start, end)
}

// wrap corrects a branch that is an optional selection: what is tracked of it is
// what it selects.
func (x *explainer) wrap(out *Explanation, e ast.Expr) {
	operand := x.value(e.AsCall().Args()[0])
	switch _, wrapped := out.Value.val.(*types.Optional); {
	case wrapped || out.Err != nil && !errors.Is(out.Err, ErrNotReached):
	case out.Err == nil:
		out.Value = Value{types.OptionalOf(out.Value.val)}
	case operand.Err != nil:
		out.Err, out.ErrOffset = operand.Err, operand.ErrOffset
	default:
		out.Value, out.Err = Value{types.OptionalNone}, nil
	}
}

func optional(e ast.Expr) bool {
	return e.Kind() == ast.CallKind && (e.AsCall().FunctionName() == operators.OptSelect || e.AsCall().FunctionName() == operators.OptIndex)
}

func (x *explainer) complete(out *Explanation, e ast.Expr, start, end int) *Explanation {
	out.Source, out.Offset = x.text.line(start, end), start
	x.within(out, e, start, end)
	return out
}

// value tells what a node gave.
func (x *explainer) value(e ast.Expr) *Explanation {
	val, needed := x.given(e)
	out := &Explanation{Offset: x.offset(e.ID()), ErrOffset: -1, NotNeeded: !needed}
	if out.Value, out.Err = valueOf(val); types.IsError(val) {
		out.Err = x.program.ownMessage(out.Err)
		out.ErrOffset = x.failing(e)
	}
	return out
}

// given returns what a node gave, nil if no evaluation came to it, and whether
// that of Eval did.
func (x *explainer) given(e ast.Expr) (val ref.Val, needed bool) {
	if val, needed = stateOf(x.taken, e.ID()); needed {
		return val, true
	}
	if val, ok := stateOf(x.all, e.ID()); ok {
		return val, false
	}
	switch e.Kind() {
	case ast.LiteralKind:
		return e.AsLiteral(), false
	case ast.IdentKind: // as an operand of ?: it is not tracked
		name := strings.TrimPrefix(e.AsIdent(), ".")
		if slices.Contains(x.program.reads, name) {
			found, _ := (&activation{names: x.names}).ResolveName(name)
			return types.DefaultTypeAdapter.NativeToValue(found), false
		}
	}
	return nil, false
}

// ErrNotReached is the failure of a part to which no evaluation came: another
// one failed first, or time was up.
var ErrNotReached = errors.New("not evaluated")

// valueOf tells values from errors.
func valueOf(v ref.Val) (Value, error) {
	switch v := v.(type) {
	case nil:
		return Value{}, ErrNotReached
	case *types.Err:
		if errors.As(v.Unwrap(), new(interpreter.InterruptError)) {
			return Value{}, ErrDeadline
		}
		return Value{}, v
	case *types.Unknown:
		return Value{}, errors.New("the value is unknown")
	}
	return Value{v}, nil
}

func stateOf(s interpreter.EvalState, id int64) (ref.Val, bool) {
	if s == nil {
		return nil, false
	}
	return s.Value(id)
}

// within explains the parts of a part.
func (x *explainer) within(out *Explanation, e ast.Expr, start, end int) {
	if e.Kind() == ast.ComprehensionKind {
		if call, ok := x.program.ast.SourceInfo().GetMacroCall(e.ID()); ok && call.AsCall().IsMemberFunction() {
			out.Operator = call.AsCall().FunctionName()
			out.Operands = x.operands(e.AsComprehension().IterRange())
		}
		return
	}
	if e.Kind() != ast.CallKind {
		return
	}
	call := e.AsCall()
	function, name := call.FunctionName(), operator(call.FunctionName())
	at := x.offset(e.ID())
	switch {
	case call.IsMemberFunction():
		if function != "orValue" { // it has no value where it is an optional's
			out.Operator = function
			out.Operands = x.operands(append([]ast.Expr{call.Target()}, call.Args()...)...)
		}
	case function == operators.Conditional:
		if colon := x.text.colon(at, end); x.text.is("?", at, start, end) && colon > 0 {
			out.Operator = name
			condition := x.part(call.Args()[0], start, at)
			decided, err := condition.Value.Bool()
			needed := !out.NotNeeded && err == nil
			out.Parts = []*Explanation{condition,
				x.branch(call.Args()[1], at+1, colon, needed && decided),
				x.branch(call.Args()[2], colon+1, end, needed && !decided)}
		}
	case function == operators.LogicalAnd || function == operators.LogicalOr:
		if x.text.is(name, at, start, end) && len(call.Args()) == 2 {
			out.Operator = name
			out.Parts = slices.Concat(x.chain(call.Args()[0], start, at, name), x.chain(call.Args()[1], at+len(name), end, name))
		}
	case function == operators.LogicalNot:
		operand := call.Args()[0]
		method := operand.Kind() == ast.CallKind && operand.AsCall().IsMemberFunction()
		if x.text.is(name, at, start, end) && (logical(operand) || compares(operand) || method) {
			out.Operator = name
			out.Parts = []*Explanation{x.part(operand, x.text.behind(at, '!'), end)}
		}
	case compares(e):
		if x.text.is(name, at, start, end) {
			out.Operator = name
			out.Operands = []*Explanation{x.part(call.Args()[0], start, at), x.part(call.Args()[1], at+len(name), end)}
		}
	}
}

// chain explains an operand of && or ||. One that is of the same operator is
// part of the chain.
func (x *explainer) chain(e ast.Expr, start, end int, operator string) []*Explanation {
	out := x.part(e, start, end)
	if out.Operator == operator && len(out.Parts) > 0 {
		return out.Parts
	}
	return []*Explanation{out}
}

// operands explains what has a value but no text of its own.
func (x *explainer) operands(es ...ast.Expr) []*Explanation {
	out := make([]*Explanation, len(es))
	for i, e := range es {
		out[i] = x.value(e)
	}
	return out
}

func logical(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		return true
	}
	return false
}

func compares(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In:
		return true
	}
	return false
}

// failing finds where the failure of a part comes from: of the parts that fail,
// the first that has no failing part itself. What fails beside a part that
// decides is not looked at. Errors know the node that they come from too, but
// cel-go shares some of them between all programs of the process.
func (x *explainer) failing(e ast.Expr) int {
	for _, child := range children(e) {
		if child.Kind() == ast.IdentKind && strings.HasPrefix(child.AsIdent(), "@") {
			continue // what a macro has so far, the failure included
		}
		if val, _ := x.given(child); types.IsError(val) {
			return x.failing(child)
		}
	}
	return x.place(e)
}

// children are the nodes right below a node, in the order of evaluation.
func children(e ast.Expr) []ast.Expr {
	var out []ast.Expr
	switch e.Kind() {
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			out = append(out, e.AsCall().Target())
		}
		out = append(out, e.AsCall().Args()...)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		out = append(out, c.IterRange(), c.AccuInit(), c.LoopStep(), c.LoopCondition(), c.Result())
	case ast.ListKind:
		out = append(out, e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			out = append(out, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.SelectKind:
		out = append(out, e.AsSelect().Operand())
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			out = append(out, field.AsStructField().Value())
		}
	}
	return out
}

// place is where a node stands: of a selection its field, of a call its name.
func (x *explainer) place(e ast.Expr) int {
	b := nodeBuilder{ast: x.program.ast, source: x.program.source, offsets: x.offsets}
	at := b.offset(e.ID())
	switch e.Kind() {
	case ast.SelectKind:
		return b.behindDot(at)
	case ast.CallKind:
		if e.AsCall().FunctionName() == operators.OptSelect {
			return b.behindDot(at)
		}
		name := e.AsCall().FunctionName()
		return b.wordBefore(at, name[strings.LastIndex(name, ".")+1:])
	case ast.IdentKind:
		if dot := strings.LastIndexByte(e.AsIdent(), '.'); dot > 0 {
			return b.wordBefore(at, strings.TrimPrefix(e.AsIdent()[:dot], "."))
		}
	case ast.ComprehensionKind:
		if call, ok := x.program.ast.SourceInfo().GetMacroCall(e.ID()); ok {
			return b.wordBefore(at, call.AsCall().FunctionName())
		}
	}
	return at
}

func (x *explainer) offset(id int64) int {
	return (&nodeBuilder{ast: x.program.ast, source: x.program.source, offsets: x.offsets}).offset(id)
}
