package rules

import (
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// Definition is a rule beside the text that it was compiled from: for tools
// that judge rules, such as lint. Nodes and programs are read-only.
type Definition struct {
	Rule *Rule // nil: it does not compile
	Name string
	Doc  *yamldoc.Document
	// Node is the rule's mapping: apiVersion, kind, metadata, spec.
	Node *yaml.Node
	// Expressions are all CEL of the rule that compiles, in the order of
	// compilation: lookups, variables, condition, patches, event.
	Expressions []*Expression
}

// Part says what an expression is for.
type Part string

const (
	PartLookup    Part = "lookup"
	PartVariable  Part = "variable"
	PartCondition Part = "condition"
	PartPatch     Part = "patch"
	PartEvent     Part = "event"
)

// Use says what becomes of the result of an expression.
type Use string

const (
	UseValue Use = ""     // it is a value of its own
	UseText  Use = "text" // it is put into a string
	UseKey   Use = "key"  // it is a key of a mapping
)

// Expression is one CEL expression of a rule, and where it stands.
type Expression struct {
	Part Part
	// Name is that of the variable or lookup; empty for other parts.
	Name string
	// Patch counts the patches of the rule from 0.
	Patch int
	// At is what it stands in, where the format demands something of that: of a
	// lookup namespace, where, labelSelector or matchLabels; of a patch merge,
	// applyConfiguration or json where it is all of it, else operation, or one of
	// the fields of an operation. It is empty within what a patch writes.
	At      string
	Use     Use
	Source  string
	Program *expression.Program

	doc    *yamldoc.Document
	node   *yaml.Node // the scalar that it stands in
	offset int        // where in the scalar's value
}

// Pos is where the byte at an offset of the expression's source stands.
func (e *Expression) Pos(offset int) yamldoc.Position { return e.doc.PosIn(e.node, e.offset+offset) }

// Field returns the value at a path of keys below the rule's mapping, nil if
// there is none. Aliases are followed.
func (d *Definition) Field(path ...string) *yaml.Node {
	n := d.Node
	for _, key := range path {
		if _, n = yamldoc.Field(n, key); n == nil {
			return nil
		}
	}
	return n
}

// PatchNodes are the mappings of the rule's patches, in order.
func (d *Definition) PatchNodes() []*yaml.Node {
	if n := d.Field("spec", "patch"); n != nil {
		return []*yaml.Node{n}
	}
	var out []*yaml.Node
	if n := d.Field("spec", "patches"); n != nil {
		for _, item := range n.Content {
			out = append(out, yamldoc.Resolve(item))
		}
	}
	return out
}

// Problem makes a problem of the rule at a position in its file.
func (d *Definition) Problem(at yamldoc.Position, msg string) *Problem {
	return &Problem{Pos: at, Rule: d.Name, Msg: msg, Line: d.Doc.Line(at.Line)}
}
