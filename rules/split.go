package rules

import "fmt"

// segment is a piece of a template: literal text, or the CEL between ${ and }.
type segment struct {
	text   string
	cel    bool
	offset int // of text in the string, in bytes
}

// splitError says where a template is broken.
type splitError struct {
	offset int
	msg    string
}

func (e *splitError) Error() string { return fmt.Sprintf("at byte %d: %s", e.offset, e.msg) }

// split cuts a string into literal text and expressions. `$${` stands for a
// literal `${`; braces, quotes and comments inside the CEL are understood.
func split(s string) ([]segment, error) {
	var out []segment
	literal := make([]byte, 0, len(s))
	start := 0
	flush := func() {
		if len(literal) > 0 {
			out = append(out, segment{text: string(literal), offset: start})
			literal = literal[:0]
		}
	}
	for i := 0; i < len(s); {
		switch {
		case hasPrefixAt(s, i, "$${"):
			if len(literal) == 0 {
				start = i
			}
			literal = append(literal, "${"...)
			i += 3
		case hasPrefixAt(s, i, "${"):
			flush()
			end, err := closing(s, i)
			if err != nil {
				return nil, err
			}
			out = append(out, segment{text: s[i+2 : end], cel: true, offset: i + 2})
			i = end + 1
		default:
			if len(literal) == 0 {
				start = i
			}
			literal = append(literal, s[i])
			i++
		}
	}
	flush()
	return out, nil
}

// closing finds the } that ends the template whose ${ stands at open.
func closing(s string, open int) (int, error) {
	depth := 0
	for i := open + 2; i < len(s); {
		switch c := s[i]; {
		case c == '{':
			depth++
			i++
		case c == '}' && depth == 0:
			return i, nil
		case c == '}':
			depth--
			i++
		case c == '"' || c == '\'':
			end, ok := skipString(s, i)
			if !ok {
				return 0, &splitError{i, fmt.Sprintf("the string that begins with %c inside ${…} is not closed: %s", c, cutOff)}
			}
			i = end
		case hasPrefixAt(s, i, "//"):
			for i < len(s) && s[i] != '\n' {
				i++
			}
		default:
			i++
		}
	}
	return 0, &splitError{open, "${ is not closed by }: " + cutOff}
}

// cutOff explains the usual reason for half a template.
const cutOff = "if the value holds `: `, ` #`, quotes or braces, YAML may have cut it off; quote it or use a |- block"

// skipString returns the offset behind a CEL string literal that begins at i:
// '…', "…", or with three quotes, raw (r'…') or not.
func skipString(s string, i int) (int, bool) {
	raw := rawPrefix(s, i)
	quote := s[i : i+1]
	if triple := quote + quote + quote; hasPrefixAt(s, i, triple) {
		quote = triple
	}
	for j := i + len(quote); j < len(s); {
		switch {
		case s[j] == '\\' && !raw:
			j += 2
		case hasPrefixAt(s, j, quote):
			return j + len(quote), true
		case len(quote) == 1 && s[j] == '\n':
			return 0, false
		default:
			j++
		}
	}
	return 0, false
}

// rawPrefix reports whether the quote at i is that of a raw string: an r that
// does not end a longer word stands before it, alone or with a b.
func rawPrefix(s string, i int) bool {
	word := i
	for word > 0 && isLetter(s[word-1]) {
		word--
	}
	switch s[word:i] {
	case "r", "R", "br", "bR", "Br", "BR", "rb", "rB", "Rb", "RB":
		return true
	}
	return false
}

func isLetter(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func hasPrefixAt(s string, i int, prefix string) bool {
	return len(s)-i >= len(prefix) && s[i:i+len(prefix)] == prefix
}
