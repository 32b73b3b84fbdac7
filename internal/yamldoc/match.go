package yamldoc

import (
	"encoding/hex"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// segment says that the bytes of a value from value on stand in the file from source on, until the next segment.
type segment struct{ value, source int }

// matcher walks over the notation of a scalar and its value side by side. yaml.v3 tells where a scalar starts but not where it ends, nor where
// in between a character stands; going along with the known value answers both, and proves the answer: any difference clears ok.
type matcher struct {
	data     []byte // up to the end of the document
	at       int
	value    string
	v        int // bytes of value that have been found
	segments []segment
	ok       bool
	json     bool

	end   int // behind the scalar
	last  int // behind its last character, before a closing quote
	block bool
}

// match finds a scalar in the text.
func (d *Document) match(n *yaml.Node) (matcher, bool) {
	m := matcher{data: d.src.data[:d.end], value: n.Value, ok: true, json: d.json}
	at, ok := d.offset(n)
	if !ok || at > d.end {
		return m, false
	}
	m.at = d.skipProperties(at)
	style := n.Style & quotedStyles
	if n.Value == "" && style == 0 {
		for range 2 {
			if at < d.end && (m.data[at] == '&' || m.data[at] == '!') {
				m.end = d.skipWord(at)
				at = d.skipSpace(m.end)
			} else if m.end == 0 {
				m.end = at
			}
		}
		m.last = m.end
		return m, true
	}
	switch style {
	case yaml.DoubleQuotedStyle:
		m.quoted('"')
	case yaml.SingleQuotedStyle:
		m.quoted('\'')
	case yaml.LiteralStyle, yaml.FoldedStyle:
		m.block = true
		m.blockScalar(style == yaml.FoldedStyle)
	default:
		m.plain()
	}
	return m, m.ok && m.v == len(m.value)
}

// put takes s as the next part of the value; it stands at source.
func (m *matcher) put(s string, source int) {
	if !strings.HasPrefix(m.value[m.v:], s) {
		m.ok = false
		return
	}
	if k := len(m.segments); k == 0 || m.segments[k-1].source-m.segments[k-1].value != source-m.v {
		m.segments = append(m.segments, segment{m.v, source})
	}
	m.v += len(s)
}

func (m *matcher) peek() byte {
	if m.at < len(m.data) {
		return m.data[m.at]
	}
	return 0
}

// char takes one character as it is.
func (m *matcher) char() {
	_, size := utf8.DecodeRune(m.data[m.at:])
	m.put(string(m.data[m.at:m.at+size]), m.at)
	m.at += size
}

// fold takes white space within a plain or quoted scalar: as it is within a line; around line breaks it becomes one space, or one
// line break less than there are.
func (m *matcher) fold() {
	start := m.at
	for isBlank(m.peek()) {
		m.at++
	}
	if !isBreak(m.peek()) {
		m.put(string(m.data[start:m.at]), start)
		return
	}
	first := m.at
	m.lineBreak()
	if breaks := m.emptyLines(); breaks == 0 {
		m.put(" ", first)
	}
}

// emptyLines takes the line breaks of empty lines and the white space before the next text.
func (m *matcher) emptyLines() (breaks int) {
	for {
		for isBlank(m.peek()) {
			m.at++
		}
		if !isBreak(m.peek()) {
			return breaks
		}
		m.put("\n", m.at)
		m.lineBreak()
		breaks++
	}
}

func (m *matcher) lineBreak() {
	if m.peek() == '\r' && m.at+1 < len(m.data) && m.data[m.at+1] == '\n' {
		m.at++
	}
	m.at++
}

func (m *matcher) plain() {
	for m.ok && m.v < len(m.value) && m.at < len(m.data) {
		if c := m.peek(); isBlank(c) || isBreak(c) {
			m.fold()
		} else {
			m.char()
		}
	}
	m.end, m.last = m.at, m.at
}

func (m *matcher) quoted(quote byte) {
	if m.peek() != quote {
		m.ok = false
		return
	}
	for m.at++; m.ok && m.at < len(m.data); {
		switch c := m.peek(); {
		case c == quote && quote == '\'' && m.at+1 < len(m.data) && m.data[m.at+1] == quote:
			m.put("'", m.at)
			m.at += 2
		case c == quote:
			m.last = m.at
			m.at++
			m.end = m.at
			return
		case c == '\\' && quote == '"':
			m.escape()
		case isBlank(c) || isBreak(c):
			m.fold()
		default:
			m.char()
		}
	}
	m.ok = false
}

var escapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b", ' ': " ", '"': `"`, '\'': "'",
	'/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

func (m *matcher) escape() {
	start := m.at
	m.at++
	c := m.peek()
	if isBreak(c) {
		m.lineBreak()
		m.emptyLines()
		return
	}
	m.at++
	if s, ok := escapes[c]; ok {
		m.put(s, start)
		return
	}
	digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if !ok {
		m.ok = false
		return
	}
	r := m.hex(digits)
	if m.json && utf16.IsSurrogate(r) {
		low := rune(-1)
		if m.at+6 <= len(m.data) && m.data[m.at] == '\\' && m.data[m.at+1] == 'u' {
			m.at += 2
			low = m.hex(4)
			if utf16.DecodeRune(r, low) == utf8.RuneError {
				m.at -= 6 // not a pair: its own character
			}
		}
		r = utf16.DecodeRune(r, low)
	}
	m.put(string(r), start)
}

func (m *matcher) hex(digits int) rune {
	if m.at+digits > len(m.data) {
		m.ok = false
		return 0
	}
	text := strings.Repeat("0", 8-digits) + string(m.data[m.at:m.at+digits])
	b, err := hex.DecodeString(text)
	if err != nil {
		m.ok = false
		return 0
	}
	m.at += digits
	return rune(b[0])<<24 | rune(b[1])<<16 | rune(b[2])<<8 | rune(b[3])
}

// blockScalar takes a literal or folded block from its | or > on.
func (m *matcher) blockScalar(folded bool) {
	if c := m.peek(); c != '|' && c != '>' {
		m.ok = false
		return
	}
	keep := false
	for m.at < len(m.data) && !isBreak(m.peek()) && m.peek() != '#' {
		keep = keep || m.peek() == '+'
		m.at++
		if !isBlank(m.peek()) {
			m.end = m.at
		}
	}
	for m.at < len(m.data) && !isBreak(m.peek()) {
		m.at++ // a comment
	}
	m.last = m.end
	if m.value == "" {
		return
	}
	m.lineBreak()
	indent := m.indentation()
	for m.ok && m.v < len(m.value) {
		if m.at >= len(m.data) || indent < 0 {
			m.ok = false
			return
		}
		m.blockLine(indent, folded, keep)
	}
}

// indentation is that of the first line with text, less what of it belongs to the value.
func (m *matcher) indentation() int {
	at, spaces := m.at, 0
	for ; at < len(m.data); at++ {
		if c := m.data[at]; c == ' ' {
			spaces++
		} else if isBreak(c) {
			spaces = 0
		} else {
			break
		}
	}
	text := strings.TrimLeft(m.value, "\n")
	if strings.Trim(text, " \n") == "" {
		return spaces // nothing but empty lines
	}
	return spaces - (len(text) - len(strings.TrimLeft(text, " ")))
}

// blockLine takes one line with the line break after it; in folded blocks with those of the empty lines that follow.
func (m *matcher) blockLine(indent int, folded, keep bool) {
	for i := 0; i < indent && m.peek() == ' '; i++ {
		m.at++
	}
	for m.ok && m.v < len(m.value) && m.at < len(m.data) && !isBreak(m.peek()) {
		m.char()
	}
	m.end, m.last = m.at, m.at
	if m.v == len(m.value) {
		return
	}
	if m.at >= len(m.data) {
		m.ok = false
		return
	}
	if !folded {
		m.put("\n", m.at)
		m.lineBreak()
		return
	}
	breaks := m.blockBreaks(indent)
	newlines := len(m.value[m.v:]) - len(strings.TrimLeft(m.value[m.v:], "\n"))
	if newlines == 0 {
		m.put(" ", breaks[0])
		return
	}
	// The first break is dropped between two lines that fold; trailing ones are dropped unless the block keeps them.
	skip := 0
	if newlines < len(breaks) && m.v+newlines < len(m.value) {
		skip = len(breaks) - newlines
	}
	for i := range newlines {
		if skip+i >= len(breaks) {
			m.ok = false
			return
		}
		m.put("\n", breaks[skip+i])
	}
	if keep && m.v == len(m.value) {
		m.end = breaks[len(breaks)-1]
		m.last = m.end
	}
}

// blockBreaks takes the break of this line and those of the empty lines after it, and returns where they stand.
func (m *matcher) blockBreaks(indent int) []int {
	breaks := []int{m.at}
	m.lineBreak()
	for {
		at := m.at
		for i := 0; i < indent && at < len(m.data) && m.data[at] == ' '; i++ {
			at++
		}
		if at >= len(m.data) || !isBreak(m.data[at]) {
			return breaks
		}
		m.at = at
		breaks = append(breaks, at)
		m.lineBreak()
	}
}
