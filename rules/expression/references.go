package expression

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Reference is a name that an expression takes from its environment.
type Reference struct {
	// Name is the free identifier: object, request, variables; of a function
	// its name, with the namespace where it has one.
	Name string
	// Path is what is selected from it, as far as that is literal: of
	// object.spec.containers[0].image it is spec, containers. Nil for functions.
	Path []string
	// Offset is where the reference begins in the source, in bytes.
	Offset int
}

// References is what an expression refers to.
type References struct {
	// Names are the free identifiers in the order of the source, one entry for
	// each place. Bound names of comprehensions and names of types are not
	// among them.
	Names []Reference
	// Unknown are calls of functions that the language does not have.
	Unknown []Reference
}

// FindReferences parses an expression, without checking its types, and tells
// what it refers to. The issues are those of the syntax; the references are
// empty if there is any.
func FindReferences(source string) (References, []*Issue) {
	f := finder{source: source}
	root, issues := f.parse()
	if issues != nil {
		return References{}, issues
	}
	f.walk(root, nil)
	byOffset := func(a, b Reference) int { return a.Offset - b.Offset }
	slices.SortStableFunc(f.found.Names, byOffset)
	slices.SortStableFunc(f.found.Unknown, byOffset)
	return f.found, nil
}

type finder struct {
	source string
	ast    *ast.AST
	found  References
}

func (f *finder) parse() (ast.Expr, []*Issue) {
	if strings.TrimSpace(f.source) == "" {
		return nil, []*Issue{{Msg: "the expression is empty"}}
	}
	parsed, iss := base().Parse(f.source)
	if iss.Err() != nil {
		return nil, issuesOf(f.source, iss.Errors(), nil)
	}
	f.ast = parsed.NativeRep()
	return f.ast.Expr(), nil
}

// walk visits an expression; bound are the names that comprehensions around it
// declare.
func (f *finder) walk(e ast.Expr, bound []string) {
	if root, path, ok := chain(e); ok {
		f.name(root, path, bound)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		f.walk(e.AsSelect().Operand(), bound)
	case ast.CallKind:
		f.call(e, bound)
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			f.walk(item, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			f.walk(entry.AsMapEntry().Key(), bound)
			f.walk(entry.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			f.walk(field.AsStructField().Value(), bound)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		f.walk(c.IterRange(), bound)
		f.walk(c.AccuInit(), bound)
		inner := append(slices.Clip(bound), c.AccuVar())
		f.walk(c.Result(), inner)
		inner = append(inner, c.IterVar())
		if c.HasIterVar2() {
			inner = append(inner, c.IterVar2())
		}
		f.walk(c.LoopCondition(), inner)
		f.walk(c.LoopStep(), inner)
	}
}

func (f *finder) name(root ast.Expr, path []string, bound []string) {
	name := root.AsIdent()
	if slices.Contains(bound, name) || f.isType(name, path) {
		return
	}
	f.found.Names = append(f.found.Names, Reference{Name: name, Path: path, Offset: f.offset(root)})
}

// isType reports whether a chain of names is that of a type, such as int or
// google.protobuf.Timestamp: they are values in CEL.
func (f *finder) isType(name string, path []string) bool {
	for {
		if _, ok := base().CELTypeProvider().FindIdent(name); ok {
			return true
		}
		if len(path) == 0 {
			return false
		}
		name, path = name+"."+path[0], path[1:]
	}
}

func (f *finder) call(e ast.Expr, bound []string) {
	c := e.AsCall()
	function := c.FunctionName()
	for _, arg := range c.Args() {
		f.walk(arg, bound)
	}
	if c.IsMemberFunction() {
		target := c.Target()
		// sets.contains(a, b) looks like a method of a variable named sets.
		if root, path, ok := chain(target); ok && !slices.Contains(bound, root.AsIdent()) {
			qualified := strings.Join(append(append([]string{root.AsIdent()}, path...), function), ".")
			if base().HasFunction(qualified) {
				return
			}
		}
		f.walk(target, bound)
	}
	if !base().HasFunction(function) {
		f.found.Unknown = append(f.found.Unknown, Reference{Name: function, Offset: f.functionOffset(e)})
	}
}

func (f *finder) offset(e ast.Expr) int {
	return offset(f.source, f.ast.SourceInfo().GetStartLocation(e.ID()))
}

// functionOffset is where a function's name stands. The position of a call is
// that of its opening parenthesis.
func (f *finder) functionOffset(e ast.Expr) int {
	at := f.offset(e)
	before := strings.TrimRight(f.source[:at], " \t\r\n")
	if name := e.AsCall().FunctionName(); strings.HasSuffix(before, name) {
		return len(before) - len(name)
	}
	return at
}

// chain takes apart a chain of selections by literal names, such as
// object.metadata.?labels["a/b"], down to the identifier that it begins with.
// An index that is no literal string ends the path but not the chain.
func chain(e ast.Expr) (root ast.Expr, path []string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e, nil, true
	case ast.SelectKind:
		s := e.AsSelect()
		root, path, ok = chain(s.Operand())
		return root, append(path, s.FieldName()), ok
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if key, literal := stringLiteral(c.Args()[1]); literal {
				root, path, ok = chain(c.Args()[0])
				return root, append(path, key), ok
			}
		}
	}
	return nil, nil, false
}

func stringLiteral(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
