package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// Problem is something wrong with a rule file. It keeps one rule (or, where
// the YAML cannot be read, one file) out of the set and leaves the others.
type Problem struct {
	Pos  yamldoc.Position
	Rule string // the rule's name; empty where it is not known
	// Check is the ID under which rules/lint reports it, and docs/lint explains it.
	Check string
	Msg   string
	Line  string // the source line, for a caret; empty where there is none
	// Kept says that the rule (or where Rule is empty, what was in the file) stays
	// in force in its last good version: see Reload.
	Kept bool
}

// Error gives the problem on one line: file:line:column: rule "name": message.
func (p *Problem) Error() string {
	switch {
	case p.Rule == "" && p.Kept:
		return fmt.Sprintf("%s: %s; the file's rules keep their last good version", p.Pos, p.Msg)
	case p.Rule == "":
		return fmt.Sprintf("%s: %s", p.Pos, p.Msg)
	case p.Kept:
		return fmt.Sprintf("%s: rule %q: %s; it keeps its last good version", p.Pos, p.Rule, p.Msg)
	}
	return fmt.Sprintf("%s: rule %q: %s", p.Pos, p.Rule, p.Msg)
}

// Detail gives the problem with its source line, or as much of a long one as
// is around the column, and a caret below the column.
func (p *Problem) Detail() string {
	excerpt := p.Excerpt()
	if excerpt == "" {
		return p.Error()
	}
	return p.Error() + "\n" + excerpt
}

// Excerpt gives the two lines of Detail that show the place; empty where the
// source line is not known.
func (p *Problem) Excerpt() string {
	if p.Line == "" || p.Pos.Line == 0 {
		return ""
	}
	gutter := fmt.Sprintf("%3d | ", p.Pos.Line)
	line, column := window(p.Line, p.Pos.Column)
	// Tabs and wide runes before the column keep the caret in place when they
	// are repeated as blanks of their own width; a tab stays a tab.
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, firstRunes(line, column-1))
	return fmt.Sprintf("%s%s\n%s%s^", gutter, line, strings.Repeat(" ", len(gutter)), pad)
}

// maxWindow is how many runes of a source line are shown.
const maxWindow = 160

// window cuts a line that is too long to what is around a column (1-based),
// with … where something was cut off, and returns the column within it.
func window(line string, column int) (string, int) {
	if len(line) <= maxWindow {
		return line, column
	}
	runes := []rune(line)
	if len(runes) <= maxWindow {
		return line, column
	}
	start := max(0, min(column-1-maxWindow/2, len(runes)-maxWindow))
	end := start + maxWindow
	shown := slices.Clone(runes[start:end])
	if start > 0 {
		shown[0] = '…'
	}
	if end < len(runes) {
		shown[len(shown)-1] = '…'
	}
	return string(shown), column - start
}

// CountInvalid returns how many rules the problems keep out: several problems
// of one rule count once. What has no name counts as one rule for each place.
func CountInvalid(problems []*Problem) int {
	type key struct {
		pos  yamldoc.Position
		rule string
	}
	invalid := map[key]bool{}
	for _, p := range problems {
		k := key{p.Pos, p.Rule}
		if p.Rule != "" {
			k.pos = yamldoc.Position{File: p.Pos.File}
		}
		invalid[k] = true
	}
	return len(invalid)
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}
