package rules

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// decoder fills the format's structs from YAML nodes: strictly, with the
// position of everything that does not fit. It collects all problems of a
// document instead of stopping at the first.
type decoder struct {
	doc         *yamldoc.Document
	spec        *yaml.Node // the key, where what is missing in it is reported
	rule        string
	vars        []string                    // the variables that are declared so far
	lookups     []string                    // the lookups, likewise
	inLookup    bool                        // what is compiled belongs to a lookup
	reads       map[string]yamldoc.Position // the names that the rule's CEL reads, and where first
	fields      *expression.Analysis        // which of their fields
	part        Expression                  // what is compiled at the moment: Part, Name, Patch
	expressions []*Expression               // what has been compiled so far
	problems    []*Problem
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	d.failAt(d.doc.Pos(n), format, args...)
}

// failIn reports what is wrong at a byte offset within a scalar's value.
func (d *decoder) failIn(t text, offset int, format string, args ...any) {
	d.failAt(d.doc.PosIn(t.node, offset), format, args...)
}

func (d *decoder) failAt(pos yamldoc.Position, format string, args ...any) {
	d.problems = append(d.problems, &Problem{
		Pos: pos, Rule: d.rule, Msg: fmt.Sprintf(format, args...), Line: d.doc.Line(pos.Line),
	})
}

// ok reports whether nothing has been found wrong since a mark, which is
// len(d.problems) at an earlier moment.
func (d *decoder) ok(mark int) bool { return len(d.problems) == mark }

var (
	textType     = reflect.TypeFor[text]()
	rawType      = reflect.TypeFor[raw]()
	selectorType = reflect.TypeFor[selector]()
)

// decode fills v from n; path names the place for messages.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	n = resolve(n)
	switch v.Type() {
	case rawType:
		v.Set(reflect.ValueOf(raw{n}))
		return
	case textType:
		if isNull(n) {
			break
		}
		if d.wantString(n, path) {
			v.Set(reflect.ValueOf(text{n.Value, n}))
		}
		return
	case selectorType:
		s := v.Addr().Interface().(*selector)
		s.node = n
		d.decode(n, reflect.ValueOf(&s.LabelSelector).Elem(), path)
		return
	}
	if isNull(n) {
		d.fail(n, "%s is empty: give it a value or remove it", path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path)
	case reflect.String:
		if d.wantString(n, path) {
			v.SetString(n.Value)
		}
	case reflect.Bool:
		d.decodeBool(n, v, path)
	case reflect.Slice:
		d.decodeList(n, v, path)
	case reflect.Map:
		d.decodeMap(n, v, path)
	case reflect.Struct:
		d.decodeStruct(n, v, path)
	default:
		panic(fmt.Sprintf("rules: the format has a field of kind %s at %s", v.Kind(), path))
	}
}

func (d *decoder) decodeBool(n *yaml.Node, v reflect.Value, path string) {
	val, err := yamldoc.Value(n)
	b, ok := val.(bool)
	if err != nil || !ok {
		d.fail(n, "%s must be true or false, not %s", path, describe(n))
		return
	}
	v.SetBool(b)
}

func (d *decoder) decodeList(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "%s must be a list, not %s", path, describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.decode(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

func (d *decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "%s must be a mapping, not %s", path, describe(n))
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, p := range pairs(n) {
		if !d.wantString(p.key, "the key") {
			continue
		}
		val := reflect.New(v.Type().Elem()).Elem()
		d.decode(p.value, val, join(path, p.key.Value))
		out.SetMapIndex(reflect.ValueOf(p.key.Value), val)
	}
	v.Set(out)
}

func (d *decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "%s must be a mapping, not %s", orWhole(path), describe(n))
		return
	}
	if p, ok := v.Addr().Interface().(interface{ locate(*yaml.Node) }); ok {
		p.locate(n)
	}
	fields, names := fieldsOf(v.Type())
	for _, p := range pairs(n) {
		f, known := fields[p.key.Value]
		switch {
		case !known:
			d.fail(p.key, "unknown field %q%s%s", p.key.Value, under(path), didYouMean(p.key.Value, names))
		case f.Tag.Get("later") != "":
			d.fail(p.key, "%s is part of the format, but this version of rectifier does not support it yet", join(path, p.key.Value))
		default:
			d.decode(p.value, v.FieldByIndex(f.Index), join(path, p.key.Value))
		}
	}
}

// wantString refuses what YAML reads as something else, `yes` and `012`
// included: quietly turning those into strings would hide a surprise.
func (d *decoder) wantString(n *yaml.Node, path string) bool {
	if yamldoc.IsString(n) && !tagged(n) {
		return true
	}
	switch {
	case tagged(n):
		d.fail(n, "YAML reads %s as a tag: quote what begins with !", n.Tag)
	case n.Kind == yaml.ScalarNode && !isNull(n):
		d.fail(n, "%s must be a string, but YAML reads %s as %s: quote it", path, n.Value, describe(n))
	default:
		d.fail(n, "%s must be a string, not %s", path, describe(n))
	}
	return false
}

func fieldsOf(t reflect.Type) (map[string]reflect.StructField, []string) {
	fields := map[string]reflect.StructField{}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		fields[name] = f
		names = append(names, name)
	}
	return fields, names
}

// tagged reports whether a scalar has a tag of its own: an unquoted !has(…).
func tagged(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!")
}

type pair struct{ key, value *yaml.Node }

// pairs lists a mapping's entries in order, merge keys (<<) expanded; an
// explicit entry wins over a merged one.
func pairs(n *yaml.Node) []pair {
	var out []pair
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], resolve(n.Content[i+1])
		if k.Tag == "!!merge" {
			merged = append(merged, v)
			continue
		}
		seen[k.Value] = true
		out = append(out, pair{k, v})
	}
	for _, m := range merged {
		sources := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			sources = m.Content
		}
		for _, s := range sources {
			for _, p := range pairs(resolve(s)) {
				if !seen[p.key.Value] {
					seen[p.key.Value] = true
					out = append(out, p)
				}
			}
		}
	}
	return out
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// describe names what a node holds, in the words of YAML.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	v, err := yamldoc.Value(n)
	if err != nil {
		return "a value that cannot be read"
	}
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	}
	return "a string"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func under(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

func orWhole(path string) string {
	if path == "" {
		return "a rule"
	}
	return path
}

// failValue reports an error of yamldoc, which knows its position, at n
// otherwise.
func (d *decoder) failValue(n *yaml.Node, err error) {
	var e *yamldoc.Error
	if errors.As(err, &e) && e.Pos.Line > 0 {
		e.Pos.File = d.doc.File
		d.failAt(e.Pos, "%s", e.Msg)
		return
	}
	d.fail(n, "%s", err)
}
