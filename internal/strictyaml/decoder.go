package strictyaml

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// Decoder reads one document. It keeps no state: what it finds goes to Report.
type Decoder struct {
	Doc *yamldoc.Document
	// Whole is what the document is called in messages: "a rule".
	Whole string
	// Report is told everything that does not fit, in the order of the file.
	Report func(at yamldoc.Position, msg string)
}

// NodeDecoder is implemented by pointers to types that read their node
// themselves. Aliases have been followed; null is for them to judge. path names
// the place for messages.
type NodeDecoder interface {
	DecodeNode(d *Decoder, n *yaml.Node, path string)
}

// Locator is implemented by pointers to structs that remember the mapping they
// were read from.
type Locator interface{ Locate(n *yaml.Node) }

// Adviser is implemented by pointers to structs that can tell what is meant
// where something else is written. What they return ends a message after a
// colon; it is empty where there is no advice.
type Adviser interface {
	// AdviseField is about a field of a mapping that the struct does not have,
	// and whose name is like none that it has.
	AdviseField(n *yaml.Node, key string) string
	// AdviseValue is about what is no mapping.
	AdviseValue(n *yaml.Node) string
}

// Decode fills what v points to from a node; path is "" for a whole document.
func (d *Decoder) Decode(n *yaml.Node, v any, path string) {
	d.decode(n, reflect.ValueOf(v).Elem(), path)
}

// Fail reports what is wrong with a node.
func (d *Decoder) Fail(n *yaml.Node, format string, args ...any) {
	d.Report(d.Doc.Pos(n), fmt.Sprintf(format, args...))
}

// FailValue reports an error of yamldoc, where it says or else at n.
func (d *Decoder) FailValue(n *yaml.Node, err error) {
	var e *yamldoc.Error
	if errors.As(err, &e) && e.Pos.Line > 0 {
		at := e.Pos
		at.File = d.Doc.File
		d.Report(at, e.Msg)
		return
	}
	d.Fail(n, "%s", err)
}

// NotNull reports whether a node has a value; what has none is wrong.
func (d *Decoder) NotNull(n *yaml.Node, path string) bool {
	if IsNull(n) {
		d.Fail(n, "%s is empty: give it a value or remove it", path)
		return false
	}
	return true
}

// WantString refuses what YAML reads as something else than a string, `yes`
// and `012` included: quietly turning those into strings would hide a surprise.
func (d *Decoder) WantString(n *yaml.Node, path string) bool {
	if yamldoc.IsString(n) && !Tagged(n) {
		return true
	}
	switch {
	case Tagged(n):
		d.Fail(n, "YAML reads %s as a tag: quote what begins with !", n.Tag)
	case n.Kind == yaml.ScalarNode && !IsNull(n):
		d.Fail(n, "%s must be a string, but YAML reads %s as %s: quote it", path, n.Value, Describe(n))
	default:
		d.Fail(n, "%s must be a string, not %s", path, Describe(n))
	}
	return false
}

// String reads a string; ok is false if it is none.
func (d *Decoder) String(n *yaml.Node, path string) (s string, ok bool) {
	if !d.NotNull(n, path) || !d.WantString(n, path) {
		return "", false
	}
	return n.Value, true
}

func (d *Decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	n = yamldoc.Resolve(n)
	if own, ok := v.Addr().Interface().(NodeDecoder); ok {
		own.DecodeNode(d, n, path)
		return
	}
	if !d.NotNull(n, path) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path)
	case reflect.String:
		if d.WantString(n, path) {
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
		panic(fmt.Sprintf("strictyaml: the format has a field of kind %s at %s", v.Kind(), path))
	}
}

func (d *Decoder) decodeBool(n *yaml.Node, v reflect.Value, path string) {
	val, err := yamldoc.Value(n)
	b, ok := val.(bool)
	if err != nil || !ok {
		d.Fail(n, "%s must be true or false, not %s", path, Describe(n))
		return
	}
	v.SetBool(b)
}

func (d *Decoder) decodeList(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.Fail(n, "%s must be a list, not %s", path, Describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.decode(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

func (d *Decoder) decodeMap(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.Fail(n, "%s must be a mapping, not %s", path, Describe(n))
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, p := range Pairs(n) {
		if !d.WantString(p.Key, "the key") {
			continue
		}
		val := reflect.New(v.Type().Elem()).Elem()
		d.decode(p.Value, val, join(path, p.Key.Value))
		out.SetMapIndex(reflect.ValueOf(p.Key.Value), val)
	}
	v.Set(out)
}

func (d *Decoder) decodeStruct(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		whole := path
		if whole == "" {
			whole = d.Whole
		}
		advice := ""
		if a, ok := v.Addr().Interface().(Adviser); ok {
			advice = after(a.AdviseValue(n))
		}
		d.Fail(n, "%s must be a mapping, not %s%s", whole, Describe(n), advice)
		return
	}
	if l, ok := v.Addr().Interface().(Locator); ok {
		l.Locate(n)
	}
	fields, names := Fields(v.Type())
	for _, p := range Pairs(n) {
		f, known := fields[p.Key.Value]
		if !known {
			advice := suggest.DidYouMean(p.Key.Value, names)
			if a, ok := v.Addr().Interface().(Adviser); ok && advice == "" {
				advice = after(a.AdviseField(n, p.Key.Value))
			}
			d.Fail(p.Key, "unknown field %q%s%s", p.Key.Value, under(path), advice)
			continue
		}
		d.decode(p.Value, v.FieldByIndex(f.Index), join(path, p.Key.Value))
	}
}

// Fields returns the fields of a struct by their names in the file, and these
// names in the order of the struct.
func Fields(t reflect.Type) (map[string]reflect.StructField, []string) {
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

func after(advice string) string {
	if advice == "" {
		return ""
	}
	return ": " + advice
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
