package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Pointer is a JSON pointer (RFC 6901) as its unescaped tokens. The empty Pointer
// is the whole document. Treat it as immutable: pointers share their tokens.
type Pointer []string

// ErrWholeDocument is the error of a pointer to the whole document. No rule may
// replace an object by another one.
var ErrWholeDocument = errors.New("the empty pointer addresses the whole document, which no rule may replace")

// PointerError says what is wrong with a pointer and where: Offset is in bytes
// from the start of the string that was parsed, at most its length.
type PointerError struct {
	Offset int
	Msg    string

	err error // ErrWholeDocument or nil
}

func (e *PointerError) Error() string {
	return fmt.Sprintf("bad JSON pointer at offset %d: %s", e.Offset, e.Msg)
}

// Unwrap makes errors.Is(err, ErrWholeDocument) work.
func (e *PointerError) Unwrap() error { return e.err }

// ParsePointer parses strictly, so that what is accepted means the same to every
// implementation: the pointer starts with a slash, ~0 and ~1 are the only escapes,
// and no token is empty (no field or key of a Kubernetes object has an empty name;
// a doubled or trailing slash is a slip). "" is ErrWholeDocument. All errors are
// *PointerError.
//
// Whether a token is a list index is known only when the pointer meets an object:
// see CheckIndexes for what can be said before.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return nil, &PointerError{Msg: ErrWholeDocument.Error(), err: ErrWholeDocument}
	}
	if s[0] != '/' {
		return nil, &PointerError{Msg: "it must start with /"}
	}
	p := make(Pointer, 0, strings.Count(s, "/"))
	for start := 1; ; {
		end := len(s)
		if i := strings.IndexByte(s[start:], '/'); i >= 0 {
			end = start + i
		}
		token, err := unescape(s[start:end], start)
		if err != nil {
			return nil, err
		}
		p = append(p, token)
		if end == len(s) {
			return p, nil
		}
		start = end + 1
	}
}

// unescape decodes one token that stands at offset in its pointer.
func unescape(raw string, offset int) (string, error) {
	if raw == "" {
		return "", &PointerError{Offset: offset, Msg: "empty token: a doubled or trailing slash"}
	}
	if !utf8.ValidString(raw) {
		return "", &PointerError{Offset: offset, Msg: "not valid UTF-8"}
	}
	if !strings.Contains(raw, "~") {
		return raw, nil
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '~' {
			b.WriteByte(raw[i])
			continue
		}
		switch {
		case i+1 == len(raw):
			return "", &PointerError{Offset: offset + i, Msg: "dangling ~ (a literal ~ is written ~0)"}
		case raw[i+1] == '0':
			b.WriteByte('~')
		case raw[i+1] == '1':
			b.WriteByte('/')
		default:
			return "", &PointerError{Offset: offset + i, Msg: "the only escapes are ~0 for ~ and ~1 for /"}
		}
		i++
	}
	return b.String(), nil
}

// Not strings.ReplaceAll twice: a Replacer makes one pass, so an escape that is
// produced is never escaped again.
var tokenEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// String returns the pointer as RFC 6901 writes it, escaped.
func (p Pointer) String() string {
	var b strings.Builder
	for _, token := range p {
		b.WriteByte('/')
		b.WriteString(tokenEscaper.Replace(token))
	}
	return b.String()
}

// HasPrefix reports whether p is q or lies below q. Every pointer has the empty
// one as a prefix.
func (p Pointer) HasPrefix(q Pointer) bool {
	return len(p) >= len(q) && slices.Equal(p[:len(q)], q)
}

// child returns p with one more token, in memory of its own: siblings are made
// from the same p.
func (p Pointer) child(token string) Pointer {
	return append(p[:len(p):len(p)], token)
}
