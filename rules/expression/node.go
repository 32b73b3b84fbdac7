package expression

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// NodeKind says what a Node is.
type NodeKind string

const (
	Ident   NodeKind = "ident"   // Name, Declared
	Select  NodeKind = "select"  // Target.Name, Target.?Name (Optional), or has(Target.Name) (Test)
	Index   NodeKind = "index"   // Target[Args[0]], or Target[?Args[0]] (Optional)
	Call    NodeKind = "call"    // Name(Args…), or Target.Name(Args…); operators are calls
	Literal NodeKind = "literal" // Value
	List    NodeKind = "list"    // [Args…]
	Map     NodeKind = "map"     // {Keys…: Args…}
	Struct  NodeKind = "struct"  // Name{Fields…: Args…}, such as Object.spec{…}
	// Macro is what binds names: Target.Name(Vars…, Args…), such as all, exists,
	// exists_one, map, filter, transformMap, sortBy, optMap. It is shown as it is
	// written, not as what it becomes. has() is a Select.
	Macro NodeKind = "macro"
)

// Node is a part of a checked expression: the syntax tree without CEL's
// library, for tools that judge expressions. The fields that a kind does not
// name are zero.
type Node struct {
	Kind NodeKind
	// Offset is where its name or operator stands in the source, in bytes:
	// in object.spec.replicas == 3, of the selection it is that of replicas, of
	// the comparison that of ==.
	Offset int
	// Start is where its first part begins, object in the example.
	Start int
	// Type is what is known of its value before evaluation.
	Type Type
	// Name is an identifier (variables.expected is one), a field, a type, or a
	// function with its namespace (sets.contains). Operators are written as in
	// CEL: && || ! == != < <= > >= in + - * / % ?:
	Name string
	// Declared says that the identifier is one of the environment, such as
	// object. Others are bound by a Macro around them, or names of types.
	Declared bool
	// Optional says that the selection or index is written with ?.
	Optional bool
	// Test says that the selection is the argument of has().
	Test bool
	// Target is what is selected from, indexed, called on, or iterated; nil for
	// functions without a receiver.
	Target *Node
	Args   []*Node
	Keys   []*Node  // of a Map, one for each of Args
	Fields []string // of a Struct, one for each of Args
	Vars   []string // of a Macro
	Value  any      // of a Literal: nil, bool, int64, uint64, float64, string or []byte

	ast  *ast.AST // that it is a part of, and the part: for Constant
	expr ast.Expr
}

// Syntax returns the program's syntax tree. It is made anew by each call, and
// the caller's.
func (p *Program) Syntax() *Node {
	b := nodeBuilder{ast: p.ast, source: p.source, byID: map[int64]ast.Expr{}, bound: map[string]int{}}
	ast.PreOrderVisit(p.ast.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if _, twice := b.byID[e.ID()]; !twice {
			b.byID[e.ID()] = e
		}
	}))
	b.offsets = byteOffsets(p.source)
	return b.node(p.ast.Expr())
}

// Children are all nodes right below the node, in the order of evaluation.
func (n *Node) Children() []*Node {
	var out []*Node
	if n.Target != nil {
		out = append(out, n.Target)
	}
	for i, arg := range n.Args {
		if n.Kind == Map {
			out = append(out, n.Keys[i])
		}
		out = append(out, arg)
	}
	return out
}

// Walk visits the node and all below it, parents first. Where visit returns
// false, what is below is left out.
func (n *Node) Walk(visit func(*Node) bool) {
	if !visit(n) {
		return
	}
	for _, c := range n.Children() {
		c.Walk(visit)
	}
}

// Is reports whether the node is a call of an operator or a function.
func (n *Node) Is(name string) bool { return n.Kind == Call && n.Name == name }

// Operands are the operands of a chain of one operator, such as all conditions
// of a && b && c, in the order of the source; the node itself if it is
// something else. CEL keeps such chains as a balanced tree.
func (n *Node) Operands(operator string) []*Node {
	if !n.Is(operator) {
		return []*Node{n}
	}
	var out []*Node
	for _, arg := range n.Args {
		out = append(out, arg.Operands(operator)...)
	}
	return out
}

// Path takes apart a chain of selections and of indexes by literal strings,
// such as object.metadata.?labels["a/b"], down to what it begins with. It is
// empty if the node is none. A has() ends in what it tests.
func (n *Node) Path() (root *Node, path []string) {
	switch n.Kind {
	case Select:
		root, path = n.Target.Path()
		return root, append(path, n.Name)
	case Index:
		if key, ok := n.Args[0].Value.(string); ok && n.Args[0].Kind == Literal {
			root, path = n.Target.Path()
			return root, append(path, key)
		}
	}
	return n, nil
}

// nodeBuilder makes the nodes of one expression.
type nodeBuilder struct {
	ast     *ast.AST
	source  string
	offsets []int // byte offsets of the source's code points; nil: they are the same
	byID    map[int64]ast.Expr
	bound   map[string]int // how many macros around bind a name
}

func (b *nodeBuilder) node(e ast.Expr) *Node {
	n := &Node{Type: Type{b.ast.GetType(e.ID())}, ast: b.ast, expr: e}
	n.Offset = b.offset(e.ID())
	if call, ok := b.ast.SourceInfo().GetMacroCall(e.ID()); ok && call.AsCall().FunctionName() != operators.Has {
		b.macro(n, call.AsCall())
	} else {
		b.plain(n, e)
	}
	n.Start = n.Offset
	if n.Kind == Select && n.Test {
		return n
	}
	for _, c := range n.Children() {
		n.Start = min(n.Start, c.Start)
	}
	return n
}

// plain fills a node from what stands in the tree as it is written.
func (b *nodeBuilder) plain(n *Node, e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		// A dot marks a declared name that a macro's variable would hide.
		name, marked := strings.CutPrefix(e.AsIdent(), ".")
		n.Kind, n.Name = Ident, name
		n.Declared = marked || b.bound[name] == 0 && b.isVariable(e)
		if dot := strings.LastIndexByte(name, '.'); dot >= 0 { // the position is that of the dot
			n.Offset = b.wordBefore(n.Offset, name[:dot])
		}
	case ast.SelectKind:
		s := e.AsSelect()
		n.Kind, n.Name, n.Test = Select, s.FieldName(), s.IsTestOnly()
		n.Target = b.node(s.Operand())
		if n.Test { // has(object.spec.x): the position is that of the parenthesis
			n.Offset = b.wordBefore(n.Offset, operators.Has)
		} else {
			n.Offset = b.behindDot(n.Offset)
		}
	case ast.CallKind:
		b.call(n, e.AsCall())
	case ast.LiteralKind:
		n.Kind, n.Value = Literal, e.AsLiteral().Value()
		if e.AsLiteral().Type() == types.NullType {
			n.Value = nil
		}
	case ast.ListKind:
		n.Kind, n.Args = List, b.nodes(e.AsList().Elements())
	case ast.MapKind:
		n.Kind = Map
		for _, entry := range e.AsMap().Entries() {
			n.Keys = append(n.Keys, b.node(entry.AsMapEntry().Key()))
			n.Args = append(n.Args, b.node(entry.AsMapEntry().Value()))
		}
	case ast.StructKind:
		n.Kind, n.Name = Struct, e.AsStruct().TypeName()
		for _, field := range e.AsStruct().Fields() {
			n.Fields = append(n.Fields, field.AsStructField().Name())
			n.Args = append(n.Args, b.node(field.AsStructField().Value()))
		}
	default:
		// A comprehension without a macro cannot be written. What cannot be shown
		// is opaque: a call of nothing.
		n.Kind = Call
	}
}

func (b *nodeBuilder) call(n *Node, c ast.CallExpr) {
	args := c.Args()
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex:
		n.Kind, n.Optional = Index, c.FunctionName() == operators.OptIndex
		n.Target, n.Args = b.node(args[0]), b.nodes(args[1:])
		return
	case operators.OptSelect:
		field, _ := stringLiteral(args[1])
		n.Kind, n.Optional, n.Name, n.Target = Select, true, field, b.node(args[0])
		n.Offset = b.behindDot(n.Offset)
		return
	}
	n.Kind, n.Name = Call, operator(c.FunctionName())
	if c.IsMemberFunction() {
		n.Target = b.node(c.Target())
	}
	n.Args = b.nodes(args)
	if n.Name == c.FunctionName() { // not an operator
		n.Offset = b.wordBefore(n.Offset, n.Name[strings.LastIndex(n.Name, ".")+1:])
	}
}

// macro fills a node from a call that the parser has replaced. Its arguments
// are found in the checked tree, by what the parser keeps of each: its ID.
func (b *nodeBuilder) macro(n *Node, c ast.CallExpr) {
	n.Kind, n.Name = Macro, c.FunctionName()
	n.Offset = b.wordBefore(n.Offset, n.Name)
	if c.IsMemberFunction() {
		n.Target = b.found(c.Target())
	}
	args := c.Args()
	count := macroVars(n.Name, len(args))
	for _, v := range args[:count] {
		n.Vars = append(n.Vars, v.AsIdent())
		b.bound[v.AsIdent()]++
	}
	for _, arg := range args[count:] {
		n.Args = append(n.Args, b.found(arg))
	}
	for _, v := range n.Vars {
		b.bound[v]--
	}
}

// macroVars is how many of a macro's arguments are names that it binds.
func macroVars(name string, args int) int {
	switch name {
	case "transformList", "transformMap", "transformMapEntry":
		return 2
	case "all", "exists", "existsOne", "exists_one":
		return args - 1
	}
	return 1
}

func (b *nodeBuilder) found(e ast.Expr) *Node {
	if checked, ok := b.byID[e.ID()]; ok {
		return b.node(checked)
	}
	return b.node(e)
}

func (b *nodeBuilder) nodes(es []ast.Expr) []*Node {
	out := make([]*Node, len(es))
	for i, e := range es {
		out[i] = b.node(e)
	}
	return out
}

// isVariable tells names of values from names of types, which are constants.
func (b *nodeBuilder) isVariable(e ast.Expr) bool {
	return b.ast.GetType(e.ID()).Kind() != types.TypeKind
}

func (b *nodeBuilder) offset(id int64) int {
	r, ok := b.ast.SourceInfo().GetOffsetRange(id)
	if !ok || r.Start < 0 {
		return 0
	}
	if b.offsets == nil {
		return min(int(r.Start), len(b.source))
	}
	return b.offsets[min(int(r.Start), len(b.offsets)-1)]
}

// behindDot moves from the dot of a selection to its field.
func (b *nodeBuilder) behindDot(at int) int {
	rest := strings.TrimLeftFunc(b.source[at:], func(r rune) bool { return r == '.' || r == '?' || unicode.IsSpace(r) })
	return len(b.source) - len(rest)
}

// wordBefore moves from an opening parenthesis to the name before it.
func (b *nodeBuilder) wordBefore(at int, name string) int {
	before := strings.TrimRightFunc(b.source[:at], unicode.IsSpace)
	if strings.HasSuffix(before, name) {
		return len(before) - len(name)
	}
	return at
}

// operator is how an operator is written; other functions keep their name.
func operator(function string) string {
	if function == operators.Conditional {
		return "?:"
	}
	if text, ok := operators.FindReverse(function); ok && text != "" {
		return text
	}
	return function
}

// byteOffsets gives the byte offset of each code point, and of the end; nil
// where all are one byte long.
func byteOffsets(source string) []int {
	if utf8.RuneCountInString(source) == len(source) {
		return nil
	}
	out := make([]int, 0, len(source)+1)
	for i := range source {
		out = append(out, i)
	}
	return append(out, len(source))
}
