package yamldoc

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Position is a place in a file. Line and Column are 1-based; Column counts runes, a tab is one.
type Position struct {
	File         string
	Line, Column int
}

// String returns file:line:column, or line:column where the file is not known.
func (p Position) String() string {
	s := strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
	if p.File != "" {
		s = p.File + ":" + s
	}
	return s
}

// Error is a problem at a place in a file. All errors of this package have this type.
type Error struct {
	Pos Position
	// Msg says what is wrong, without the position.
	Msg string
	// Err is the cause, or nil. It is not part of the text of Error().
	Err error
}

func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Limits bound what Parse accepts. Zero means no limit, but never more than 10,000 levels of nesting.
type Limits struct {
	// MaxBytes is the size of the whole file.
	MaxBytes int
	// MaxDepth is the number of collections within one another, aliases followed.
	MaxDepth int
}

var (
	// RuleLimits are the limits for rule files.
	RuleLimits = Limits{MaxBytes: 1 << 20, MaxDepth: 64}
	// ManifestLimits are the limits for manifests. The deepest real objects, CRD schemas, stay below 100.
	ManifestLimits = Limits{MaxBytes: 64 << 20, MaxDepth: 1000}
)

// Document is one document of a file that has content. It is read-only.
type Document struct {
	// File is the name given to Parse.
	File string
	// Root is the content; never nil, never a DocumentNode. The lines of all nodes count from the start of the file.
	Root *yaml.Node

	src        *source
	start, end int // byte range of the piece of the file that the document was parsed from
	json       bool
	misread    []*yaml.Node
}

// Span returns the byte range of the document in the text given to Parse, less a leading byte-order mark. Document markers and the
// comments around the content are part of it; for JSON documents it is the value alone.
func (d *Document) Span() (start, end int) { return d.start, d.end }

// MisreadKeys returns the keys, written without quotes, that YAML 1.1 takes for something else than the string that stands there: y, on, 012. Their
// KeyString tells what becomes of them.
func (d *Document) MisreadKeys() []*yaml.Node { return d.misread }

// IsJSON reports whether the document is JSON: what is written into it must be JSON too.
func (d *Document) IsJSON() bool { return d.json }

// Parse reads all documents of a YAML or JSON file; JSON values may simply follow one another. Documents without content (empty, or
// comments only) are left out, so a nil slice with a nil error is possible. A leading byte-order mark is skipped. Every error is an *Error.
func Parse(file string, data []byte, limits Limits) ([]*Document, error) {
	if limits.MaxBytes > 0 && len(data) > limits.MaxBytes {
		return nil, &Error{Pos: Position{file, 1, 1}, Msg: fmt.Sprintf("file has %d bytes, at most %d are allowed", len(data), limits.MaxBytes)}
	}
	src := newSource(file, bytes.TrimPrefix(data, utf8BOM), place{})
	if err := src.checkText(); err != nil {
		return nil, err
	}
	pieces := split(src.data)
	docs := make([][]*Document, len(pieces))
	errs := make([]error, len(pieces))
	forEach(len(pieces), func(i int) bool {
		docs[i], errs[i] = parsePiece(src, pieces[i], limits, false)
		return errs[i] == nil
	})
	var all []*Document
	for i := range pieces {
		if errs[i] != nil {
			return nil, errs[i]
		}
		all = append(all, docs[i]...)
	}
	return all, nil
}

// forEach calls f for 0…n-1 on all processors, in order of start, and stops starting calls once f has returned false. The first failure in
// file order is therefore always among the calls made.
func forEach(n int, f func(i int) bool) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if n < 8 {
		workers = min(1, n)
	}
	if workers <= 1 {
		for i := 0; i < n && f(i); i++ {
		}
		return
	}
	var next, stop atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for stop.Load() == 0 {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if !f(i) {
					stop.Store(1)
				}
			}
		})
	}
	wg.Wait()
}

// parsePiece parses a piece. With onlyJSON it must not be anything else.
func parsePiece(src *source, p piece, limits Limits, onlyJSON bool) ([]*Document, error) {
	text := src.data[p.start:p.end]
	body := contentStart(text)
	if body == len(text) {
		return nil, nil
	}
	var notJSON *Error
	if c := text[body]; c == '{' || c == '[' {
		docs, notation, err := parseJSON(src, piece{p.start + body, p.end}, limits)
		if notation == nil {
			return docs, err
		}
		notJSON = notation
	} else if onlyJSON {
		r, _ := utf8.DecodeRune(text[body:])
		notJSON = src.textError(p.start+body, "invalid JSON: unexpected %q after the JSON value", r)
	}
	if onlyJSON {
		return nil, notJSON
	}
	doc, err := parseYAML(src, p)
	if err != nil {
		if notJSON != nil && looksLikeJSON(src.file, text[body:]) {
			return nil, notJSON
		}
		return nil, err
	}
	if doc == nil {
		return nil, nil
	}
	if err := doc.check(limits); err != nil {
		return nil, err
	}
	return []*Document{doc}, nil
}

// looksLikeJSON decides whose error message is the helpful one for text that is neither JSON nor YAML.
func looksLikeJSON(file string, text []byte) bool {
	if isJSONFile(file) {
		return true
	}
	rest := bytes.TrimLeft(text[1:], " \t\r\n")
	return len(rest) > 0 && (rest[0] == '"' || rest[0] == '{')
}

// parseYAML parses one piece. It returns nil without an error when the piece has no content.
func parseYAML(src *source, p piece) (*Document, error) {
	text := src.data[p.start:p.end]
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var n, extra yaml.Node
	if err := decode(dec, &n); err != nil {
		return nil, src.locate(p, err)
	}
	// split has cut at every document marker: whatever comes second would be lost by a plain Unmarshal.
	switch err := decode(dec, &extra); {
	case err == nil:
		line := src.yamlLine(p.start) + extra.Line - 1
		return nil, &Error{Pos: Position{src.file, line, 1}, Msg: "a new document must start with ---"}
	case !isEOF(err):
		return nil, src.locate(p, err)
	}
	if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
		return nil, nil
	}
	root := n.Content[0]
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Style == 0 && root.Anchor == "" {
		return nil, nil
	}
	moveLines(root, src.yamlLine(p.start)-1)
	return &Document{File: src.file, Root: root, src: src, start: p.start, end: p.end}, nil
}

func moveLines(n *yaml.Node, by int) {
	if by == 0 {
		return
	}
	n.Line += by
	for _, c := range n.Content {
		moveLines(c, by)
	}
}

// textError returns an error at byte offset of the file.
func (s *source) textError(offset int, format string, args ...any) *Error {
	return &Error{Pos: s.position(offset), Msg: fmt.Sprintf(format, args...)}
}

// checkText refuses what is not UTF-8 with its position, before a parser reports it without one.
func (s *source) checkText() error {
	data := s.data
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return &Error{Pos: Position{s.file, 1, 1}, Msg: "not UTF-8: the file is UTF-16; save it as UTF-8"}
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return s.textError(i, "not UTF-8: the file holds NUL bytes (UTF-16?); save it as UTF-8")
	}
	if !utf8.Valid(data) {
		i := 0
		for i < len(data) {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			i += size
		}
		return s.textError(i, "not UTF-8: invalid byte 0x%02x", data[i])
	}
	return nil
}
