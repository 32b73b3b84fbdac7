package rules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// template is a value of the rule file in which strings may hold CEL. It is
// immutable after compilation.
//
// eval gives a JSON-shaped value that may share parts with the object: it is
// read-only. expression.ErrAbsent means: leave out this key or element.
type template interface {
	eval(names expression.Resolver) (any, error)
}

// constant has no CEL in it.
type constant struct{ value any }

func (c constant) eval(expression.Resolver) (any, error) { return c.value, nil }

// whole is a string that is exactly one ${…}: its typed result.
type whole struct {
	program *expression.Program
	isText  bool // the place holds strings only: a label, an annotation
	at      string
	// keepAbsent says that an absent value is not left out: all is absent.
	keepAbsent bool
}

// errAllAbsent says that a part is absent which may not be left out.
var errAllAbsent = errors.New("a part is absent")

func (w whole) eval(names expression.Resolver) (any, error) {
	v, err := w.program.Eval(names)
	if err != nil {
		return nil, err
	}
	val, err := v.Native()
	if w.keepAbsent && errors.Is(err, expression.ErrAbsent) {
		return nil, errAllAbsent
	}
	if err != nil {
		return nil, err
	}
	if _, ok := val.(string); w.isText && !ok {
		return nil, errors.New(notText(w.at, kindOf(val)))
	}
	return val, nil
}

// notText says that a place of which only strings are known got something else.
func notText(at, kind string) string {
	advice := "use string()"
	if kind == "null" {
		advice = "use optional.none() to leave it out"
	}
	return fmt.Sprintf("%s must be a string, but the expression gives %s: %s", at, kind, advice)
}

// mixed is text with expressions inside: always a string.
type mixed []part

type part struct {
	text    string
	program *expression.Program // nil: text
}

func (m mixed) eval(names expression.Resolver) (any, error) { return m.render(names) }

func (m mixed) render(names expression.Resolver) (string, error) {
	var b strings.Builder
	for _, p := range m {
		if p.program == nil {
			b.WriteString(p.text)
			continue
		}
		v, err := p.program.Eval(names)
		if err != nil {
			return "", err
		}
		s, err := v.Text()
		if errors.Is(err, expression.ErrAbsent) {
			return "", fmt.Errorf("${%s} is absent: it cannot be put into a string", p.text)
		}
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

type mapping []entry

type entry struct {
	key   template // a string
	value template
}

func (m mapping) eval(names expression.Resolver) (any, error) {
	out := make(map[string]any, len(m))
	for _, e := range m {
		k, err := e.key.eval(names)
		if errors.Is(err, expression.ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("a key must be a string, but its expression gives %s", kindOf(k))
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("two keys have the same value %q", key)
		}
		v, err := e.value.eval(names)
		if errors.Is(err, expression.ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[key] = v
	}
	return out, nil
}

type sequence []template

func (s sequence) eval(names expression.Resolver) (any, error) {
	out := make([]any, 0, len(s))
	for _, t := range s {
		v, err := t.eval(names)
		if errors.Is(err, expression.ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// templates compiles the values of one rule.
type templates struct {
	*decoder
	env *expression.Env
	// textAt reports whether the value at a path must be a string. Nil: nowhere.
	textAt func(path []string) bool
	// whole is what all of it is, where that is one expression: merge, json,
	// operation. named says that else the first step of a path is a field of the
	// rule, not of the object. See Expression.At.
	whole string
	named bool
	// nullIsValue says that a null is written, not a key removed.
	nullIsValue bool
	// keepAbsent says that where a part is absent, the whole is.
	keepAbsent bool
}

// compile turns a node into a template; problems are collected in the decoder
// and leave a constant in place of what is wrong.
func (t *templates) compile(n *yaml.Node, path []string) template {
	n = yamldoc.Resolve(n)
	if !holdsTemplate(n) {
		return t.constant(n, path)
	}
	switch n.Kind {
	case yaml.MappingNode:
		return t.mapping(n, path)
	case yaml.SequenceNode:
		s := make(sequence, len(n.Content))
		for i, item := range n.Content {
			s[i] = t.compile(item, extend(path, strconv.Itoa(i)))
		}
		return s
	}
	return t.scalar(text{n.Value, n}, path)
}

func (t *templates) mapping(n *yaml.Node, path []string) template {
	var m mapping
	for _, p := range strictyaml.Pairs(n) {
		if !t.wantString(p.Key, "the key") {
			continue
		}
		e := entry{key: constant{p.Key.Value}}
		below := extend(path, p.Key.Value)
		if strings.Contains(p.Key.Value, "${") {
			t.part.Use = UseKey
			e.key = t.scalar(text{p.Key.Value, p.Key}, nil)
			t.part.Use = UseValue
			below = extend(path, "*")
		}
		e.value = t.compile(p.Value, below)
		m = append(m, e)
	}
	return m
}

// constant reads a part without CEL, and checks what would be refused by the
// server anyway: labels that are not strings.
func (t *templates) constant(n *yaml.Node, path []string) template {
	v, err := yamldoc.Value(n)
	if err != nil {
		t.failValue(n, err)
		return constant{}
	}
	t.checkKeys(n)
	t.checkText(n, path)
	return constant{v}
}

// checkKeys refuses keys that YAML does not read as strings: y would become
// "true", and what is meant is known to the author only.
func (t *templates) checkKeys(n *yaml.Node) {
	for _, item := range yamldoc.Resolve(n).Content {
		t.checkKeys(item)
	}
	if n.Kind == yaml.MappingNode {
		for _, p := range strictyaml.Pairs(n) {
			t.wantString(p.Key, "the key")
		}
	}
}

func (t *templates) checkText(n *yaml.Node, path []string) {
	switch {
	case t.textAt == nil:
	case n.Kind == yaml.MappingNode:
		for _, p := range strictyaml.Pairs(n) {
			t.checkText(yamldoc.Resolve(p.Value), extend(path, p.Key.Value))
		}
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			t.checkText(yamldoc.Resolve(item), extend(path, strconv.Itoa(i)))
		}
	case t.textAt(path) && strictyaml.IsNull(n) && t.nullIsValue:
		t.as(CheckStringValue).fail(n, "%s must be a string, not null", strings.Join(path, "."))
	case t.textAt(path) && !yamldoc.IsString(n) && !strictyaml.IsNull(n):
		t.as(CheckStringValue).fail(n, "%s must be a string, but YAML reads %s as %s: quote it", strings.Join(path, "."), n.Value, strictyaml.Describe(n))
	}
}

// place is Expression.At of what stands at a path.
func (t *templates) place(path []string) string {
	switch {
	case len(path) == 0:
		return t.whole
	case !t.named:
		return ""
	case len(path) == 1 && path[0] == "matchLabels":
		return "labelSelector" // the place of a mapping, too
	}
	return path[0]
}

// scalar compiles one string.
func (t *templates) scalar(s text, path []string) template {
	segments, err := split(s.value)
	if err != nil {
		t.failSplit(s, err)
		return constant{s.value}
	}
	t.part.At = t.place(path)
	if only, ok := onlyExpression(segments); ok {
		program := t.program(s, only)
		if program == nil {
			return constant{s.value}
		}
		w := whole{program: program, at: strings.Join(path, "."), keepAbsent: t.keepAbsent}
		if t.textAt != nil && t.textAt(path) {
			w.isText = true
			if r := program.Result(); r.NeverString() {
				t.as(CheckStringValue).failIn(s, only.offset, "%s", notText(w.at, strings.TrimSuffix(r.String(), "_type")))
			}
		}
		return w
	}
	return t.mixed(s, segments)
}

func (t *templates) mixed(s text, segments []segment) template {
	use := t.part.Use
	t.part.Use = UseText
	defer func() { t.part.Use = use }()
	var m mixed
	literal := true
	for _, seg := range segments {
		p := part{text: seg.text}
		if seg.cel {
			literal = false
			if p.program = t.program(s, seg); p.program == nil {
				continue
			}
			if r := p.program.Result(); !r.MayBeText() {
				t.as(CheckTemplate).failIn(s, seg.offset, "a %s cannot be put into a string: only strings, numbers, bools, timestamps and durations can", r)
			}
		}
		m = append(m, p)
	}
	if literal {
		all, _ := m.render(nil)
		return constant{all}
	}
	return m
}

// program compiles one expression of a string; nil after a problem.
func (t *templates) program(s text, seg segment) *expression.Program {
	p, issues := t.env.Compile(seg.text)
	t.failIssues(s, seg.offset, seg.text, issues)
	if p != nil {
		t.fields.Read(p)
	}
	return t.compiled(p, seg.text, s, seg.offset)
}

func (d *decoder) failSplit(t text, err error) {
	var broken *splitError
	if errors.As(err, &broken) {
		d.as(CheckTemplate).failIn(t, broken.offset, "%s", broken.msg)
		return
	}
	d.as(CheckTemplate).fail(t.node, "%v", err)
}

// onlyExpression reports whether the segments are one expression, with nothing
// but white space around it.
func onlyExpression(segments []segment) (segment, bool) {
	var only segment
	found := 0
	for _, seg := range segments {
		switch {
		case seg.cel:
			only = seg
			found++
		case strings.TrimSpace(seg.text) != "":
			return segment{}, false
		}
	}
	return only, found == 1
}

// holdsTemplate reports whether a string below n has a ${ (a $${ too: it has
// to be unescaped).
func holdsTemplate(n *yaml.Node) bool {
	n = yamldoc.Resolve(n)
	if n.Kind == yaml.ScalarNode {
		return yamldoc.IsString(n) && strings.Contains(n.Value, "${")
	}
	return slices.ContainsFunc(n.Content, holdsTemplate)
}

// extend returns a path with one more element, never sharing memory with
// another path.
func extend(path []string, element string) []string {
	return append(slices.Clip(path), element)
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "a mapping"
}
