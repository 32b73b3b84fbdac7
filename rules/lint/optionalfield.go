package lint

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// optionalField finds reads of what may be absent, where nothing asks before
// whether it is there. The rule then fails on such an object: it is not a match,
// and somebody gets a Warning for what may be all right.
//
// A read is guarded if a condition that must hold for it to be evaluated cannot
// hold where the field is absent. That is found out by evaluating the condition
// as far as possible, with the field taken away. Messages of Events are not
// looked at: they hold nothing back.
var optionalField = &Check{ID: "optional-field", Severity: Warning, Summary: "A field that may be absent is read without a guard", Run: func(p *Pass) {
	r := reads{scene: newScene(p), present: presentByMatch(p)}
	r.look = func(e *rules.Expression, links []*expression.Node, f *frame, met []guard) bool {
		key, lacks := r.lacks(links[len(links)-1], f, met)
		if lacks {
			r.told = append(r.told, key)
			p.Reportf(e.Pos(links[len(links)-1].Offset), "%s", r.advice(links, f))
		}
		return lacks
	}
	r.walkRule()
}}

// reads walks the expressions of a rule as they are evaluated: variables and
// lookups where they are read.
type reads struct {
	*scene
	// look is called for each selection that is not optional, with those behind it
	// in the same chain, the last one first. If it reports something, the rest of
	// the chain is left out.
	look    func(e *rules.Expression, links []*expression.Node, f *frame, met []guard) (told bool)
	present []string // keys of what is surely there
	told    []string // keys that have been reported
}

// walkRule walks the condition, and what is evaluated if it holds.
func (r *reads) walkRule() {
	var met []guard
	if c := r.condition; c != nil {
		r.walk(c, r.trees[c], nil, nil)
		met = []guard{{n: r.trees[c], truth: true}}
	}
	for _, e := range r.pass.Expressions {
		if e.Part == rules.PartPatch {
			r.walk(e, r.trees[e], nil, met)
		}
	}
}

func (r *reads) walk(e *rules.Expression, n *expression.Node, f *frame, met []guard) {
	if r.tired() {
		return
	}
	switch n.Kind {
	case expression.Ident:
		r.name(n, met)
		return
	case expression.Select, expression.Index:
		r.chain(e, n, f, met)
		return
	case expression.Macro:
		r.walk(e, n.Target, f, met)
		inner, guards := r.bind(n, f)
		met = append(slices.Clip(met), guards...)
		for i, arg := range n.Args {
			if i > 0 { // the first is a filter
				met = append(slices.Clip(met), guard{n: n.Args[0], f: inner, truth: true})
			}
			r.walk(e, arg, inner, met)
		}
		return
	}
	switch {
	case n.Is("&&"), n.Is("||"):
		// Operands guard one another in both directions: CEL takes the one that
		// decides, whether or not another one fails.
		all := n.Operands(n.Name)
		for i, one := range all {
			others := slices.Clip(met)
			for j, other := range all {
				if i != j {
					others = append(others, guard{n: other, f: f, truth: n.Name == "&&"})
				}
			}
			r.walk(e, one, f, others)
		}
	case n.Is("?:"):
		r.walk(e, n.Args[0], f, met)
		r.walk(e, n.Args[1], f, append(slices.Clip(met), guard{n: n.Args[0], f: f, truth: true}))
		r.walk(e, n.Args[2], f, append(slices.Clip(met), guard{n: n.Args[0], f: f, truth: false}))
	default:
		for _, c := range n.Children() {
			r.walk(e, c, f, met)
		}
	}
}

// name walks what a variable or a lookup stands for.
func (r *reads) name(n *expression.Node, met []guard) {
	if !n.Declared {
		return
	}
	if v := r.variables[n.Name]; v != nil {
		r.walk(v, r.trees[v], nil, met)
	}
	for _, l := range r.lookups[n.Name] {
		r.walk(l, r.trees[l], nil, met)
	}
}

// chain walks a chain of selections, and looks at its links up to the first that
// something is told of. What is below it is not reported again.
func (r *reads) chain(e *rules.Expression, n *expression.Node, f *frame, met []guard) {
	var links []*expression.Node // from the last to the first
	base := n
	for base.Kind == expression.Select || base.Kind == expression.Index {
		links = append(links, base)
		base = base.Target
	}
	r.walk(e, base, f, met)
	for _, link := range slices.Backward(links) {
		for _, arg := range link.Args {
			r.walk(e, arg, f, met)
		}
	}
	for i, link := range slices.Backward(links) {
		if link.Test || isOptional(link) {
			return
		}
		if r.look(e, links[:i+1], f, met) {
			return
		}
	}
}

// lacks reports whether a read finds nothing on some objects, and names the
// place; it does not if that has been told already, of it or of what it is in.
func (r *reads) lacks(n *expression.Node, f *frame, met []guard) (key string, lacks bool) {
	name, literal := fieldName(n)
	if !literal || !r.spot(n.Target, f).mayLack(name) {
		return "", false
	}
	key = r.key(n, f)
	if key == "" || slices.Contains(r.present, key) {
		return "", false
	}
	for _, told := range r.told {
		if key == told || strings.HasPrefix(key, told+keySeparator) {
			return "", false
		}
	}
	missing := folder{scene: r.scene, absent: key}
	for _, g := range met {
		if g.fails(missing) {
			return "", false
		}
	}
	// Without all steps, a guard may not have been understood.
	return key, !r.tired()
}

// fieldName is the field that a selection or index reads, if it is literal.
func fieldName(n *expression.Node) (name string, literal bool) {
	if n.Kind == expression.Index {
		name, literal = n.Args[0].Value.(string)
		return name, literal
	}
	return n.Name, true
}

// advice says what to write instead of a chain, whose first link (the last of
// links) may be absent.
func (r *reads) advice(links []*expression.Node, f *frame) string {
	first := links[len(links)-1]
	from := r.spot(first.Target, f)
	name, _ := fieldName(first)
	target := spell(first.Target, "…")
	asked := ""
	if !from.defaulted {
		asked = fmt.Sprintf("ask %s first, or ", asks(target, name, from.isMap() && !from.isObject()))
	}
	return fmt.Sprintf("%s may be absent: %swrite %s", spell(first, name), asked, r.defaulted(links, f))
}

// defaulted is a chain as it is written where its links may be absent.
func (r *reads) defaulted(links []*expression.Node, f *frame) string {
	better := spell(links[len(links)-1].Target, "…")
	for _, link := range slices.Backward(links) {
		name, literal := fieldName(link)
		at := r.spot(link.Target, f)
		switch {
		case !literal:
			better += "[?" + spell(link.Args[0], "…") + "]"
		case plainName.MatchString(name) && (link.Kind == expression.Select || !at.isMap()):
			better += ".?" + name
		default:
			better += "[?" + quote(name) + "]"
		}
	}
	if links[0].Test {
		return better + ".hasValue()"
	}
	return better + ".orValue(" + r.spot(links[0], f).zero() + ")"
}

// asks is how a condition asks for a field, or for a key of a map.
func asks(target, name string, key bool) string {
	if key || !plainName.MatchString(name) {
		return quote(name) + " in " + target
	}
	return "has(" + target + "." + name + ")"
}

// zero is the value that most rules take for one that is absent.
func (p spot) zero() string {
	if len(p.path) > 0 && p.root != "" && p.path[0] == "metadata" {
		switch {
		case p.isMetadataMap():
			return "{}"
		case len(p.path) == 2 && (p.path[1] == "finalizers" || p.path[1] == "ownerReferences"):
			return "[]"
		case len(p.path) == 3:
			return "''"
		}
	}
	if len(p.shapes) == 0 {
		return "…"
	}
	switch p.shapes[0].kind {
	case expression.StringShape, expression.QuantityShape:
		return "''"
	case expression.IntShape, expression.NumberShape:
		switch {
		case p.builtin && slices.Equal(p.path, []string{"spec", "replicas"}):
			return "1" // what all workloads default to
		case len(p.path) > 0 && p.path[0] == "status":
			return "0" // counts are left out when they are 0
		}
		return "…" // its default is not in the schema
	case expression.BoolShape:
		return "false"
	case expression.ListShape:
		return "[]"
	case expression.MapShape, expression.ObjectShape:
		return "{}"
	}
	return "…"
}

// optionalMetadata are the fields of metadata that an object may lack.
var optionalMetadata = []string{"annotations", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName", "labels", "ownerReferences"}

// mayLack reports whether an object is known to do without a field of this
// place, of its schema or by convention.
func (p spot) mayLack(name string) bool {
	if p.list {
		return false
	}
	if p.root != "" {
		switch {
		case len(p.path) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata" || name == "spec"):
			return false
		case len(p.path) == 0 && name == "status":
			return !p.builtin
		case len(p.path) == 1 && p.path[0] == "metadata":
			return slices.Contains(optionalMetadata, name) && (p.root != "namespaceObject" || name != "labels")
		case p.isMetadataMap():
			return true
		}
	}
	if p.defaulted && len(p.shapes) > 0 && p.shapes[0].kind == expression.ObjectShape {
		return true
	}
	lacks := false
	for _, s := range p.shapes {
		known, may := s.mayLack(name)
		if !known {
			return false
		}
		lacks = lacks || may
	}
	return lacks
}

// always are fields of Kubernetes' own kinds that their schemas call optional,
// but which no object lacks: validation asks for them, or they are structs that
// are always written.
var always = []string{"image", "jobTemplate", "lastTransitionTime", "metadata", "spec", "template"}

// mayLack reports whether a value of the shape may lack a field, if that is
// known.
func (s *shape) mayLack(name string) (known, may bool) {
	switch s.kind {
	case expression.MapShape:
		return true, s.schema.AdditionalProperties != nil
	case expression.ObjectShape:
	default:
		return false, false
	}
	property, ok := s.schema.Properties[name]
	switch {
	case !ok:
		return true, s.open() && s.element() != anyShape
	case slices.Contains(s.schema.Required, name), property.Default != nil:
		return true, false
	case strings.HasPrefix(s.id, "io.k8s.") && slices.Contains(always, name):
		return true, false
	}
	return true, true
}

// presentByMatch are the keys of what objects have that the match block lets
// through.
func presentByMatch(p *Pass) []string {
	var out []string
	for field, root := range map[string]string{"labelSelector": "object", "namespaceSelector": "namespaceObject"} {
		for _, label := range selected(p.Field("spec", "match", field)) {
			labels := strings.Join([]string{root, "metadata", "labels"}, keySeparator)
			out = append(out, labels, labels+keySeparator+label)
		}
	}
	if n := p.Field("spec", "match", "fieldSelector"); n != nil {
		for _, clause := range strings.Split(n.Value, ",") {
			path, value, ok := strings.Cut(clause, "=")
			if !ok || strings.HasSuffix(path, "!") || strings.TrimLeft(value, "= ") == "" {
				continue
			}
			key := "object"
			for _, name := range strings.Split(strings.TrimSpace(path), ".") {
				key += keySeparator + name
				out = append(out, key)
			}
		}
	}
	return out
}

// selected are the labels that a selector wants to be there.
func selected(n *yaml.Node) []string {
	var out []string
	if _, labels := yamldoc.Field(n, "matchLabels"); labels != nil {
		for i := 0; i+1 < len(labels.Content); i += 2 {
			out = append(out, labels.Content[i].Value)
		}
	}
	if _, list := yamldoc.Field(n, "matchExpressions"); list != nil {
		for _, item := range list.Content {
			_, key := yamldoc.Field(item, "key")
			_, operator := yamldoc.Field(item, "operator")
			if key != nil && operator != nil && (operator.Value == "In" || operator.Value == "Exists") {
				out = append(out, key.Value)
			}
		}
	}
	return out
}
