package yamldoc

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Scanner cuts a stream into the texts of its documents, holding one at a time. It cuts where Parse does: at document markers, and behind each of
// the JSON values that follow one another. The chunks, put together, are the stream.
//
// A Scanner is not safe for concurrent use.
type Scanner struct {
	// SplitList is asked about a large document that has the layout of a list: the lines of its head, which end with "items:", and its first
	// item, which starts with a dash. If it says yes, head, items and tail are chunks of their own; see Chunk.Part. Nil says no.
	SplitList func(head, first Chunk) bool
	// SplitFrom is how many bytes a document must have to be split. Smaller ones are read whole, so that aliases reach everywhere in them.
	SplitFrom int

	file   string
	r      io.Reader
	limits Limits

	buf        []byte
	start, end int // of what is in buf and has not been handed out
	eof        bool
	err        error // what Next returns from now on
	at         place // of buf[start] in the stream
	given      int   // bytes of the chunk that was handed out last
	afterJSON  bool  // a JSON value ends where the next chunk starts
	dropping   bool  // the document is too big: what is left of it is not handed out

	cutter
}

// Chunk is the text of at most one document of a stream, with the markers and comments around it.
type Chunk struct {
	// Text is valid until the next call of Scanner.Next.
	Text []byte
	// BOM says that a byte-order mark stands before Text.
	BOM bool

	// Part says what of a document it is.
	Part Part

	file      string
	limits    Limits
	at        place
	afterJSON bool
	json      bool // with Part: of a JSON list
	noComma   bool // which would be due before this item
}

// Part is what a Chunk holds.
type Part int

const (
	// Whole is a whole document, or none.
	Whole Part = iota
	// ListHead is what stands before the items of a list, the key items included.
	ListHead
	// ListItem is one item: of a YAML list a sequence of one element, of a JSON list the element.
	ListItem
	// ListTail is what stands behind the items. There may be none.
	ListTail
)

// splitFrom is the default of Scanner.SplitFrom.
const splitFrom = 512 << 10

// NewScanner returns a Scanner for the file of that name. Limits.MaxBytes counts for each document, not for the whole stream.
func NewScanner(file string, r io.Reader, limits Limits) *Scanner {
	return &Scanner{SplitFrom: splitFrom, file: file, r: r, limits: limits}
}

// minRead is how much room there is for a read.
const minRead = 64 << 10

// Next returns the next chunk, and io.EOF at the end. After an *Error, which tells of a document beyond Limits.MaxBytes, the next call goes on
// behind that document. Any other error is one of reading, and final.
func (s *Scanner) Next() (Chunk, error) {
	s.forget(s.given)
	s.given = 0
	for s.err == nil {
		data := s.buf[s.start:s.end]
		n := s.cut(data, s.eof)
		if n > 0 && s.list.candidate {
			if n = s.split(n); n == 0 {
				continue
			}
		}
		if n == 0 && s.eof {
			n = len(data)
		}
		size := n
		if n == 0 {
			size = s.known()
		}
		switch {
		case s.dropping && n > 0:
			s.dropping = false
			s.take(n)
			s.forget(n)
			s.given = 0
		case s.dropping && size > len("\r\n"): // which must not be torn apart
			s.forget(size - len("\r\n"))
			s.shift(size - len("\r\n"))
		case s.limits.MaxBytes > 0 && size > s.limits.MaxBytes:
			s.dropping = true
			return Chunk{}, &Error{Pos: Chunk{file: s.file, at: s.at}.Pos(),
				Msg: fmt.Sprintf("document has more than %d bytes, the most that is allowed", s.limits.MaxBytes)}
		case n > 0:
			return s.take(n), nil
		case s.eof:
			s.err = io.EOF
		default:
			s.fill()
		}
	}
	return Chunk{}, s.err
}

// take makes a chunk of the next n bytes. They stay where they are until forget.
func (s *Scanner) take(n int) Chunk {
	c := Chunk{Text: s.buf[s.start : s.start+n : s.start+n], file: s.file, limits: s.limits, at: s.at, afterJSON: s.afterJSON}
	if c.at.column == 0 && bytes.HasPrefix(c.Text, utf8BOM) {
		c.Text, c.BOM = c.Text[len(utf8BOM):], true
	}
	s.given = n
	c.Part, c.json = s.list.part, s.list.json && s.list.part != Whole
	c.noComma = c.Part == ListItem && s.list.comma == commaDue
	s.afterJSON = s.phase == inJSON && s.json.state == jsonDone && n == s.json.at && c.Part != ListItem
	next := cutter{midLine: s.afterJSON, json: jsonScan{open: s.json.open[:0]}}
	if s.list.then != Whole {
		next.phase, next.list = inYAML, listCut{part: s.list.then, dash: s.list.dash}
		if s.list.json {
			next.phase, next.midLine, next.list.json = inJSONList, true, true
			if c.Part == ListItem {
				next.list.comma = commaDue
			}
		}
	}
	s.cutter = next
	return c
}

// split decides whether a list is split, which has more than one item and an item that starts at offset n. It returns the size of its head if so,
// and 0 if not, or not yet.
func (s *Scanner) split(n int) int {
	s.list.candidate = false
	if n < s.SplitFrom {
		return 0
	}
	first := s.list.first
	head := Chunk{Text: s.buf[s.start : s.start+first], Part: ListHead, file: s.file, limits: s.limits, at: s.at, json: s.list.json, afterJSON: s.afterJSON}
	item := Chunk{Text: s.buf[s.start+first : s.start+s.list.second], Part: ListItem, file: s.file, limits: s.limits, at: s.at.after(head.Text), json: s.list.json}
	if s.dropping || isJSONFile(s.file) && !s.list.json || s.SplitList == nil || !s.SplitList(head, item) {
		s.list.refused = true
		return 0
	}
	s.list.part, s.list.then = ListHead, ListItem
	return first
}

// forget moves over n bytes.
func (s *Scanner) forget(n int) {
	s.at = s.at.after(s.buf[s.start : s.start+n])
	s.start += n
}

// fill reads more.
func (s *Scanner) fill() {
	if len(s.buf)-s.end < minRead {
		held := s.end - s.start
		to := s.buf
		if held > len(s.buf)/2 || len(s.buf) == 0 {
			to = make([]byte, max(4*minRead, 2*len(s.buf)))
		}
		copy(to, s.buf[s.start:s.end])
		s.buf, s.start, s.end = to, 0, held
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		switch {
		case err == io.EOF:
			s.eof = true
			return
		case err != nil:
			s.err = err
			return
		case n > 0:
			return
		}
	}
	s.err = io.ErrNoProgress
}

// after returns the place behind text.
func (p place) after(text []byte) place {
	last := 0 // where the last line starts
	if bytes.IndexByte(text, '\r') < 0 {
		p.lines += bytes.Count(text, []byte("\n"))
		last = bytes.LastIndexByte(text, '\n') + 1
	} else {
		for at := nextLine(text, 0); isBreak(text[at-1]); at = nextLine(text, at) {
			p.lines++
			if last = at; at == len(text) {
				break
			}
		}
	}
	if last > 0 {
		p.column = 0
	}
	if p.column == 0 {
		text = bytes.TrimPrefix(text[last:], utf8BOM)
	}
	p.column += countRunes(text)
	return p
}

// Parse parses the document of the chunk; it returns none when there is no content. Positions count from the start of the stream. Every error
// is an *Error.
func (c Chunk) Parse() (*Document, error) {
	src := newSource(c.file, c.Text, c.at)
	if err := src.checkText(); err != nil {
		return nil, err
	}
	if c.afterJSON {
		if err := followsJSON(src); err != nil {
			return nil, err
		}
	}
	start := 0
	if c.noComma {
		at := len(c.Text) - len(bytes.TrimLeft(c.Text, " \t\r\n"))
		return nil, src.textError(at, "invalid JSON: expected ',' or ']' after the item")
	}
	if c.json {
		src, start = c.part(src)
	}
	docs, err := parsePiece(src, piece{start, len(src.data)}, c.limits, c.afterJSON || c.json)
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	return docs[0], nil
}

// part makes JSON of a part of a JSON list: it closes the head, opens the tail, and finds the item behind its comma.
func (c Chunk) part(src *source) (_ *source, start int) {
	at := len(c.Text) - len(bytes.TrimLeft(c.Text, " \t\r\n"))
	switch {
	case c.Part == ListHead:
		return newSource(c.file, append(slices.Clip(c.Text), "]}"...), c.at), 0
	case at == len(c.Text) || c.Text[at] != ']' && c.Text[at] != ',':
		return src, 0
	case c.Part == ListItem:
		return src, at + 1
	}
	text := slices.Clone(c.Text)
	text[at] = ' '
	if next := at + len(c.Text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n")); next < len(text) && text[next] == ',' {
		at = next
	}
	text[at] = '{'
	return newSource(c.file, text, c.at), 0
}

// followsJSON checks what stands between a JSON value and the next content: comments are allowed only if there is none, and never in a JSON file.
func followsJSON(src *source) error {
	text := src.data
	at := len(text) - len(bytes.TrimLeft(text, " \t\r\n"))
	isLast := contentStart(text) == len(text)
	switch {
	case at == len(text):
	case text[at] == '#' && (!isLast || isJSONFile(src.file)):
		return src.textError(at, "invalid JSON: unexpected '#' after the JSON value")
	case isMarker(text[at:], "...") && !isLast:
		return src.textError(at+len("..."), "invalid JSON: unexpected text after ...")
	}
	return nil
}

func isJSONFile(name string) bool { return strings.EqualFold(filepath.Ext(name), ".json") }

// Pos returns where the chunk starts.
func (c Chunk) Pos() Position { return Position{c.file, c.at.lines + 1, c.at.column + 1} }

// Lines returns the number of lines of the stream before the one that the chunk starts in.
func (c Chunk) Lines() int { return c.at.lines }
