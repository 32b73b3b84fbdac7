package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// fieldPath finds paths that are no CEL, so that no evaluation fails on them:
// what is not there is the empty text, and the rule just never matches.
var fieldPath = &Check{
	ID: "field-path", Severity: Error, Summary: "A fieldSelector or a lookup compares a field that does not exist, or with what it never is",
	Run: func(p *Pass) {
		p.fieldSelectorPaths()
		p.lookupPaths()
	},
}

// fieldSelectorPaths looks at match.fieldSelector.
func (p *Pass) fieldSelectorPaths() {
	n := p.Field("spec", "match", "fieldSelector")
	if n == nil {
		return
	}
	var slips []selectorSlip
	for _, offset := range termOffsets(n.Value) {
		// The whole selector parses, so its terms do.
		if term, err := fields.ParseSelector(n.Value[offset.start:offset.end]); err == nil && len(term.Requirements()) == 1 {
			slips = append(slips, selectorSlip{term.Requirements()[0], p.Doc.PosIn(n, offset.start)})
		}
	}
	all := p.typing.all()
	p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
		for _, s := range slips {
			msg := s.msg(one)
			// What only asks that a value is not there, or is another one, may be
			// about those of several resources that have the field.
			if msg == "" || s.fitsAbsent() && slices.ContainsFunc(all, func(other *typed) bool { return s.msg(other) == "" }) {
				continue
			}
			report(s.at, msg)
		}
	})
}

type extent struct{ start, end int }

// termOffsets are the terms of a fieldSelector: parsed as a whole, they come in
// another order. A comma behind a backslash is part of a value.
func termOffsets(selector string) []extent {
	var out []extent
	start := 0
	for i := 0; i <= len(selector); i++ {
		switch {
		case i < len(selector) && selector[i] == '\\':
			i++
		case i >= len(selector) || selector[i] == ',':
			out = append(out, extent{start, min(i, len(selector))})
			start = i + 1
		}
	}
	return out
}

// selectorSlip is a part of a fieldSelector that may be wrong.
type selectorSlip struct {
	fields.Requirement
	at yamldoc.Position
}

func (s selectorSlip) fitsAbsent() bool {
	return s.Operator == selection.NotEquals || s.Value == ""
}

func (s selectorSlip) msg(one *typed) string {
	at, msg := followPath(one.kind.shape, s.Field)
	if msg == "" {
		msg = neverText(at, s.Field, s.Value)
	}
	return msg
}

// lookupPaths looks at where of the rule's lookups.
func (p *Pass) lookupPaths() {
	list := p.Field("spec", "lookups")
	for i, l := range p.Rule.Lookups {
		if list == nil || i >= len(list.Content) {
			return
		}
		_, where := yamldoc.Field(yamldoc.Resolve(list.Content[i]), "where")
		if where == nil {
			continue
		}
		for _, pair := range strictyaml.Pairs(yamldoc.Resolve(where)) {
			at, msg := followPath(p.typing.kinds.of(l.Resource).shape, pair.Key.Value)
			if msg != "" {
				p.Reportf(p.Doc.Pos(pair.Key), "%s, so the lookup is always empty", msg)
				continue
			}
			for _, v := range literalTexts(pair.Value) {
				if msg := neverText(at, pair.Key.Value, v.text); msg != "" {
					p.Reportf(p.Doc.Pos(v.node), "%s", msg)
				}
			}
		}
	}
}

// followPath returns the shape that a dotted path leads to. What is wrong with
// the path otherwise is msg.
func followPath(s *shape, path string) (at *shape, msg string) {
	if s == nil {
		return anyShape, ""
	}
	keys := strings.Split(path, ".")
	for i, key := range keys {
		up := strings.Join(keys[:i], ".")
		switch s.kind {
		case expression.AnyShape:
			return anyShape, ""
		case expression.MapShape:
			s = s.element()
		case expression.ObjectShape:
			f := s.field(key)
			if f == nil {
				return nil, undefinedIn(s, up, key)
			}
			s = f
		case expression.ListShape:
			return nil, up + " is a list: no path leads to its elements, filter them in CEL"
		default:
			return nil, fmt.Sprintf("%s is %s: it has no field '%s'", up, describeShape(s), key)
		}
	}
	switch s.kind {
	case expression.ListShape, expression.MapShape, expression.ObjectShape:
		return nil, fmt.Sprintf("%s is %s: only text, numbers and bools are compared", path, describeShape(s))
	}
	return s, ""
}

func undefinedIn(s *shape, up, key string) string {
	where := ""
	if up != "" {
		where = " in " + up
	}
	near := suggest.Closest(key, s.Fields())
	if near != "" {
		near = fmt.Sprintf(" (did you mean '%s'?)", near)
	}
	return fmt.Sprintf("undefined field '%s'%s%s", key, where, near)
}

// neverText says why the value of a field, written as selectors compare it, is
// never a text; empty if it may be. The empty text is what is absent.
func neverText(s *shape, path, text string) string {
	never := func(why string) string { return fmt.Sprintf("%s is never '%s': %s", path, text, why) }
	if text == "" {
		return ""
	}
	switch s.kind {
	case expression.IntShape:
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || strconv.FormatInt(n, 10) != text {
			return never("it is an int, and compares as such as 3")
		}
	case expression.NumberShape:
		if f, err := strconv.ParseFloat(text, 64); err != nil || numberText(f) != text {
			return never("it is a number, and compares as such as 0.5")
		}
	case expression.BoolShape:
		if text != "true" && text != "false" {
			return never("it is true or false")
		}
	case expression.StringShape:
		return neverWord(s, path, text)
	}
	return ""
}

// neverWord says why a field with certain words never has a text. Other versions
// of Kubernetes may know other words than the built-in ones: of those, only
// what looks like a slip counts.
func neverWord(s expression.Shape, field, text string) string {
	enum := s.Enum()
	if len(enum) == 0 || text == "" || slices.Contains(enum, text) {
		return ""
	}
	if near := suggest.Closest(text, enum); near != "" {
		return fmt.Sprintf("%s is never '%s' (did you mean '%s'?)", field, text, near)
	}
	if own, ok := s.(*shape); ok && own.closedEnum() {
		return fmt.Sprintf("%s is never '%s': it is one of %s", field, text, strings.Join(enum, ", "))
	}
	return ""
}

// closedEnum reports whether the words of a field are those of a CRD, which has
// no others.
func (s *shape) closedEnum() bool {
	return len(s.schema.Enum) > 0 && !strings.HasPrefix(s.id, "io.k8s.")
}

// numberText is a number as selectors compare it.
func numberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// textAt is a literal as lookups compare it, and where it stands.
type textAt struct {
	node *yaml.Node
	text string
}

// literalTexts are the literals that a where clause allows; those that are
// computed are not known.
func literalTexts(n *yaml.Node) []textAt {
	n = yamldoc.Resolve(n)
	if n.Kind == yaml.SequenceNode {
		var out []textAt
		for _, item := range n.Content {
			if item = yamldoc.Resolve(item); item.Kind == yaml.ScalarNode {
				out = append(out, literalTexts(item)...)
			}
		}
		return out
	}
	if n.Kind != yaml.ScalarNode || strings.Contains(n.Value, "${") {
		return nil
	}
	v, err := yamldoc.Value(n)
	if err != nil {
		return nil
	}
	switch v := v.(type) {
	case string:
		return []textAt{{n, v}}
	case float64:
		return []textAt{{n, numberText(v)}}
	case bool, int64:
		return []textAt{{n, fmt.Sprint(v)}}
	}
	return nil
}
