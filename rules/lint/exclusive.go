package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// exclusive reports whether the conditions of two rules visibly never hold
// both, whatever the two rules do: one asks for one value of an expression, the
// other for another one, and neither writes what the expression reads.
func (p *pairs) exclusive(a, b *rules.Definition) bool {
	of, with := p.claimsOf(a), p.claimsOf(b)
	for _, x := range of {
		for _, y := range with {
			if x.text == y.text && contradict(x, y) && !writesAny(a.Rule, x.fields...) && !writesAny(b.Rule, x.fields...) {
				return true
			}
		}
	}
	return false
}

// claim is a part of a condition that must hold: an expression has one of some
// values, or none of them.
type claim struct {
	text   string // of the expression
	values []string
	not    bool
	fields [][]string // of the object that it reads
}

func contradict(x, y claim) bool {
	switch {
	case x.not && y.not:
		return false
	case x.not:
		return contradict(y, x)
	case y.not:
		return !slices.ContainsFunc(x.values, func(v string) bool { return !slices.Contains(y.values, v) })
	}
	return !slices.ContainsFunc(x.values, func(v string) bool { return slices.Contains(y.values, v) })
}

// claims are the parts of a rule's condition that are joined by &&.
func claims(d *rules.Definition) []claim {
	r := claimReader{variables: map[string]*expression.Node{}, lookups: lookupTexts(d), asks: map[string][]*expression.Node{}}
	var out []claim
	for _, e := range d.Expressions {
		switch e.Part {
		case rules.PartLookup:
			r.asks["lookups."+e.Name] = append(r.asks["lookups."+e.Name], e.Program.Syntax())
		case rules.PartVariable:
			r.variables["variables."+e.Name] = e.Program.Syntax()
		case rules.PartCondition:
			for _, part := range r.resolve(e.Program.Syntax()).Operands("&&") {
				out = append(out, r.claim(part))
			}
		}
	}
	return out
}

// claimReader writes expressions as texts that are equal where they mean the same,
// whatever the variables are called.
type claimReader struct {
	variables map[string]*expression.Node
	lookups   map[string]string             // what is looked up, whatever the lookup is called
	asks      map[string][]*expression.Node // what it reads to look it up
	fields    [][]string
	inPath    bool // what is read is a part of the last of them
	size      int
}

func (r *claimReader) resolve(n *expression.Node) *expression.Node {
	for n.Kind == expression.Ident && r.variables[n.Name] != nil {
		n = r.variables[n.Name]
	}
	return n
}

func (r *claimReader) claim(n *expression.Node) claim {
	n = r.resolve(n)
	c := claim{values: []string{"true"}}
	for n.Is("!") && len(n.Args) == 1 {
		n, c.not = r.resolve(n.Args[0]), !c.not
	}
	about := n
	switch {
	case isNonEmpty(n):
		about, c.values, c.not = n.Args[0], []string{fmt.Sprintf("%#v", int64(0))}, !c.not
	case (n.Is("==") || n.Is("!=")) && len(n.Args) == 2:
		c.not = c.not != (n.Name == "!=")
		for i, arg := range n.Args {
			if arg.Kind == expression.Literal {
				about, c.values = n.Args[1-i], []string{fmt.Sprintf("%#v", arg.Value)}
			}
		}
	case n.Is("in") && len(n.Args) == 2 && n.Args[1].Kind == expression.List && !slices.ContainsFunc(n.Args[1].Args, func(v *expression.Node) bool { return v.Kind != expression.Literal }):
		about, c.values = n.Args[0], nil
		for _, v := range n.Args[1].Args {
			c.values = append(c.values, fmt.Sprintf("%#v", v.Value))
		}
	}
	r.fields, r.size = nil, 0
	c.text, c.fields = r.text(about), r.fields
	return c
}

// text is an expression, and notes the fields of the object in it.
func (r *claimReader) text(n *expression.Node) string {
	n = r.resolve(n)
	if r.size++; r.size > 1000 {
		return fmt.Sprintf("%p", n) // equal to nothing
	}
	if root, path := n.Path(); len(path) > 0 && root.Kind == expression.Ident && root.Name == "object" && !r.inPath {
		r.fields = append(r.fields, path)
		r.inPath = true
		defer func() { r.inPath = false }()
	}
	name := n.Name
	if what, ok := r.lookups[name]; ok && n.Kind == expression.Ident && n.Declared {
		name = what
		for _, ask := range r.asks[n.Name] {
			name += r.text(ask)
		}
	}
	parts := []string{string(n.Kind), name, strings.Join(n.Vars, " "), strings.Join(n.Fields, " "), fmt.Sprintf("%#v %t %t", n.Value, n.Optional, n.Test)}
	for _, c := range n.Children() {
		parts = append(parts, r.text(c))
	}
	return "(" + strings.Join(parts, "|") + ")"
}

// isNonEmpty reports whether a node asks for what is never 0 not to be 0, as
// x.size() > 0 does.
func isNonEmpty(n *expression.Node) bool {
	if len(n.Args) != 2 || !n.Args[0].Is("size") || n.Args[1].Kind != expression.Literal {
		return false
	}
	return n.Is(">") && n.Args[1].Value == int64(0) || n.Is(">=") && n.Args[1].Value == int64(1)
}

// lookupTexts are what the lookups of a rule look for, as texts that are the same
// for two rules that look for the same.
func lookupTexts(d *rules.Definition) map[string]string {
	out := map[string]string{}
	n := d.Field("spec", "lookups")
	if n == nil {
		return out
	}
	for _, item := range n.Content {
		var lookup map[string]any
		if yamldoc.Resolve(item).Decode(&lookup) != nil {
			continue
		}
		name, _ := lookup["name"].(string)
		delete(lookup, "name")
		out["lookups."+name] = fmt.Sprintf("lookup %q", fmt.Sprint(lookup))
	}
	return out
}
