package expression

import (
	"strings"
)

// scanned is a source in which the text of comments is blank and what stands
// within string literals is known, so that parts can be cut out of it.
type scanned struct {
	text   string
	quoted []bool // of each byte: it belongs to a string literal
}

// scan finds comments and string literals, of all kinds that CEL has.
func scan(source string) scanned {
	s := scanned{quoted: make([]bool, len(source))}
	text := []byte(source)
	for i := 0; i < len(source); {
		switch c := source[i]; {
		case strings.HasPrefix(source[i:], "//"):
			for ; i < len(source) && source[i] != '\n'; i++ {
				text[i] = ' '
			}
		case c == '\'' || c == '"':
			end := endOfString(source, i)
			for ; i < end; i++ {
				s.quoted[i] = true
			}
		default:
			i++
		}
	}
	s.text = string(text)
	return s
}

// endOfString returns the offset behind the string literal whose quote stands at
// an offset.
func endOfString(source string, at int) int {
	quote := source[at : at+1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(source[at:], three) {
		quote = three
	}
	raw := isRaw(source[:at])
	for i := at + len(quote); i < len(source); i++ {
		switch {
		case source[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(source[i:], quote):
			return i + len(quote)
		}
	}
	return len(source)
}

// isRaw reports whether a prefix r or br ends what stands before a quote.
func isRaw(before string) bool {
	word := len(before)
	for word > 0 && isWord(before[word-1]) {
		word--
	}
	prefix := strings.ToLower(before[word:])
	return prefix == "r" || prefix == "br"
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

// is reports whether an operator stands at an offset within a part.
func (s scanned) is(operator string, at, start, end int) bool {
	return start <= at && at+len(operator) <= end && !s.quoted[at] && s.text[at:at+len(operator)] == operator
}

// trim takes white space and parentheses off both ends of a part.
func (s scanned) trim(start, end int) (int, int) {
	for {
		for start < end && isSpace(s.text[start]) {
			start++
		}
		for end > start && isSpace(s.text[end-1]) {
			end--
		}
		if start == end || s.text[start] != '(' || s.closing(start, end) != end-1 {
			return start, end
		}
		start, end = start+1, end-1
	}
}

// closing returns the offset of the bracket that closes the one at an offset;
// -1 if there is none before the end.
func (s scanned) closing(at, end int) int {
	depth := 0
	for i := at; i < end; i++ {
		if s.quoted[i] {
			continue
		}
		switch s.text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// colon returns the offset of the colon that belongs to the question mark at an
// offset; -1 if there is none. What is between can hold another ?: in brackets
// only.
func (s scanned) colon(at, end int) int {
	for i := at + 1; i < end; i++ {
		if s.quoted[i] {
			continue
		}
		switch s.text[i] {
		case ':':
			return i
		case '(', '[', '{':
			if i = s.closing(i, end); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// behind moves over a run of one operator, such as !!!.
func (s scanned) behind(at int, operator byte) int {
	for at < len(s.text) && (s.text[at] == operator || isSpace(s.text[at])) {
		at++
	}
	return at
}

// line returns a part on one line: white space between tokens becomes a blank.
func (s scanned) line(start, end int) string {
	var b strings.Builder
	for i := start; i < end; i++ {
		if c := s.text[i]; s.quoted[i] || !isSpace(c) {
			b.WriteByte(c)
		} else if i == start || s.quoted[i-1] || !isSpace(s.text[i-1]) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
