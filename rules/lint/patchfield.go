package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

var patchField = &Check{
	ID: "patch-field", Severity: Error, Summary: "A patch writes a field that the schema does not have, or a value of the wrong type",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			p.eachTarget(one, func(t *target) {
				if t.shape == nil {
					report(t.at, unknownField(t))
					return
				}
				if t.through || t.value == nil {
					return
				}
				for _, v := range t.value.alternatives() {
					if want, have := misfit(v, t.shape); want != "" {
						report(v.at, fmt.Sprintf("%s must be %s, not %s", t.name(), want, have))
					}
				}
			})
		})
	},
}

// eachResource looks at the rule for each of its resources, and reports once
// what is found for several. What is found for some of them only says for
// which, unless the rule tells its kinds apart itself.
func (p *Pass) eachResource(look func(one *typed, report func(yamldoc.Position, string))) {
	type finding struct {
		at        yamldoc.Position
		msg       string
		resources []schema.GroupVersionResource
	}
	var all []*finding
	for _, one := range p.typing.all() {
		look(one, func(at yamldoc.Position, msg string) {
			for _, f := range all {
				if seen := slices.Contains(f.resources, one.gvr); f.at == at && (f.msg == msg || !seen) {
					if !seen {
						f.resources = append(f.resources, one.gvr)
					}
					return
				}
			}
			all = append(all, &finding{at, msg, []schema.GroupVersionResource{one.gvr}})
		})
	}
	for _, f := range all {
		switch {
		case len(f.resources) == len(p.Rule.Resources):
			p.Reportf(f.at, "%s", f.msg)
		case readsKind(p):
		case strings.Contains(f.msg, f.resources[0].Resource):
			p.Reportf(f.at, "%s", f.msg)
		default:
			p.Reportf(f.at, "%s (of %s)", f.msg, f.resources[0].Resource)
		}
	}
}

func unknownField(t *target) string {
	key := t.path[len(t.path)-1]
	where := ""
	if up := t.path[:len(t.path)-1]; len(up) > 0 {
		where = " in " + strings.Join(up, ".")
	}
	if t.parent.kind == expression.ListShape {
		return fmt.Sprintf("%s is a list: its elements have numbers, or - for one behind the last, not %q", strings.Join(t.path[:len(t.path)-1], "."), key)
	}
	if t.parent.kind != expression.ObjectShape {
		return fmt.Sprintf("unknown field %q: %s is %s", key, strings.Join(t.path[:len(t.path)-1], "."), describeShape(t.parent))
	}
	return fmt.Sprintf("unknown field %q%s%s", key, where, suggest.DidYouMean(key, t.parent.Fields()))
}

// alternatives are the values that may come of one: both sides of ?:.
func (v *value) alternatives() []*value {
	if v.kind != either {
		return []*value{v}
	}
	var out []*value
	for _, one := range v.items {
		out = append(out, one.alternatives()...)
	}
	return out
}

// misfit says what a place takes and what a value is, if the value certainly
// does not fit. Values are not told: they may be secret.
func misfit(v *value, s *shape) (want, have string) {
	want = describeShape(s)
	switch v.kind {
	case mapping:
		if !mayBe(s, expression.ObjectShape, expression.MapShape) {
			return want, "a mapping"
		}
	case list:
		if !mayBe(s, expression.ListShape) {
			return want, "a list"
		}
	case mixedText:
		if !mayBe(s, expression.StringShape, expression.IntOrStringShape, expression.QuantityShape) {
			return want, "a string"
		}
	case computed:
		if !v.typ.MayFit(s) {
			return want, withArticle(v.typ.Spell())
		}
	case literal:
		return misfitLiteral(v.literal, s)
	}
	return "", ""
}

func withArticle(name string) string {
	if strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	return "a " + name
}

func misfitLiteral(v any, s *shape) (want, have string) {
	want = describeShape(s)
	switch v := v.(type) {
	case string:
		if !mayBe(s, expression.StringShape, expression.IntOrStringShape, expression.QuantityShape) {
			return want, "a string"
		}
		enum := s.Enum()
		if len(enum) == 0 || s.kind != expression.StringShape || slices.Contains(enum, v) {
			return "", ""
		}
		// Other versions of Kubernetes may know other words than the built-in ones.
		if len(s.schema.Enum) > 0 || suggest.Closest(v, enum) != "" {
			return "one of " + strings.Join(enum, ", "), "another string"
		}
	case int64:
		if !mayBe(s, expression.IntShape, expression.NumberShape, expression.IntOrStringShape, expression.QuantityShape) {
			return want, "an int"
		}
	case float64:
		if !mayBe(s, expression.NumberShape, expression.QuantityShape) {
			return want, "a fraction"
		}
	case bool:
		if !mayBe(s, expression.BoolShape) {
			return want, "a bool"
		}
	}
	return "", "" // null removes, or the server says what it thinks of it
}

func describeShape(s *shape) string {
	switch s.kind {
	case expression.StringShape:
		return "a string"
	case expression.IntShape:
		return "an int"
	case expression.NumberShape:
		return "a number"
	case expression.BoolShape:
		return "a bool"
	case expression.IntOrStringShape:
		return "an int or a string"
	case expression.QuantityShape:
		return "a quantity, such as 500m or 1Gi"
	case expression.ListShape:
		return "a list"
	case expression.MapShape, expression.ObjectShape:
		return "a mapping"
	}
	return "anything"
}
