package rules

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// decoder reads and compiles one document. It collects all problems instead of
// stopping at the first.
type decoder struct {
	doc     *yamldoc.Document
	spec    *yaml.Node // the key, where what is missing in it is reported
	body    *yaml.Node // what stands under it, a mapping
	rule    string
	vars    []string // the variables that are declared so far
	lookups []string // the lookups, likewise

	unreadVariables, unreadLookups bool // there may be others, which could not be read

	inLookup    bool                        // what is compiled belongs to a lookup
	reads       map[string]yamldoc.Position // the names that the rule's CEL reads, and where first
	fields      *expression.Analysis        // which of their fields
	part        Expression                  // what is compiled at the moment: Part, Name, Patch
	expressions []*Expression               // what has been compiled so far
	problems    []*Problem
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	d.as(CheckRuleFormat).fail(n, format, args...)
}

func (d *decoder) failAt(pos yamldoc.Position, format string, args ...any) {
	d.as(CheckRuleFormat).failAt(pos, format, args...)
}

// ok reports whether nothing has been found wrong since a mark, which is
// len(d.problems) at an earlier moment.
func (d *decoder) ok(mark int) bool { return len(d.problems) == mark }

// strict is the decoder of structs; what it finds are problems of this one.
func (d *decoder) strict() *strictyaml.Decoder {
	return &strictyaml.Decoder{Doc: d.doc, Whole: "a rule", Report: func(at yamldoc.Position, msg string) { d.failAt(at, "%s", msg) }}
}

// wantString refuses what YAML reads as something else than a string.
func (d *decoder) wantString(n *yaml.Node, path string) bool { return d.strict().WantString(n, path) }

// failValue reports an error of yamldoc, which knows its position, at n
// otherwise.
func (d *decoder) failValue(n *yaml.Node, err error) { d.strict().FailValue(n, err) }

// nodeAt finds the node that a path of keys and indices leads to, as far as it
// goes.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	n = yamldoc.Resolve(n)
	for _, p := range path {
		var next *yaml.Node
		switch n.Kind {
		case yaml.MappingNode:
			for _, e := range strictyaml.Pairs(n) {
				if e.Key.Value == p {
					next = e.Value
				}
			}
		case yaml.SequenceNode:
			for i, item := range n.Content {
				if strconv.Itoa(i) == p {
					next = yamldoc.Resolve(item)
				}
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
