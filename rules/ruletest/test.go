package ruletest

import (
	"fmt"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Builtin is the prefix of a reference to a built-in rule.
const Builtin = "builtin:"

// DefaultNow is the time that rules read where a test does not say: a fixed
// one, so that a test gives the same result on every day.
var DefaultNow = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Test is a RuleTest document. It is read-only.
type Test struct {
	Name  string
	Pos   yamldoc.Position
	Rules []Ref // files or folders, or builtin:NAME; at least one
	CRDs  []Ref
	// Now is the time that rules read.
	Now time.Time
	// Namespace is where objects of namespaced kinds are that do not say so.
	Namespace string
	Context   []Object
	Cases     []*Case // at least one

	doc *yamldoc.Document
}

// Ref is a reference to something outside of the test file.
type Ref struct {
	Name string // as it is written: a path is relative to the folder of the test file
	node *yaml.Node
}

// Object is an object, or where it is: exactly one of Value and File is set.
type Object struct {
	Value map[string]any
	File  Ref
	// Name selects one of several objects in File; its own Name is empty if
	// there must be only one, or, in a context, if all are meant.
	Name Ref

	node *yaml.Node
}

// Case is one object, and what the rules must make of it.
type Case struct {
	Name   string
	Pos    yamldoc.Position
	Object Object
	Expect Expect

	doc *yamldoc.Document
}

// Expect is what a case expects. What is not given is not looked at.
type Expect struct {
	Outcome rules.Outcome
	// Rules are exactly those that patched or, with Error, failed. Nil: any.
	Rules []Ref
	// Object is a part of the result: mappings may hold less, lists must have
	// the same length, null means absent.
	Object *Value
	// ExactObject is all of the result.
	ExactObject *Value
	// Patch are the operations that are sent.
	Patch *Operations
	// Error is matched by the error of one of the rules that failed.
	Error *Pattern
	// Event is told by one of the rules that patched. Nil fields: anything.
	Event *Event

	outcome *yaml.Node
}

// Value is a value of the test file that remembers where it stands.
type Value struct {
	Value any
	node  *yaml.Node
}

// Operations is a JSON patch in the test file.
type Operations struct {
	Ops  []patch.Op
	node *yaml.Node
}

// Pattern is a regular expression in the test file.
type Pattern struct {
	*regexp.Regexp
	node *yaml.Node
}

// Event is an expected event.
type Event struct {
	Reason, Message *string
	node            *yaml.Node
}

// RefProblem makes a problem of what a reference leads to.
func (t *Test) RefProblem(at Ref, format string, args ...any) *rules.Problem {
	return t.problem(at.node, format, args...)
}

// ObjectProblem makes a problem of an object.
func (t *Test) ObjectProblem(at Object, format string, args ...any) *rules.Problem {
	return t.problem(at.node, format, args...)
}

func (t *Test) problem(n *yaml.Node, format string, args ...any) *rules.Problem {
	pos := t.doc.Pos(n)
	return &rules.Problem{Pos: pos, Msg: fmt.Sprintf(format, args...), Line: t.doc.Line(pos.Line)}
}
