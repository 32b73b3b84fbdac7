package objectdiff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// contextLines is how many unchanged lines stand around a change.
const contextLines = 3

// edit replaces the lines from up to to (0-based, exclusive) by others.
type edit struct {
	from, to int
	lines    []string
}

// Unified returns the differences of two texts as patch and git apply read
// them; nil if there are none. The names, of FileName or Label, go into the
// header as they are.
func Unified(oldName, newName string, before, after []byte) []byte {
	edits := lineEdits(splitLines(before), splitLines(after), 0)
	if len(edits) == 0 {
		return nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", oldName, newName)
	lines := splitLines(before)
	shift := 0
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].from-edits[n-1].to <= 2*contextLines {
			n++
		}
		shift += writeHunk(&out, lines, edits[:n], shift)
		edits = edits[n:]
	}
	return out.Bytes()
}

// splitLines cuts a text behind its line breaks; the last line may have none.
func splitLines(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// lineEdits compares lines. The library anchors its comparison at lines that
// occur once in each text, of which manifests with many similar objects have
// few: so what it calls replaced is compared again by itself.
func lineEdits(before, after []string, at int) []edit {
	found := parseEdits(diff.Diff("", []byte(strings.Join(before, "")), "", []byte(strings.Join(after, ""))))
	var out []edit
	for _, e := range found {
		whole := e.from == 0 && e.to == len(before) && len(e.lines) == len(after)
		if !whole && e.to > e.from && len(e.lines) > 0 {
			out = append(out, lineEdits(before[e.from:e.to], e.lines, at+e.from)...)
			continue
		}
		out = append(out, edit{at + e.from, at + e.to, e.lines})
	}
	return out
}

// parseEdits reads the edits out of a unified diff.
func parseEdits(unified []byte) []edit {
	var out []edit
	at := 0 // line of the old text
	open := false
	for i, line := range splitLines(unified) {
		switch c := line[0]; {
		case i < 3: // the header
		case c == '@':
			fmt.Sscanf(line, "@@ -%d,", &at)
			if !strings.HasPrefix(line[strings.IndexByte(line, ','):], ",0 ") {
				at-- // the number of the first line; of the line before if there is none
			}
			open = false
		case c == ' ':
			at++
			open = false
		case c == '\\': // no line break at the end
			last := &out[max(len(out)-1, 0)]
			if n := len(last.lines); open && n > 0 && last.lines[n-1] != "" {
				last.lines[n-1] = strings.TrimSuffix(last.lines[n-1], "\n")
			}
		default:
			if !open {
				out = append(out, edit{from: at, to: at})
				open = true
			}
			last := &out[len(out)-1]
			if c == '-' {
				at++
				last.to = at
			} else {
				last.lines = append(last.lines, line[1:])
			}
		}
	}
	return out
}

// writeHunk writes edits that stand close together, and returns by how much the
// lines after them move. shift is how much those before them did.
func writeHunk(out *bytes.Buffer, lines []string, edits []edit, shift int) (by int) {
	first := max(edits[0].from-contextLines, 0)
	last := min(edits[len(edits)-1].to+contextLines, len(lines))
	for _, e := range edits {
		by += len(e.lines) - (e.to - e.from)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", hunkRange(first, last-first), hunkRange(first+shift, last-first+by))
	at := first
	for _, e := range edits {
		writeLines(out, ' ', lines[at:e.from])
		writeLines(out, '-', lines[e.from:e.to])
		writeLines(out, '+', e.lines)
		at = e.to
	}
	writeLines(out, ' ', lines[at:last])
	return by
}

// hunkRange is a line and a count; a count of 0 goes with the line before.
func hunkRange(from, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return strconv.Itoa(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, count)
}

func writeLines(out *bytes.Buffer, mark byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// FileName spells the name of a file for the header as git does: in quotes where
// it holds what would end it, and with a tab behind it where it holds a space.
func FileName(name string) string {
	label := Label(name)
	if label == name && strings.Contains(name, " ") {
		return name + "\t"
	}
	return label
}

// Label spells for the header what is no name of a file: in one line, and
// without what a terminal would act on.
func Label(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteString("\\" + string(c))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
