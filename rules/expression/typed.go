package expression

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/containers"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
)

// Checker checks expressions that compile by what schemas say of the values
// that they read: for tools that judge rules. What is evaluated stays dynamic
// (docs/adr/0003-cel-on-raw-maps.md), so what works on plain maps is no issue
// here either, though an API server would refuse it: an object may be used as
// a map, and values of several types may meet in a list or in `?:`.
//
// A Checker must not be used by two goroutines at a time.
type Checker struct {
	env   *checker.Env
	types *shapeTypes
	names map[string]Shape // of the declared names, where known
}

// NewChecker returns a checker that knows no names.
func NewChecker() (*Checker, error) {
	base, err := checkerBase()
	if err != nil {
		return nil, err
	}
	t := &shapeTypes{base.provider, map[string]Shape{}}
	env, err := checker.NewEnv(containers.DefaultContainer, t,
		checker.CrossTypeNumericComparisons(true), checker.ValidatedDeclarations(base.env))
	if err != nil {
		return nil, fmt.Errorf("build the type checker: %w", err)
	}
	return &Checker{env, t, map[string]Shape{}}, nil
}

// Functions that only a checker sees, put around what it is to see otherwise.
const (
	asMap   = "@map"   // an object is a map
	asAny   = "@any"   // the type does not matter
	asEmpty = "@empty" // {} is an object without fields
)

type declared struct {
	env      *checker.Env
	provider types.Provider
}

// checkerBase declares the functions once per process: it is immutable.
var checkerBase = sync.OnceValues(func() (*declared, error) {
	language, err := NewEnv().WithPatchTypes()
	if err != nil {
		return nil, err
	}
	env, err := checker.NewEnv(containers.DefaultContainer, language.cel.CELTypeProvider(), checker.CrossTypeNumericComparisons(true))
	if err != nil {
		return nil, fmt.Errorf("build the type checker: %w", err)
	}
	for _, f := range language.cel.Functions() {
		if err := env.AddFunctions(f); err != nil {
			return nil, fmt.Errorf("declare %s: %w", f.Name(), err)
		}
	}
	t := types.NewTypeParamType("T")
	for name, overload := range map[string]decls.FunctionOpt{
		asMap:   decls.Overload(asMap, []*types.Type{t}, types.NewMapType(types.StringType, types.DynType)),
		asAny:   decls.Overload(asAny, []*types.Type{t}, types.DynType),
		asEmpty: decls.Overload(asEmpty, nil, t),
	} {
		f, err := decls.NewFunction(name, overload)
		if err == nil {
			err = env.AddFunctions(f)
		}
		if err != nil {
			return nil, fmt.Errorf("declare %s: %w", name, err)
		}
	}
	return &declared{env, language.cel.CELTypeProvider()}, nil
})

// TypeOf is the type of what a shape describes; nil is anything.
func (c *Checker) TypeOf(s Shape) Type { return Type{c.types.of(s)} }

// ListOf is the type of a list of what a shape describes.
func (c *Checker) ListOf(s Shape) Type { return Type{types.NewListType(c.types.of(s))} }

// Declare declares a name that expressions may read; see Env.Declare. The
// shape is what is known beyond the type, or nil.
func (c *Checker) Declare(name string, t Type, s Shape) error {
	if err := c.env.AddIdents(decls.NewVariable(name, t.cel)); err != nil {
		return fmt.Errorf("declare %q: %w", name, err)
	}
	c.names[name] = s
	return nil
}

// Checked is what a Checker found out about an expression.
type Checked struct {
	// Type is that of the result, as far as it is known.
	Type Type
	// Shape is what the schema says of the result, nil if it is computed.
	Shape  Shape
	Issues []*TypeIssue
	// Comparisons are those of a value that a schema describes with literals.
	Comparisons []Comparison
}

// TypeIssue is what cannot be right by the schema.
type TypeIssue struct {
	Issue
	// Field is the name of a field that the object does not have; empty for
	// other issues.
	Field string
}

// Comparison is a value that is compared with literals.
type Comparison struct {
	Offset int    // where the field stands that gives the value
	Field  string // its name
	Shape  Shape
	// Operator is that of CEL, such as == or in; the value may stand on either
	// side.
	Operator string
	Values   []Operand
}

// Operand is a literal of a comparison.
type Operand struct {
	Offset int
	Value  any // as in Node
}

// Check checks a program. The names that it reads must be declared.
func (c *Checker) Check(p *Program) Checked {
	t, ok := c.parse(p.source)
	if !ok { // it was parsed before: the program exists
		return Checked{Type: Dyn}
	}
	t.settle()
	root := t.parsed.Expr()
	out := Checked{Type: Type{t.typeOf(root)}, Shape: t.shapeOf(root), Issues: t.issues(), Comparisons: t.comparisons()}
	if len(out.Issues) > 0 {
		out.Type, out.Shape = Dyn, nil
	}
	return out
}

// typeCheck is the check of one expression.
type typeCheck struct {
	*Checker
	source   string
	parsed   *ast.AST
	checked  *ast.AST // after settle
	failed   []int64  // after settle: the nodes with errors
	location nodeBuilder
	offsets  map[int64]int // of all nodes, in bytes
	macros   map[int64]ast.Expr
	byID     map[int64]ast.Expr
	parent   map[int64]ast.Expr
	ranges   map[int64]bool  // nodes that a comprehension iterates
	lastID   int64           //
	standsIn map[int64]int64 // the nodes that relax made → those whose place they took
	relaxed  map[int64][]*types.Type
}

func (c *Checker) parse(source string) (*typeCheck, bool) {
	parsed, iss := base().Parse(source)
	if iss.Err() != nil {
		return nil, false
	}
	t := &typeCheck{
		Checker: c, source: source, parsed: parsed.NativeRep(),
		offsets: map[int64]int{}, macros: map[int64]ast.Expr{}, standsIn: map[int64]int64{}, relaxed: map[int64][]*types.Type{},
	}
	t.location = nodeBuilder{ast: t.parsed, source: source, offsets: byteOffsets(source)}
	for id, call := range t.parsed.SourceInfo().MacroCalls() {
		t.macros[id] = call
		ast.PostOrderVisit(call, ast.NewExprVisitor(func(e ast.Expr) { t.locate(e) }))
	}
	ast.PostOrderVisit(t.parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		t.locate(e)
		selectLiterals(e)
	}))
	return t, true
}

// locate keeps where a node stands: the checker drops what it replaces.
func (t *typeCheck) locate(e ast.Expr) {
	t.lastID = max(t.lastID, e.ID())
	if _, ok := t.offsets[e.ID()]; !ok {
		t.offsets[e.ID()] = t.location.offset(e.ID())
	}
}

var factory = ast.NewExprFactory()

// maxRounds bounds how often an expression is checked again after something in
// it has been relaxed. What is left then is not reported.
const maxRounds = 50

// settle checks the expression, and again as long as what the checker refuses
// is fine on plain maps.
func (t *typeCheck) settle() {
	for range maxRounds {
		checked, errs := checker.Check(t.parsed, nil, t.env)
		t.checked, t.failed = checked, nil
		t.index()
		progress := false
		for _, err := range errs.GetErrors() {
			if t.relax(err.ExprID) {
				progress = true
			} else {
				t.failed = append(t.failed, err.ExprID)
			}
		}
		if !progress {
			return
		}
	}
	t.failed = nil
}

func (t *typeCheck) index() {
	t.byID, t.parent, t.ranges = map[int64]ast.Expr{}, map[int64]ast.Expr{}, map[int64]bool{}
	ast.PreOrderVisit(t.parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		t.byID[e.ID()] = e
		switch e.Kind() {
		case ast.CallKind:
			for _, arg := range operands(e) {
				t.parent[arg.ID()] = e
			}
		case ast.ComprehensionKind:
			t.ranges[e.AsComprehension().IterRange().ID()] = true
		}
	}))
}

// operands are the target, if there is one, and the arguments of a call.
func operands(e ast.Expr) []ast.Expr {
	c := e.AsCall()
	if c.IsMemberFunction() {
		return append([]ast.Expr{c.Target()}, c.Args()...)
	}
	return c.Args()
}

func (t *typeCheck) typeOf(e ast.Expr) *types.Type { return t.checked.GetType(e.ID()) }

// offset is where a node stands in the source, in bytes.
func (t *typeCheck) offset(e ast.Expr) int {
	id := e.ID()
	for {
		before, ok := t.standsIn[id]
		if !ok {
			return t.offsets[id]
		}
		id = before
	}
}

// issues describes what is left, in the order of the source.
func (t *typeCheck) issues() []*TypeIssue {
	var out []*TypeIssue
	for _, id := range t.failed {
		if e, ok := t.byID[id]; ok {
			out = append(out, t.issue(e))
		}
	}
	slices.SortStableFunc(out, func(a, b *TypeIssue) int { return a.Offset - b.Offset })
	return out
}
