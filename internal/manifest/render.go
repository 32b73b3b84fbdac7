package manifest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// oneLine as indentation keeps a flow collection on one line.
const oneLine = "\x00"

// renderer writes new values in the manner of a document. Line breaks are \n.
type renderer struct {
	json     bool
	eol      string
	unit     int // by which block mappings are indented in one another
	dashes   int // by which sequences are indented in mappings
	colon    string
	comma    string
	tab      string // indentation of JSON over several lines; "" for one line
	literals map[float64]string
}

// newRenderer returns a renderer for a document of a file.
func newRenderer(doc *yamldoc.Document, data []byte) renderer {
	start, end := doc.Span()
	text := data[start:end]
	r := renderer{json: doc.IsJSON(), eol: "\n", unit: -1, dashes: -1, colon: ": ", comma: ", "}
	if i := bytes.IndexAny(text, "\r\n"); i >= 0 && text[i] == '\r' {
		r.eol = "\r"
		if i+1 < len(text) && text[i+1] == '\n' {
			r.eol = "\r\n"
		}
	}
	if doc.Root.Kind == yaml.SequenceNode {
		r.dashes = doc.Root.Column - 1 // an item of a list, on its own
	}
	r.learn(doc.Root)
	if r.unit < 0 {
		r.unit = 2
	}
	r.dashes = max(r.dashes, 0)
	if r.json {
		r.learnJSON(doc, text, indentOf(data[doc.LineStart(start):start]))
	}
	return r
}

// learn takes the indentation from the first nested collections of the document, and notes the integers that no Go value can hold: should one have
// to be written again, with a block that is replaced, it must come out with all its digits.
func (r *renderer) learn(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Style == 0 && len(n.Value) > 18 && strings.Trim(n.Value, "+-0123456789") == "" {
		if _, err := strconv.ParseInt(n.Value, 10, 64); err != nil {
			if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
				r.note(f, n.Value)
			}
		}
	}
	for i := 1; n.Kind == yaml.MappingNode && isBlock(n) && i < len(n.Content); i += 2 {
		k, v := n.Content[i-1], n.Content[i]
		if !isBlock(v) || v.Line == k.Line {
			continue
		}
		if by := v.Column - k.Column; v.Kind == yaml.SequenceNode && r.dashes < 0 {
			r.dashes = by
		} else if v.Kind == yaml.MappingNode && r.unit < 0 && by > 0 {
			r.unit = by
		}
	}
	for _, c := range n.Content {
		r.learn(c)
	}
}

// note remembers how a number is written. Two notations of one float64 cannot be told apart: then none is good, and the text that
// would be written does not parse.
func (r *renderer) note(f float64, literal string) {
	if r.literals == nil {
		r.literals = map[float64]string{}
	}
	if old, ok := r.literals[f]; ok && old != literal {
		literal = "{ambiguous"
	}
	r.literals[f] = literal
}

// learnJSON takes the indentation from the second line of the text, less that of its first, and the spaces around colons.
func (r *renderer) learnJSON(doc *yamldoc.Document, text []byte, first string) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		second := indentOf(text[i+1:])
		r.tab = strings.TrimPrefix(second, first)
		if r.tab == "" {
			r.tab = second
		}
	}
	if i := bytes.IndexByte(text, ':'); i >= 0 && len(doc.Root.Content) > 0 {
		k, ok := doc.Extent(doc.Root.Content[0])
		start, _ := doc.Span()
		if at := k.End - start; ok && at+1 < len(text) && text[at] == ':' && text[at+1] != ' ' {
			r.colon, r.comma = ":", ","
		}
	}
}

// indentOf returns the white space that a line starts with.
func indentOf(line []byte) string { return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]) }

func spaces(n int) string { return strings.Repeat(" ", n) }

// block returns what follows the colon or dash of a block slot: " value", or lines that begin with \n.
func (r renderer) block(v any, s slot) string {
	if !isCollection(v) {
		return " " + r.inline(v, nil, s)
	}
	_, isList := v.([]any)
	indent, start := s.indent+r.unit, ""
	switch {
	case s.kind == listSlot:
		indent, start = s.indent+2, " "
	case isList:
		indent = s.indent + r.dashes
	}
	if start == "" {
		start = "\n" + spaces(indent)
	}
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		values := make([]any, len(keys))
		for i, k := range keys {
			values[i] = v[k]
		}
		return start + r.entries(keys, values, indent)
	case []any:
		return start + r.entries(nil, v, indent)
	}
	return ""
}

// entries renders the pairs of a block mapping, or the elements of a block sequence when keys is nil. The first line is not indented.
func (r renderer) entries(keys []string, values []any, indent int) string {
	lines := make([]string, len(values))
	for i, v := range values {
		if keys == nil {
			lines[i] = "-" + r.block(v, slot{kind: listSlot, indent: indent})
		} else {
			lines[i] = r.key(keys[i], false) + ":" + r.block(v, slot{kind: mapSlot, indent: indent})
		}
	}
	return strings.Join(lines, "\n"+spaces(indent))
}

// inline renders a value that starts on the line of its key, in the manner of the node it replaces, which may be nil.
func (r renderer) inline(v any, n *yaml.Node, s slot) string {
	text, ok := v.(string)
	if !ok {
		return r.flow(v, n, oneLine)
	}
	if strings.Contains(text, "\n") && (n == nil || n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0) {
		indent := s.indent + r.unit
		if s.kind == listSlot {
			indent = s.indent + 2
		}
		if block, ok := literalBlock(text, indent); ok {
			return block
		}
	}
	return r.str(text, n, false)
}

// flow renders a value for the inside of brackets. indent is the white space of the line that it starts on.
func (r renderer) flow(v any, n *yaml.Node, indent string) string {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		for i, k := range keys {
			keys[i] = r.key(k, true) + r.colon + r.flow(v[k], nil, r.deeper(indent))
		}
		return "{" + r.lines(keys, indent) + "}"
	case []any:
		elements := make([]string, len(v))
		for i, e := range v {
			elements[i] = r.flow(e, nil, r.deeper(indent))
		}
		return "[" + r.lines(elements, indent) + "]"
	case string:
		return r.str(v, n, true)
	case float64:
		if literal, ok := r.literals[v]; ok {
			return literal
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "{unwritable" // normalize has excluded it; would not parse
	}
	return string(b)
}

func (r renderer) deeper(indent string) string {
	if indent == oneLine {
		return oneLine
	}
	return indent + r.tab
}

// lines joins the entries of a flow collection.
func (r renderer) lines(entries []string, indent string) string {
	if len(entries) == 0 || r.tab == "" || indent == oneLine {
		return strings.Join(entries, r.comma)
	}
	inner := "\n" + indent + r.tab
	return inner + strings.Join(entries, ","+inner) + "\n" + indent
}

func (r renderer) key(k string, flow bool) string {
	if strings.Contains(k, "\n") {
		return doubleQuoted(k)
	}
	return r.str(k, nil, flow)
}

// str renders a string on one line, quoted as the node it replaces, or where it must be.
func (r renderer) str(s string, n *yaml.Node, flow bool) string {
	var style yaml.Style
	if n != nil && n.Kind == yaml.ScalarNode && yamldoc.IsString(n) {
		style = n.Style
	}
	switch {
	case r.json || style&yaml.DoubleQuotedStyle != 0:
		return doubleQuoted(s)
	case style&yaml.SingleQuotedStyle != 0 && isPrintable(s):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case plainSafe(s, flow):
		return s
	}
	return doubleQuoted(s)
}
