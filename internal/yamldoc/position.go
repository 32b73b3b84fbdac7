package yamldoc

import (
	"bytes"
	"sort"

	"go.yaml.in/yaml/v3"
)

// Pos returns where a node of this document starts, its tag or anchor included. The position of a node that came from elsewhere is
// its own line and column.
func (d *Document) Pos(n *yaml.Node) Position {
	if at, ok := d.offset(n); ok {
		return d.src.position(at)
	}
	return Position{d.File, max(n.Line, 1), max(n.Column, 1)}
}

// offset returns where a node starts in the text. Columns of JSON count from the start of the line, even if other values stand on it.
func (d *Document) offset(n *yaml.Node) (int, bool) {
	if d.json {
		return d.src.offset(n.Line, n.Column, 0)
	}
	return d.src.offset(n.Line, n.Column, d.start)
}

// PosIn returns where in the file the byte at offset of a scalar's value stands, whatever the scalar's style: escapes, folded lines,
// block indentation and CRLF are accounted for. offset = len(value) is the place behind the last character. Aliases are followed. Where no place can
// be told it is the start of the node.
func (d *Document) PosIn(n *yaml.Node, offset int) Position {
	n = Resolve(n)
	if n.Kind != yaml.ScalarNode {
		return d.Pos(n)
	}
	m, ok := d.match(n)
	if !ok || offset < 0 || offset > len(n.Value) {
		return d.Pos(n)
	}
	if offset == len(n.Value) && !m.block {
		return d.src.position(m.last)
	}
	i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].value > offset }) - 1
	if i < 0 {
		return d.Pos(n)
	}
	return d.src.position(m.segments[i].source + offset - m.segments[i].value)
}

// Line returns the text of a line of the file (1-based) without its line break; "" outside of the file.
func (d *Document) Line(n int) string {
	if n < 1 || n > len(d.src.lines) {
		return ""
	}
	end := len(d.src.data)
	if n < len(d.src.lines) {
		end = d.src.lines[n]
	}
	return string(bytes.TrimRight(d.src.data[d.src.lines[n-1]:end], "\r\n"))
}

// LineStart returns the start of the line that holds the byte at offset of the text.
func (d *Document) LineStart(offset int) int { return d.src.lines[lineIndex(d.src.lines, offset)] }

// LineEnd returns the end of the line that holds the byte at offset of the text, before its line break.
func (d *Document) LineEnd(offset int) int {
	i := lineIndex(d.src.lines, offset) + 1
	if i == len(d.src.lines) {
		return len(d.src.data)
	}
	end := d.src.lines[i] - 1
	if end > 0 && d.src.data[end] == '\n' && d.src.data[end-1] == '\r' {
		end--
	}
	return max(end, d.src.lines[i-1])
}

// Extent is the byte range of a node in the text of the file (less a leading byte-order mark).
type Extent struct {
	// Outer is the start with tag and anchor, Start that of the content. They are equal for most nodes.
	Outer, Start int
	// End is the offset behind the last character: behind the closing quote or bracket, behind the last entry of a block collection, behind the last
	// line of a block scalar without its line break. Comments and white space that follow are not part of it.
	End int
}

// Extent returns the byte range of a node of this document; ok is false where it cannot be told for certain, as for some exotic notations.
func (d *Document) Extent(n *yaml.Node) (e Extent, ok bool) {
	at, ok := d.offset(n)
	if !ok || at > d.end {
		return Extent{}, false
	}
	e.Outer, e.Start = at, d.skipProperties(at)
	switch n.Kind {
	case yaml.AliasNode:
		e.End = at + 1 + len(n.Value)
		return e, e.End <= d.end && string(d.src.data[at:e.End]) == "*"+n.Value
	case yaml.ScalarNode:
		m, ok := d.match(n)
		if n.Value == "" && n.Style&quotedStyles == 0 {
			e.Start = m.end // nothing stands there: not even the white space behind a tag belongs to it
		}
		e.End = m.end
		return e, ok
	}
	e.End = e.Start
	if len(n.Content) > 0 {
		last, ok := d.Extent(n.Content[len(n.Content)-1])
		if !ok {
			return Extent{}, false
		}
		e.End = last.End
	}
	if n.Style&yaml.FlowStyle == 0 {
		return e, len(n.Content) > 0
	}
	return d.closeFlow(n, e)
}

// closeFlow moves the end of a flow collection from its last element to its closing bracket.
func (d *Document) closeFlow(n *yaml.Node, e Extent) (Extent, bool) {
	opening, closing := byte('['), byte(']')
	if n.Kind == yaml.MappingNode {
		opening, closing = '{', '}'
	}
	if e.Start >= d.end || d.src.data[e.Start] != opening {
		return Extent{}, false // [a: b] holds a mapping without brackets
	}
	if len(n.Content) == 0 {
		e.End++
	}
	for comma := false; e.End < d.end; {
		e.End = d.skipSpace(e.End)
		if e.End >= d.end {
			break
		}
		switch c := d.src.data[e.End]; {
		case c == closing:
			e.End++
			return e, true
		case c == ',' && !comma:
			comma = true
			e.End++
		default:
			return Extent{}, false
		}
	}
	return Extent{}, false
}

// skipSpace moves behind white space, line breaks and comments.
func (d *Document) skipSpace(at int) int {
	data := d.src.data
	for at < d.end {
		switch c := data[at]; {
		case isBlank(c) || isBreak(c):
			at++
		case c == '#' && at > 0 && (isBlank(data[at-1]) || isBreak(data[at-1])):
			at = nextLine(data[:d.end], at)
		default:
			return at
		}
	}
	return at
}

// skipProperties moves behind anchor and tag, and the white space after them.
func (d *Document) skipProperties(at int) int {
	for range 2 {
		if at >= d.end || d.src.data[at] != '&' && d.src.data[at] != '!' {
			break
		}
		at = d.skipSpace(d.skipWord(at))
	}
	return at
}

func (d *Document) skipWord(at int) int {
	for at < d.end && !isBlank(d.src.data[at]) && !isBreak(d.src.data[at]) {
		at++
	}
	return at
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
func isBreak(c byte) bool { return c == '\n' || c == '\r' }
