package manifest

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// edit replaces a byte range of the file. An empty range is an insertion.
type edit struct {
	start, end int
	text       string
}

// editor turns the difference between two values of a document into text edits. Its methods return false when they cannot tell how: the caller then
// tries a coarser edit. What it returns must be verified.
type editor struct {
	doc        *yamldoc.Document
	data       []byte
	start, end int // of the document
	limits     map[*yaml.Node]int
	r          renderer
	edits      []edit
}

func newEditor(doc *yamldoc.Document, data []byte, changes []change) *editor {
	e := &editor{doc: doc, data: data, limits: make(map[*yaml.Node]int, len(changes))}
	e.start, e.end = doc.Span()
	for _, c := range changes {
		e.limits[c.object.node] = c.depth
	}
	e.r = newRenderer(doc, data)
	return e
}

func (e *editor) edit(old, want any) bool {
	return e.value(e.doc.Root, old, want, anyDepth, slot{kind: rootSlot})
}

// apply returns the document's text with the edits.
func (e *editor) apply() ([]byte, bool) {
	slices.SortStableFunc(e.edits, func(a, b edit) int { return a.start - b.start })
	var out bytes.Buffer
	out.Grow(e.end - e.start + 256)
	at := e.start
	for _, c := range e.edits {
		if c.start < at || c.end < c.start || c.end > e.end {
			return nil, false
		}
		out.Write(e.data[at:c.start])
		out.WriteString(c.text)
		at = c.end
	}
	out.Write(e.data[at:e.end])
	if k := len(e.edits); k > 0 && e.edits[k-1].end == e.end && strings.Contains(e.edits[k-1].text, "|"+e.r.eol) && !bytes.HasSuffix(out.Bytes(), []byte(e.r.eol)) {
		out.WriteString(e.r.eol) // a literal block holds its last line break only if there is one
	}
	return out.Bytes(), true
}

// add records an edit. text has \n for line breaks, whatever the file has.
func (e *editor) add(start, end int, text string) {
	if e.r.eol != "\n" {
		text = strings.ReplaceAll(text, "\n", e.r.eol)
	}
	e.edits = append(e.edits, edit{start, end, text})
}

type slotKind int

const (
	rootSlot slotKind = iota
	mapSlot           // the value in a block mapping
	listSlot          // an element of a block sequence
	flowSlot          // within {…} or […]
)

// slot is the place that a value stands in.
type slot struct {
	kind   slotKind
	indent int // of the block mapping's keys or the sequence's dashes
	after  int // offset behind the colon or dash
}

// value changes the value at n from old to want. depth is how many levels may be edited in place; at 0 the value is replaced whole.
func (e *editor) value(n *yaml.Node, old, want any, depth int, s slot) bool {
	if jsonvalue.Equal(old, want) {
		return true
	}
	if limit, ok := e.limits[n]; ok {
		depth = limit
	}
	if depth > 0 && n.Kind != yaml.AliasNode {
		switch w := want.(type) {
		case map[string]any:
			if o, ok := old.(map[string]any); ok && n.Kind == yaml.MappingNode && (len(n.Content) > 0 || e.holdsComment(n)) {
				return e.mapping(n, o, w, depth-1, s)
			}
		case []any:
			if o, ok := old.([]any); ok && n.Kind == yaml.SequenceNode && len(n.Content) == len(o) && (len(o) > 0 || e.holdsComment(n)) {
				return e.list(n, o, w, depth-1, s)
			}
		}
	}
	if depth == 0 && isBlock(n) {
		return e.rebuild(n, old, want, s)
	}
	return e.replace(n, want, s)
}

// rebuild replaces a block collection by one made of its own nodes, so that its comments and the order of its keys stay.
func (e *editor) rebuild(n *yaml.Node, old, want any, s slot) bool {
	x, ok := e.doc.Extent(n)
	if !ok || s.kind == rootSlot || s.kind == flowSlot || !isCollection(want) {
		return e.replace(n, want, s)
	}
	text, ok := rebuilder{e.r}.block(n, old, want, s)
	if !ok {
		return e.replace(n, want, s)
	}
	return e.overwriteBlock(x, text, s)
}

// replace writes a value over another one.
func (e *editor) replace(n *yaml.Node, want any, s slot) bool {
	x, ok := e.doc.Extent(n)
	if !ok {
		return false
	}
	switch {
	case s.kind == rootSlot:
		return false // nothing is left of the notation then: the document is rebuilt
	case s.kind == flowSlot:
		text := e.r.flow(want, n, e.lineIndent(x.Outer))
		if x.Outer == x.End && x.Outer > 0 && e.data[x.Outer-1] == ':' {
			text = " " + text
		}
		e.add(x.Outer, x.End, text)
		return true
	case isBlock(n):
		return e.overwriteBlock(x, e.r.block(want, s), s)
	}
	if isCollection(want) && !isFilledFlow(n) {
		return e.replaceByBlock(x, want, s)
	}
	return e.replaceInline(n, x, want, s)
}

// holdsComment reports whether a collection without entries, {} or [], holds a comment.
func (e *editor) holdsComment(n *yaml.Node) bool {
	x, ok := e.doc.Extent(n)
	return ok && len(n.Content) == 0 && bytes.IndexByte(e.data[x.Start:x.End], '#') >= 0
}

func isBlock(n *yaml.Node) bool {
	return (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && n.Style&yaml.FlowStyle == 0
}

// isFilledFlow reports whether n shows that its author writes collections in one line here; {} and [] do not.
func isFilledFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 && len(n.Content) > 0 }

// isCollection reports whether v is a collection with something in it.
func isCollection(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// replaceInline replaces what starts on the line of its key by what does so too. The rest of a block scalar goes below the line, behind a comment on it.
func (e *editor) replaceInline(n *yaml.Node, x yamldoc.Extent, want any, s slot) bool {
	text := e.r.inline(want, n, s)
	if x.Outer == x.End {
		text = " " + text
	}
	head, body, isLong := strings.Cut(text, "\n")
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		// The comment of a block scalar stands within it, behind its | or >.
		header := string(e.data[x.Start:min(e.lineEnd(x.Start), x.End)])
		if i := strings.Index(header, " #"); i >= 0 {
			head += header[len(strings.TrimRight(header[:i], " \t")):]
		}
	}
	if !isLong {
		e.add(x.Outer, x.End, head)
		return true
	}
	e.add(x.Outer, x.End, head)
	e.add(e.lineEnd(x.End), e.lineEnd(x.End), "\n"+body)
	return true
}

// replaceByBlock replaces a scalar, {} or [] by a block below its line. A comment on the line stays there.
func (e *editor) replaceByBlock(x yamldoc.Extent, want any, s slot) bool {
	if len(bytes.TrimRight(e.data[s.after:x.Outer], " \t")) > 0 {
		return false // the value starts on a later line than its key
	}
	text := e.r.block(want, s)
	head := ""
	if s.kind == listSlot {
		head, text, _ = strings.Cut(text, "\n")
		if text != "" {
			text = "\n" + text
		}
	}
	e.add(s.after, x.End, head)
	e.add(e.lineEnd(x.End), e.lineEnd(x.End), text)
	return true
}

// overwriteBlock replaces a block collection, comments in it included, by what renderer.block returned. A comment on the line of its key stays.
func (e *editor) overwriteBlock(x yamldoc.Extent, text string, s slot) bool {
	end := e.lineEnd(x.End)
	keyLine := e.lineEnd(s.after)
	if s.kind == listSlot || x.Outer != x.Start || x.Start < keyLine {
		e.add(s.after, end, text)
		return true
	}
	if strings.HasPrefix(text, "\n") {
		e.add(keyLine, end, text)
		return true
	}
	head, body, isLong := strings.Cut(text, "\n")
	if isLong {
		body = "\n" + body
	}
	e.add(s.after, s.after, head)
	e.add(keyLine, end, body)
	return true
}

// lineStart returns the start of the line that holds at.
func (e *editor) lineStart(at int) int {
	return max(e.doc.LineStart(at), e.start)
}

// lineEnd returns the end of the line that holds at, before its line break.
func (e *editor) lineEnd(at int) int {
	return min(e.doc.LineEnd(at), e.end)
}

// nextLine returns the start of the line after the one that holds at.
func (e *editor) nextLine(at int) int {
	at = e.lineEnd(at)
	if at+1 < e.end && e.data[at] == '\r' && e.data[at+1] == '\n' {
		at++
	}
	return min(at+1, e.end)
}

// lineIndent returns the white space that the line of at starts with.
func (e *editor) lineIndent(at int) string {
	line := e.data[e.doc.LineStart(at):at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// column returns the number of characters before at on its line.
func (e *editor) column(at int) int {
	return utf8.RuneCount(e.data[e.lineStart(at):at])
}

// alone reports whether only spaces stand before at on its line.
func (e *editor) alone(at int) bool {
	return len(bytes.Trim(e.data[e.lineStart(at):at], " ")) == 0
}

// withComments moves the start of a line up over the comment lines directly above it that are indented alike: they belong to it.
func (e *editor) withComments(at, indent int) int {
	for at > e.start {
		above := e.lineStart(at - 1)
		if at >= 2 && e.data[at-1] == '\n' && e.data[at-2] == '\r' {
			above = e.lineStart(at - 2)
		}
		line := e.data[above:at]
		if len(line) <= indent || line[indent] != '#' || len(bytes.Trim(line[:indent], " ")) > 0 {
			break
		}
		at = above
	}
	return at
}

// skipSpace moves behind white space, line breaks and comments.
func (e *editor) skipSpace(at int) int {
	for at < e.end {
		switch c := e.data[at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			at++
		case c == '#':
			at = e.nextLine(at)
		default:
			return at
		}
	}
	return at
}
