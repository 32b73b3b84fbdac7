package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// typing is what schemas say of the expressions of one rule: found out when a
// check first asks, and shared by the checks.
type typing struct {
	kinds      *kinds
	definition *rules.Definition
	done       bool
	resources  []*typed
}

// typed is a rule as it looks for objects of one of its resources.
type typed struct {
	gvr  schema.GroupVersionResource
	kind *kind
	// expressions are what is known of those of the definition; empty if the
	// checker cannot be built.
	expressions map[*rules.Expression]expression.Checked
}

func newTyping(k *kinds, d *rules.Definition) *typing { return &typing{kinds: k, definition: d} }

// all gives the rule for each of its resources, in their order.
func (t *typing) all() []*typed {
	if !t.done {
		t.done = true
		for _, gvr := range t.definition.Rule.Resources {
			one := &typed{gvr: gvr, kind: t.kinds.of(gvr), expressions: map[*rules.Expression]expression.Checked{}}
			t.check(one)
			t.resources = append(t.resources, one)
		}
	}
	return t.resources
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// check types all expressions in the order of their compilation: those of a
// variable come before all that read it.
func (t *typing) check(one *typed) {
	checker, err := expression.NewChecker()
	if err != nil {
		return
	}
	declare := func(name string, typ expression.Type, s expression.Shape) {
		if err == nil {
			err = checker.Declare(name, typ, s)
		}
	}
	declare("object", checker.TypeOf(known(one.kind.shape)), known(one.kind.shape))
	namespace := t.kinds.of(namespaces).shape
	declare("namespaceObject", checker.TypeOf(known(namespace)), known(namespace))
	declare("now", expression.Timestamp, nil)
	for _, l := range t.definition.Rule.Lookups {
		declare("lookups."+l.Name, checker.ListOf(known(t.kinds.of(l.Resource).shape)), nil)
	}
	var declared []string
	for _, e := range t.definition.Expressions {
		if err != nil {
			return
		}
		checked := checker.Check(e.Program)
		one.expressions[e] = checked
		if e.Part == rules.PartVariable && !slices.Contains(declared, e.Name) {
			declare("variables."+e.Name, checked.Type, checked.Shape)
			declared = append(declared, e.Name)
		}
	}
}

// known is a shape as an interface: nil if there is none.
func known(s *shape) expression.Shape {
	if s == nil {
		return nil
	}
	return s
}
