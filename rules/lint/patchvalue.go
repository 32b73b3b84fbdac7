package lint

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// valueKind is what is known of a value of a patch before evaluation.
type valueKind int

const (
	computed  valueKind = iota // by CEL: only its type is known
	mapping                    // entries
	list                       // items
	literal                    // a string, number, bool or null
	mixedText                  // a string with CEL in it: parts
	either                     // one of items: both sides of ?:
)

// value is a value as a patch writes it, whether YAML or CEL says so.
type value struct {
	kind    valueKind
	at      yamldoc.Position
	literal any // string, int64, float64, bool, nil
	typ     expression.Type
	entries []entry
	items   []*value
	parts   []part
	// repeated says that there are any number of elements that look like one of
	// the items, and perhaps others: the list is computed.
	repeated bool
}

// entry is a member of a mapping.
type entry struct {
	key      string
	computed bool // the key is known at run time only
	at       yamldoc.Position
	value    *value
}

// part is a piece of a string: literal text, or something that is computed.
type part struct {
	text     string
	computed bool
	oneStep  bool // computed, but surely without a slash: a number, an escaped key
	// at is where the byte at an offset of the text stands.
	at func(offset int) yamldoc.Position
}

// member is the value of a literal key, nil if there is none.
func (v *value) member(key string) *value {
	for _, e := range v.entries {
		if e.key == key && !e.computed {
			return e.value
		}
	}
	return nil
}

// text is a literal string.
func (v *value) text() (string, bool) {
	if v == nil || v.kind != literal {
		return "", false
	}
	s, ok := v.literal.(string)
	return s, ok
}

// maxFollow bounds how far variables that name variables are followed.
const maxFollow = 20

// patchReader reads values out of one rule, as it is for one of its resources.
type patchReader struct {
	*rules.Definition
	typed *typed
	at    map[yamldoc.Position]*rules.Expression // where the CEL of patches begins
}

func newPatchReader(d *rules.Definition, typed *typed) *patchReader {
	r := &patchReader{d, typed, map[yamldoc.Position]*rules.Expression{}}
	for _, e := range d.Expressions {
		if e.Part == rules.PartPatch {
			r.at[e.Pos(0)] = e
		}
	}
	return r
}

// place is an expression within a string.
type place struct {
	start, end int // of ${…}
	expression *rules.Expression
}

// in finds the expressions in a string.
func (r *patchReader) in(n *yaml.Node) []place {
	var out []place
	for from := 0; ; {
		i := strings.Index(n.Value[from:], "${")
		if i < 0 {
			return out
		}
		start := from + i
		from = start + len("${")
		if e := r.at[r.Doc.PosIn(n, from)]; e != nil {
			from += len(e.Source) + len("}")
			out = append(out, place{start, min(from, len(n.Value)), e})
			from = min(from, len(n.Value))
		}
	}
}

// yaml reads a node of a patch.
func (r *patchReader) yaml(n *yaml.Node) *value {
	n = yamldoc.Resolve(n)
	out := &value{at: r.Doc.Pos(n)}
	switch n.Kind {
	case yaml.MappingNode:
		out.kind = mapping
		for _, p := range strictyaml.Pairs(n) {
			out.entries = append(out.entries, entry{p.Key.Value, len(r.in(p.Key)) > 0, r.Doc.Pos(p.Key), r.yaml(p.Value)})
		}
		return out
	case yaml.SequenceNode:
		out.kind = list
		for _, item := range n.Content {
			out.items = append(out.items, r.yaml(item))
		}
		return out
	}
	if places := r.in(n); len(places) > 0 {
		return r.template(n, places)
	}
	v, err := yamldoc.Value(n)
	if err != nil { // the loader has said so
		return &value{kind: computed, at: out.at, typ: expression.Dyn}
	}
	out.kind, out.literal = literal, v
	if text, ok := v.(string); ok {
		out.parts = []part{{text: text, at: func(offset int) yamldoc.Position { return r.Doc.PosIn(n, offset) }}}
	}
	return out
}

// template reads a string that holds CEL: one expression and nothing else is
// its result, everything else is a string.
func (r *patchReader) template(n *yaml.Node, places []place) *value {
	only := places[0]
	if len(places) == 1 && strings.TrimSpace(n.Value[:only.start]+n.Value[only.end:]) == "" {
		v := r.cel(only.expression, only.expression.Program.Syntax(), 0)
		if v.kind == computed {
			if checked, ok := r.typed.expressions[only.expression]; ok {
				v.typ = checked.Type
			}
		}
		return v
	}
	out := &value{kind: mixedText, at: r.Doc.Pos(n)}
	literalPart := func(start, end int) {
		if start < end {
			out.parts = append(out.parts, part{text: n.Value[start:end], at: func(offset int) yamldoc.Position { return r.Doc.PosIn(n, start+offset) }})
		}
	}
	end := 0
	for _, p := range places {
		literalPart(end, p.start)
		number := r.typed.expressions[p.expression].Type.Spell() == "int"
		out.parts = append(out.parts, part{computed: true, oneStep: number || oneStep(p.expression.Program.Syntax())})
		end = p.end
	}
	literalPart(end, len(n.Value))
	return out
}

// cel reads what an expression makes, as far as it is written out: Object{…},
// maps, lists and literals. Variables are followed.
func (r *patchReader) cel(e *rules.Expression, n *expression.Node, depth int) *value {
	out := &value{at: e.Pos(nodeStart(e.Source, n)), typ: n.Type}
	switch n.Kind {
	case expression.Struct:
		out.kind = mapping
		for i, name := range n.Fields {
			out.entries = append(out.entries, entry{name, false, e.Pos(fieldStart(e.Source, name, nodeStart(e.Source, n.Args[i]))), r.cel(e, n.Args[i], depth)})
		}
	case expression.Map:
		out.kind = mapping
		for i, key := range n.Keys {
			name, ok := key.Value.(string)
			ok = ok && key.Kind == expression.Literal
			out.entries = append(out.entries, entry{name, !ok, e.Pos(key.Start), r.cel(e, n.Args[i], depth)})
		}
	case expression.List:
		out.kind = list
		for _, item := range n.Args {
			out.items = append(out.items, r.cel(e, item, depth))
		}
	case expression.Literal:
		switch v := n.Value.(type) {
		case nil, string, bool, int64, float64:
			out.kind, out.literal, out.parts = literal, v, r.parts(e, n)
		}
	case expression.Ident:
		if variable := r.variable(n); variable != nil && depth < maxFollow {
			followed := r.cel(variable, variable.Program.Syntax(), depth+1)
			if followed.kind == computed {
				if checked, ok := r.typed.expressions[variable]; ok {
					followed.typ = checked.Type
				}
			}
			if followed.kind != mapping && followed.kind != list {
				followed.at = out.at // what is wrong is that it stands here
			}
			return followed
		}
	case expression.Macro:
		// map(v, f), map(v, p, f), transformList(i, v, f), transformList(i, v, p, f)
		if n.Name == "map" || n.Name == "transformList" {
			out.kind, out.repeated = list, true
			out.items = []*value{r.cel(e, n.Args[len(n.Args)-1], depth)}
		}
	case expression.Call:
		return r.celCall(e, n, depth, out)
	}
	return out
}

func (r *patchReader) celCall(e *rules.Expression, n *expression.Node, depth int, out *value) *value {
	switch {
	case n.Name == "dyn" && n.Target == nil && len(n.Args) == 1:
		return r.cel(e, n.Args[0], depth)
	case n.Name == "?:" && len(n.Args) == 3:
		out.kind = either
		out.items = []*value{r.cel(e, n.Args[1], depth), r.cel(e, n.Args[2], depth)}
	case n.Name == "+" && out.typ.String() == "string":
		out.kind = mixedText
		for _, operand := range n.Operands("+") {
			out.parts = append(out.parts, r.parts(e, operand)...)
		}
	case n.Name == "+" && strings.HasPrefix(out.typ.String(), "list("):
		out.kind = list
		for _, operand := range n.Args {
			for _, side := range r.cel(e, operand, depth).alternatives() {
				out.items = append(out.items, side.items...)
				out.repeated = out.repeated || side.kind != list || side.repeated
			}
		}
	case n.Name == "flatten" && n.Target != nil && len(n.Args) == 0:
		if inner := r.cel(e, n.Target, depth); inner.kind == list && len(inner.items) == 1 && inner.items[0].kind == list {
			inner.items[0].repeated = true
			return inner.items[0]
		}
	}
	return out
}

// parts are the pieces of a string in CEL.
func (r *patchReader) parts(e *rules.Expression, n *expression.Node) []part {
	text, ok := n.Value.(string)
	if n.Kind != expression.Literal || !ok {
		return []part{{computed: true, oneStep: oneStep(n)}}
	}
	// Only of a literal without escapes is it known where each byte stands.
	begin := n.Start
	if rest := e.Source[min(n.Start, len(e.Source)):]; len(rest) > 0 && strings.HasPrefix(rest[1:], text) {
		begin++
	} else {
		return []part{{text: text, at: func(int) yamldoc.Position { return e.Pos(n.Start) }}}
	}
	return []part{{text: text, at: func(offset int) yamldoc.Position { return e.Pos(begin + offset) }}}
}

// oneStep reports whether a text that is computed is one step of a JSON
// pointer: it surely holds no slash.
func oneStep(n *expression.Node) bool {
	switch {
	case n.Type.String() == "int", n.Is("string") && len(n.Args) == 1, n.Is("jsonpatch.escapeKey"):
		return true
	}
	return false
}

// variable is the expression of the variable that a node names.
func (r *patchReader) variable(n *expression.Node) *rules.Expression {
	name, ok := strings.CutPrefix(n.Name, "variables.")
	if !ok || !n.Declared {
		return nil
	}
	for _, e := range r.Expressions {
		if e.Part == rules.PartVariable && e.Name == name {
			return e
		}
	}
	return nil
}

// nodeStart is where a node begins: of Object.spec{…}, that is its name.
func nodeStart(source string, n *expression.Node) int {
	if before := strings.TrimRight(source[:min(n.Start, len(source))], " \t\r\n"); n.Kind == expression.Struct && strings.HasSuffix(before, n.Name) {
		return len(before) - len(n.Name)
	}
	return n.Start
}

// fieldStart is where the name of a field stands whose value begins at an
// offset: Name{field: value}.
func fieldStart(source, name string, value int) int {
	before := strings.TrimRight(source[:min(value, len(source))], " \t\r\n(")
	before = strings.TrimRight(strings.TrimSuffix(before, ":"), " \t\r\n")
	if strings.HasSuffix(before, name) {
		return len(before) - len(name)
	}
	return value
}
