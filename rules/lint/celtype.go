package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

var celType = &Check{
	ID: "cel-type", Severity: Error, Summary: "An expression does not fit the schema of what it reads",
	Run: runCELType,
}

// slip is one finding of the type check, and the resources that have it.
type slip struct {
	pos       yamldoc.Position
	msg       string
	field     string
	resources []schema.GroupVersionResource
}

func runCELType(p *Pass) {
	all := p.typing.all()
	var slips []*slip
	note := func(e *rules.Expression, gvr schema.GroupVersionResource, issue *expression.TypeIssue) {
		pos := e.Pos(issue.Offset)
		for _, s := range slips {
			if s.pos == pos && s.msg == issue.Msg {
				s.resources = append(s.resources, gvr)
				return
			}
		}
		slips = append(slips, &slip{pos, issue.Msg, issue.Field, []schema.GroupVersionResource{gvr}})
	}
	for _, one := range all {
		for _, e := range p.Expressions {
			checked := one.expressions[e]
			for _, issue := range checked.Issues {
				if _, escaped := unescape(issue.Field); !escaped { // that is for escaped-name
					note(e, one.gvr, issue)
				}
			}
			if issue := demand(e, checked.Type); issue != nil {
				note(e, one.gvr, issue)
			}
			for _, issue := range p.outsideEnum(checked.Comparisons) {
				note(e, one.gvr, issue)
			}
		}
	}
	told := map[yamldoc.Position]bool{}
	for _, s := range slips {
		everywhere := len(s.resources) == len(all)
		if told[s.pos] || !everywhere && (readsKind(p) || s.field != "" && guarded(p, s.field)) {
			continue
		}
		told[s.pos] = true
		where := ""
		if !everywhere {
			where = fmt.Sprintf(" (of %s)", s.resources[0].Resource)
		}
		p.Reportf(s.pos, "%s%s", s.msg, where)
	}
}

// outsideEnum finds literals that a field never holds. What a rule takes for an
// absent field may be no word of it: orValue('none') == 'none'.
func (p *Pass) outsideEnum(comparisons []expression.Comparison) []*expression.TypeIssue {
	var out []*expression.TypeIssue
	for _, c := range comparisons {
		if c.Operator != "==" && c.Operator != "!=" && c.Operator != "in" {
			continue
		}
		for _, v := range c.Values {
			text, ok := v.Value.(string)
			if !ok {
				continue
			}
			if msg := neverWord(c.Shape, c.Field, text); msg != "" && !p.standsIn(text) {
				issue := &expression.TypeIssue{}
				issue.Offset, issue.Msg = v.Offset, msg
				out = append(out, issue)
			}
		}
	}
	return out
}

// standsIn reports whether a text is what some expression gives where a field is
// not there: a default, or one side of ?:.
func (p *Pass) standsIn(text string) bool {
	return anyNode(p, func(n *expression.Node) bool {
		var given []*expression.Node
		switch {
		case n.Kind == expression.Call && n.Name == "orValue", n.Kind == expression.Call && n.Name == "optional.of":
			given = n.Args
		case n.Is("?:") && len(n.Args) == 3:
			given = n.Args[1:]
		}
		return slices.ContainsFunc(given, func(v *expression.Node) bool { return v.Kind == expression.Literal && v.Value == text })
	})
}

// readsKind reports whether a rule for several kinds tells them apart by name.
func readsKind(p *Pass) bool {
	return anyNode(p, func(n *expression.Node) bool {
		root, path := n.Path()
		return root.Kind == expression.Ident && root.Name == "object" && len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion")
	})
}

// guarded reports whether a rule asks somewhere whether a field is there: a
// rule for several kinds tells them apart that way.
func guarded(p *Pass, field string) bool {
	return anyNode(p, func(n *expression.Node) bool {
		switch {
		case n.Kind == expression.Select:
			return n.Name == field && (n.Optional || n.Test)
		case n.Kind == expression.Index:
			return n.Optional && n.Args[0].Value == field
		case n.Is("in"):
			return n.Args[0].Value == field
		}
		return false
	})
}

func anyNode(p *Pass, is func(*expression.Node) bool) bool {
	found := false
	for _, e := range p.Expressions {
		if strings.TrimSpace(e.Source) == "" {
			continue
		}
		e.Program.Syntax().Walk(func(n *expression.Node) bool {
			found = found || is(n)
			return !found
		})
	}
	return found
}
