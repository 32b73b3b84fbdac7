package yamldoc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

var utf8BOM = []byte("\xef\xbb\xbf")

// source is the text of a file, or of a chunk of one, with its line starts. It is shared by all documents in it and read-only.
type source struct {
	file string
	data []byte
	at   place // of the text in the file
	// yamlLines are the offsets at which the YAML parser starts a line; lines those at which editors do. They differ only where NEL, LS or PS
	// occur, which are line breaks in YAML 1.1.
	yamlLines, lines []int
	// runes counts the characters before each block of runeBlock bytes; nil if all are ASCII. It keeps columns cheap in files of one long line.
	runes []int
}

// place says what stands before a text in its file: full lines, and characters on the line that it starts in.
type place struct{ lines, column int }

const runeBlock = 1 << 10

func newSource(file string, data []byte, at place) *source {
	s := &source{file: file, data: data, at: at}
	s.lines = lineStarts(data, false)
	s.yamlLines = s.lines
	if !isASCII(data) {
		if bytes.Contains(data, []byte("\u0085")) || bytes.Contains(data, []byte("\u2028")) || bytes.Contains(data, []byte("\u2029")) {
			s.yamlLines = lineStarts(data, true)
		}
		s.runes = make([]int, 1, 1+len(data)/runeBlock)
		for i := runeBlock; i <= len(data); i += runeBlock {
			s.runes = append(s.runes, s.runes[len(s.runes)-1]+countRunes(data[i-runeBlock:i]))
		}
	}
	return s
}

func isASCII(data []byte) bool {
	for len(data) >= 8 {
		if binary.NativeEndian.Uint64(data)&0x8080808080808080 != 0 {
			return false
		}
		data = data[8:]
	}
	for _, c := range data {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// countRunes counts the bytes that start a character: unlike utf8.RuneCount it gives the same for a text as for its parts.
func countRunes(data []byte) int {
	n := 0
	for _, c := range data {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// runesBefore returns the number of characters before an offset.
func (s *source) runesBefore(offset int) int {
	if s.runes == nil {
		return offset
	}
	block := offset / runeBlock
	return s.runes[block] + countRunes(s.data[block*runeBlock:offset])
}

func lineStarts(data []byte, unicodeBreaks bool) []int {
	starts := make([]int, 1, 1+bytes.Count(data, []byte("\n")))
	if !unicodeBreaks && bytes.IndexByte(data, '\r') < 0 {
		for at := 0; ; {
			i := bytes.IndexByte(data[at:], '\n')
			if i < 0 {
				return starts
			}
			at += i + 1
			starts = append(starts, at)
		}
	}
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\n', c == '\r' && (i+1 == len(data) || data[i+1] != '\n'):
			starts = append(starts, i+1)
		case unicodeBreaks && c >= utf8.RuneSelf:
			if r, size := utf8.DecodeRune(data[i:]); r == '\u0085' || r == '\u2028' || r == '\u2029' {
				starts = append(starts, i+size)
			}
		}
	}
	return starts
}

// lineIndex returns the index of the line that holds offset.
func lineIndex(starts []int, offset int) int {
	return sort.SearchInts(starts, offset+1) - 1
}

// yamlLine returns the 1-based line of offset as the YAML parser counts.
func (s *source) yamlLine(offset int) int { return lineIndex(s.yamlLines, offset) + 1 }

// position returns the position of a byte offset as editors count.
func (s *source) position(offset int) Position {
	offset = max(0, min(offset, len(s.data)))
	i := lineIndex(s.lines, offset)
	column := s.runesBefore(offset) - s.runesBefore(s.lines[i]) + 1
	if i == 0 {
		column += s.at.column
	}
	return Position{s.file, s.at.lines + i + 1, column}
}

// offset returns the byte offset of a line and column as the YAML parser counts, or false when there is no such place.
// A piece may start within a line, behind a byte-order mark: columns of that line count from the start of the piece.
func (s *source) offset(line, column, pieceStart int) (int, bool) {
	if line < 1 || line > len(s.yamlLines) || column < 1 {
		return 0, false
	}
	at := max(s.yamlLines[line-1], pieceStart)
	if s.runes == nil {
		at += column - 1
		return at, at <= len(s.data)
	}
	if column > runeBlock {
		wanted := s.runesBefore(at) + column - 1
		block := sort.SearchInts(s.runes, wanted+1) - 1
		if start := block * runeBlock; start > at {
			for start < len(s.data) && !utf8.RuneStart(s.data[start]) {
				start++ // the block starts within a character, which was counted with the block before
			}
			at, column = start, wanted-s.runes[block]+1
		}
	}
	for ; column > 1; column-- {
		if at >= len(s.data) {
			return 0, false
		}
		if s.data[at] < utf8.RuneSelf {
			at++
			continue
		}
		_, size := utf8.DecodeRune(s.data[at:])
		at += size
	}
	return at, true
}

// piece is a byte range that holds at most one YAML document.
type piece struct{ start, end int }

// split cuts the text at its document markers: lines that start with "---" or "..." followed by white space. YAML knows no context in
// which such a line means something else. Pieces that hold only directives belong to the piece after them.
func split(data []byte) []piece {
	var out []piece
	start := 0
	cut := func(at int) {
		if at > start && !onlyDirectives(data[start:at]) {
			out = append(out, piece{start, at})
			start = at
		}
	}
	for at := 0; at < len(data); {
		mark := at
		if bytes.HasPrefix(data[at:], utf8BOM) {
			mark += len(utf8BOM) // files with a byte-order mark, put together
		}
		end := nextLine(data, at)
		switch {
		case isMarker(data[mark:], "---"):
			cut(at)
			if start == at {
				start = mark
			}
		case isMarker(data[mark:], "..."):
			cut(end)
		}
		at = end
	}
	if start < len(data) {
		out = append(out, piece{start, len(data)})
	}
	return out
}

func nextLine(data []byte, at int) int {
	i := bytes.IndexAny(data[at:], "\r\n")
	if i < 0 {
		return len(data)
	}
	at += i
	if data[at] == '\r' && at+1 < len(data) && data[at+1] == '\n' {
		at++
	}
	return at + 1
}

func isMarker(line []byte, marker string) bool {
	if !bytes.HasPrefix(line, []byte(marker)) {
		return false
	}
	return len(line) == len(marker) || strings.IndexByte(" \t\r\n", line[len(marker)]) >= 0
}

// onlyDirectives reports whether there is at least one directive (%YAML, %TAG) and else only blank lines and comments.
func onlyDirectives(text []byte) bool {
	found := false
	for at := 0; at < len(text); at = nextLine(text, at) {
		if text[at] == '%' {
			found = true
			continue
		}
		if line := bytes.TrimSpace(text[at:nextLine(text, at)]); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return found
}

// contentStart returns the offset of the first byte that is not white space, comment or document marker; len(text) if there is none.
func contentStart(text []byte) int {
	at := 0
	for at < len(text) {
		switch c := text[at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			at++
		case c == '#':
			at = nextLine(text, at)
		case (at == 0 || text[at-1] == '\n' || text[at-1] == '\r') && (isMarker(text[at:], "---") || isMarker(text[at:], "...")):
			at += 3
		default:
			return at
		}
	}
	return at
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// decode reads one document. The parser reports malformed input by error; a panic is a fault of the parser, which one file must not turn into the
// end of the process.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: parser failed: %v", r)
		}
	}()
	return dec.Decode(n)
}

var (
	parserLine    = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)
	unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
)

// locate turns a parser error into an *Error. The parser gives at best the line of the construct it was in, and counts from 0 in
// half of the cases, so the line is found by parsing again: the parser's progress bounds it from above, the longest text that still parses from below.
// The texts of the parser are read for the position only.
func (s *source) locate(p piece, err error) *Error {
	msg := err.Error()
	m := parserLine.FindStringSubmatch(msg)
	e := &Error{Msg: "invalid YAML: " + msg[len(m[0]):], Err: err}
	if isEOF(err) {
		e.Msg = "invalid YAML: unexpected end of the document"
	}
	text := s.data[p.start:p.end]
	r := &slowReader{data: text}
	parses(r)
	if a := unknownAnchor.FindStringSubmatch(msg); a != nil {
		e.Msg = fmt.Sprintf("unknown anchor %q in this document", a[1])
		if i := bytes.LastIndex(text[:r.at], []byte("*"+a[1])); i >= 0 {
			e.Pos = s.position(p.start + i)
			return e
		}
	}
	maxTries := max(2, min(24, (1<<20)/len(text)))
	base := lineIndex(s.lines, p.start)
	line := lineIndex(s.lines, p.start+max(r.at-1, 0))
	for tries := 0; line > base; line-- {
		if tries++; tries > maxTries {
			// A quote or bracket that never closes: the parser knows where it was opened.
			line = base
			if n, convErr := strconv.Atoi(m[1]); convErr == nil {
				line += n - 1
			}
			break
		}
		if parses(&slowReader{data: text[:s.lines[line]-p.start], fast: true}) {
			break
		}
	}
	line = max(base, min(line, len(s.lines)-1))
	at := max(s.lines[line], p.start)
	for at < len(s.data) && s.data[at] == ' ' {
		at++
	}
	e.Pos = s.position(at)
	if at < len(s.data) && s.data[at] == '\t' && strings.Contains(msg, "found character that cannot start any token") {
		e.Msg = "invalid YAML: YAML is indented with spaces, and this is a tab"
	}
	return e
}

func parses(r io.Reader) bool {
	dec := yaml.NewDecoder(r)
	for {
		var n yaml.Node
		if err := decode(dec, &n); err != nil {
			return isEOF(err)
		}
	}
}

// slowReader hands out single bytes, so that at tells how far the parser came.
type slowReader struct {
	data []byte
	at   int
	fast bool
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.at >= len(r.data) {
		return 0, io.EOF
	}
	n := 1
	if r.fast {
		n = len(p)
	}
	n = copy(p[:min(n, len(p))], r.data[r.at:])
	r.at += n
	return n, nil
}
