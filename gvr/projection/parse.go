package projection

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// parseDepth is the depth that client-go's decoder goes to.
const parseDepth = 10_000

// parser parses the text of an Object: JSON without white space that has been
// checked. What it makes is what client-go's decoder makes of it.
type parser struct {
	text    string
	members []member // of the maps and lists that are not complete
}

// member is one of a map or, without a key, of a list.
type member struct {
	key   string
	value any
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// parse returns the map that a text stands for. Its strings share memory with the
// text.
func parse(text string) map[string]any {
	p := parsers.Get().(*parser)
	defer func() {
		clear(p.members[:cap(p.members)])
		p.text, p.members = "", p.members[:0]
		if cap(p.members) <= 1000 {
			parsers.Put(p)
		}
	}()
	p.text = text
	value, end := p.value(0)
	object, ok := value.(map[string]any)
	if !ok || end != len(text) {
		p.broken(end)
	}
	return object
}

// broken panics: the text was checked when it was kept.
func (p *parser) broken(at int) {
	panic(fmt.Sprintf("projection: the text of an object cannot be parsed at byte %d of %d", at, len(p.text)))
}

func (p *parser) value(i int) (any, int) {
	switch c := p.text[i]; c {
	case '{':
		return p.object(i + 1)
	case '[':
		return p.list(i + 1)
	case '"':
		s, end := p.string(i + 1)
		return s, end
	case 'n':
		return nil, i + len("null")
	case 't':
		return true, i + len("true")
	case 'f':
		return false, i + len("false")
	}
	return p.number(i)
}

func (p *parser) object(i int) (map[string]any, int) {
	first := len(p.members)
	if p.text[i] == '}' {
		return map[string]any{}, i + 1
	}
	for {
		key, end := p.string(i + 1)
		value, end := p.value(end + 1)
		p.members = append(p.members, member{key, value})
		if i = end + 1; p.text[end] == '}' {
			break
		}
	}
	members := p.members[first:]
	object := make(map[string]any, len(members))
	for _, m := range members {
		object[m.key] = m.value // of equal keys the last wins
	}
	p.members = p.members[:first]
	return object, i
}

func (p *parser) list(i int) ([]any, int) {
	first := len(p.members)
	if p.text[i] == ']' {
		return []any{}, i + 1
	}
	for {
		value, end := p.value(i)
		p.members = append(p.members, member{value: value})
		if i = end + 1; p.text[end] == ']' {
			break
		}
	}
	members := p.members[first:]
	list := make([]any, len(members))
	for j, m := range members {
		list[j] = m.value
	}
	p.members = p.members[:first]
	return list, i
}

// string reads a string. i is behind its opening quote.
func (p *parser) string(i int) (string, int) {
	for j := i; j < len(p.text); j++ {
		switch c := p.text[j]; {
		case c == '"':
			return p.text[i:j], j + 1
		case c == '\\' || c >= utf8.RuneSelf:
			return p.unusualString(i, j)
		}
	}
	p.broken(i)
	return "", 0
}

// unusualString reads a string that is ASCII without escapes only as far as j.
func (p *parser) unusualString(i, j int) (string, int) {
	escapes := false
	for ; p.text[j] != '"'; j++ {
		if p.text[j] == '\\' {
			escapes = true
			j++
		}
	}
	s := p.text[i:j]
	if escapes || !utf8.ValidString(s) {
		s = unquote(s)
	}
	return s, j + 1
}

func (p *parser) number(i int) (any, int) {
	end, integer := i, true
	for ; end < len(p.text); end++ {
		c := p.text[end]
		if c == ',' || c == '}' || c == ']' {
			break
		}
		integer = integer && (c == '-' || c-'0' <= 9)
	}
	text := p.text[i:end]
	if integer {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, end
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.broken(i)
	}
	return f, end
}

// unquote returns the string that is written as s between quotes. s has been checked.
func unquote(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			break
		}
		out.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		if c != 'u' {
			out.WriteByte(unescape[c])
			continue
		}
		var r rune
		r, s = hexRune(s)
		if utf16.IsSurrogate(r) {
			// Half of a pair stands for nothing; what follows it stands for itself.
			r2, rest := utf8.RuneError, s
			if strings.HasPrefix(s, `\u`) {
				r2, rest = hexRune(s[2:])
			}
			if r = utf16.DecodeRune(r, r2); r != utf8.RuneError {
				s = rest
			}
		}
		out.WriteRune(r)
	}
	return validUTF8(out.String())
}

// unescape is what the letter behind a backslash stands for.
var unescape = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hexRune reads four hexadecimal digits.
func hexRune(s string) (rune, string) {
	n, err := strconv.ParseUint(s[:4], 16, 16)
	if err != nil {
		panic("projection: the text of an object has a broken escape") // it has been checked
	}
	return rune(n), s[4:]
}

// validUTF8 replaces each byte that is not part of a valid rune by U+FFFD.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
