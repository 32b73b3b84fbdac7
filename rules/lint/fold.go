package lint

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// folded is what an expression yields for all objects alike, as far as that is
// known.
type folded struct {
	kind foldedKind
	v    any // of a constant: nil, bool, int64, uint64, float64, string, []folded, noEntries
}

type foldedKind int

const (
	unknown  foldedKind = iota // it depends on the object
	constant                   // v
	none                       // an optional without a value
	failed                     // no such key, or another error
)

// noEntries is a map without entries.
type noEntries struct{}

func constantOf(v any) folded { return folded{constant, v} }

// is reports whether the value is surely this bool.
func (v folded) is(truth bool) bool { return v.kind == constant && v.v == truth }

// empty reports whether the value surely is a list or map without elements.
func (v folded) empty() bool {
	if list, ok := v.v.([]folded); ok {
		return len(list) == 0
	}
	return v.kind == constant && v.v == noEntries{}
}

// folder evaluates expressions as far as they do not depend on the object.
type folder struct {
	*scene
	// absent is the key of a place of which is assumed that nothing is there;
	// empty: nothing is assumed.
	absent string
	// lookup is the name of a lookup of which is assumed that it finds so many
	// objects; empty: nothing is assumed.
	lookup string
	finds  int64
	// opaque says that variables are not looked into.
	opaque bool
}

func (s folder) fold(n *expression.Node, f *frame) folded {
	if s.tired() {
		return folded{}
	}
	switch n.Kind {
	case expression.Literal:
		return constantOf(n.Value)
	case expression.Ident:
		return s.ident(n)
	case expression.Select, expression.Index:
		return s.selection(n, f)
	case expression.List:
		list := []folded{}
		for _, arg := range n.Args {
			v := s.fold(arg, f)
			if v.kind == failed {
				return v
			}
			list = append(list, v)
		}
		if len(n.Args) > 0 && slices.ContainsFunc(list, func(v folded) bool { return v.kind == none }) {
			return folded{} // [?x] leaves it out
		}
		return constantOf(list)
	case expression.Map:
		if len(n.Args) == 0 {
			return constantOf(noEntries{})
		}
	case expression.Macro:
		return s.macro(n, f)
	case expression.Call:
		return s.call(n, f)
	}
	return folded{}
}

func (s folder) ident(n *expression.Node) folded {
	if v := s.variable(n); v != nil {
		if s.opaque {
			return folded{}
		}
		return s.fold(v, nil)
	}
	if n.Declared && s.lookup != "" && n.Name == s.lookup {
		return constantOf(make([]folded, s.finds))
	}
	if n.Declared && strings.HasPrefix(n.Name, "lookups.") {
		// What is absent in a lookup finds nothing.
		for _, e := range s.lookups[n.Name] {
			switch v := s.fold(s.trees[e], nil); v.kind {
			case none:
				return constantOf([]folded{})
			case failed:
				return v
			}
		}
	}
	return folded{}
}

func (s folder) selection(n *expression.Node, f *frame) folded {
	from := s.fold(n.Target, f)
	if from.kind == failed {
		return from
	}
	missing := s.absent != "" && s.key(n, f) == s.absent
	switch {
	case n.Test && (missing || from.kind == none || from.empty()):
		return constantOf(false)
	case n.Test:
		if s.absent == "" && s.certain(n, f) {
			return constantOf(true)
		}
		return folded{}
	case from.kind == none:
		return from
	case missing && isOptional(n):
		return folded{kind: none}
	case missing, from.empty():
		return folded{kind: failed}
	}
	return folded{}
}

// certain reports whether has() of a place is true for all objects.
func (s folder) certain(n *expression.Node, f *frame) bool {
	at := s.spot(n, f)
	if at.root == "" || at.list || at.root == "namespaceObject" {
		return false
	}
	switch strings.Join(at.path, ".") {
	case "apiVersion", "kind", "metadata", "metadata.name":
		return true
	}
	return false
}

// isOptional reports whether a chain of selections is optional from somewhere on.
func isOptional(n *expression.Node) bool {
	if n.Kind != expression.Select && n.Kind != expression.Index {
		return strings.HasPrefix(n.Type.String(), "optional_type")
	}
	return n.Optional || isOptional(n.Target)
}

func (s folder) macro(n *expression.Node, f *frame) folded {
	from := s.fold(n.Target, f)
	switch {
	case from.kind == failed, from.kind == none && n.Name != "optMap" && n.Name != "optFlatMap":
		return folded{kind: failed}
	case from.kind == none:
		return from
	}
	inner, _ := s.bind(n, f)
	body := folded{}
	if len(n.Args) > 0 {
		body = s.fold(n.Args[0], inner)
	}
	switch n.Name {
	case "exists":
		if from.empty() || body.is(false) {
			return constantOf(false)
		}
	case "all":
		if from.empty() || body.is(true) {
			return constantOf(true)
		}
	case "exists_one", "existsOne":
		if from.empty() || body.is(false) {
			return constantOf(false)
		}
	case "filter":
		if from.empty() || body.is(false) && !s.spot(n.Target, f).isMap() {
			return constantOf([]folded{})
		}
	case "map", "sortBy", "transformList":
		if from.empty() || len(n.Args) == 2 && body.is(false) {
			return constantOf([]folded{})
		}
	case "transformMap", "transformMapEntry":
		if from.empty() || len(n.Args) == 2 && body.is(false) {
			return constantOf(noEntries{})
		}
	}
	return folded{}
}

func (s folder) call(n *expression.Node, f *frame) folded {
	if n.Target == nil {
		switch n.Name {
		case "&&":
			return s.logical(n, f, false)
		case "||":
			return s.logical(n, f, true)
		case "?:":
			return s.choice(n, f)
		case "optional.none":
			return folded{kind: none}
		}
	}
	var args []folded
	if n.Target != nil {
		v := s.fold(n.Target, f)
		if v.kind == none || v.kind == failed {
			return s.absence(n, v, f)
		}
		args = append(args, v)
	}
	for _, arg := range n.Args {
		args = append(args, s.fold(arg, f))
	}
	for _, v := range args {
		if v.kind == failed {
			return v
		}
	}
	if n.Name == "in" {
		return s.in(n, f, args)
	}
	if n.Name == "hasValue" || n.Name == "orValue" || n.Name == "value" || n.Name == "or" {
		return folded{}
	}
	return apply(n.Name, args)
}

// absence is what a method makes of an optional without a value, or of an error.
func (s folder) absence(n *expression.Node, v folded, f *frame) folded {
	if v.kind == none {
		switch n.Name {
		case "hasValue":
			return constantOf(false)
		case "orValue", "or":
			return s.fold(n.Args[0], f)
		}
	}
	return folded{kind: failed}
}

// logical folds && and ||, of which one operand can decide, even if another one
// fails. decisive is the operand that does.
func (s folder) logical(n *expression.Node, f *frame, decisive bool) folded {
	out := constantOf(!decisive)
	for _, arg := range n.Operands(n.Name) {
		switch v := s.fold(arg, f); {
		case v.is(decisive):
			return v
		case v.is(!decisive):
		case v.kind == failed && out.kind != unknown:
			out = v
		default:
			out = folded{}
		}
	}
	return out
}

func (s folder) choice(n *expression.Node, f *frame) folded {
	switch c := s.fold(n.Args[0], f); {
	case c.kind == failed:
		return c
	case c.is(true):
		return s.fold(n.Args[1], f)
	case c.is(false):
		return s.fold(n.Args[2], f)
	}
	a, b := s.fold(n.Args[1], f), s.fold(n.Args[2], f)
	if order, ok := compare(a, b); ok && order == 0 {
		return a
	}
	return folded{}
}

func (s folder) in(n *expression.Node, f *frame, args []folded) folded {
	if args[1].empty() {
		return constantOf(false)
	}
	if list, ok := args[1].v.([]folded); ok && args[0].kind == constant {
		all := true
		for _, v := range list {
			order, known := compare(args[0], v)
			if known && order == 0 {
				return constantOf(true)
			}
			all = all && known
		}
		if all {
			return constantOf(false)
		}
	}
	if s.absent == "" {
		return folded{}
	}
	at := ""
	if name, ok := n.Args[0].Value.(string); ok {
		at = s.below(n.Args[1], f, name)
	} else if index := s.key(n.Args[0], f); index != "" {
		at = s.below(n.Args[1], f, "["+index+"]")
	}
	if at == s.absent {
		return constantOf(false)
	}
	return folded{}
}

// apply folds functions of constants.
func apply(name string, args []folded) folded {
	for _, v := range args {
		if v.kind != constant {
			return folded{}
		}
	}
	switch {
	case len(args) == 1:
		return applyOne(name, args[0])
	case len(args) != 2:
		return folded{}
	}
	switch order, ok := compare(args[0], args[1]); name {
	case "==", "!=":
		if list, other := args[0].empty(), args[1].empty(); list != other && isList(args[0]) && isList(args[1]) {
			return constantOf(name == "!=")
		} else if list && other {
			return constantOf(name == "==")
		}
		if ok {
			return constantOf((order == 0) == (name == "=="))
		}
	case "<", "<=", ">", ">=":
		if ok {
			return constantOf(order < 0 && name[0] == '<' || order > 0 && name[0] == '>' || order == 0 && len(name) == 2)
		}
	}
	a, isText := args[0].v.(string)
	b, areTexts := args[1].v.(string)
	if !isText || !areTexts {
		return folded{}
	}
	switch name {
	case "+":
		return constantOf(a + b)
	case "startsWith":
		return constantOf(strings.HasPrefix(a, b))
	case "endsWith":
		return constantOf(strings.HasSuffix(a, b))
	case "contains":
		return constantOf(strings.Contains(a, b))
	case "matches":
		if re, err := regexp.Compile(b); err == nil {
			return constantOf(re.MatchString(a))
		}
	}
	return folded{}
}

func isList(v folded) bool {
	_, ok := v.v.([]folded)
	return ok
}

func applyOne(name string, arg folded) folded {
	switch v := arg.v.(type) {
	case bool:
		if name == "!" {
			return constantOf(!v)
		}
	case string:
		switch name {
		case "size":
			return constantOf(int64(len([]rune(v))))
		case "string", "dyn":
			return arg
		}
	case int64:
		if name == "-" && v > 0 {
			return constantOf(-v)
		}
	}
	switch {
	case name == "dyn":
		return arg
	case name == "size" && arg.empty():
		return constantOf(int64(0))
	case name == "size":
		if list, ok := arg.v.([]folded); ok {
			return constantOf(int64(len(list)))
		}
	}
	return folded{}
}

// compare orders two constants of comparable types.
func compare(a, b folded) (order int, ok bool) {
	if a.kind != constant || b.kind != constant {
		return 0, false
	}
	switch x := a.v.(type) {
	case nil:
		return 0, b.v == nil
	case bool:
		y, ok := b.v.(bool)
		if x == y {
			return 0, ok
		}
		return 1, ok
	case string:
		y, ok := b.v.(string)
		return strings.Compare(x, y), ok
	case int64:
		if y, ok := b.v.(int64); ok {
			return cmp.Compare(x, y), true
		}
		y, ok := b.v.(float64)
		return cmp.Compare(float64(x), y), ok
	case float64:
		if y, ok := b.v.(float64); ok {
			return cmp.Compare(x, y), true
		}
		y, ok := b.v.(int64)
		return cmp.Compare(x, float64(y)), ok
	}
	return 0, false
}
