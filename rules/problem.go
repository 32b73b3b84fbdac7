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
	Msg  string
	Line string // the source line, for a caret; empty where there is none
}

// Error gives the problem on one line: file:line:column: rule "name": message.
func (p *Problem) Error() string {
	if p.Rule == "" {
		return fmt.Sprintf("%s: %s", p.Pos, p.Msg)
	}
	return fmt.Sprintf("%s: rule %q: %s", p.Pos, p.Rule, p.Msg)
}

// Detail gives the problem with its source line and a caret below the column.
func (p *Problem) Detail() string {
	if p.Line == "" || p.Pos.Line == 0 {
		return p.Error()
	}
	gutter := fmt.Sprintf("%3d | ", p.Pos.Line)
	// Tabs and wide runes before the column keep the caret in place when they
	// are repeated as blanks of their own width; a tab stays a tab.
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, firstRunes(p.Line, p.Pos.Column-1))
	return fmt.Sprintf("%s\n%s%s\n%s%s^", p.Error(), gutter, p.Line, strings.Repeat(" ", len(gutter)), pad)
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

// didYouMean names the candidate that is closest to what was written, as a
// ready-made addition to a message; empty if none is close.
func didYouMean(got string, candidates []string) string {
	best, bestDistance := "", len(got)/3+2
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if d := distance(strings.ToLower(got), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance is the Levenshtein distance between two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(above+1, row[j]+1, diagonal+cost)
			diagonal = above
		}
	}
	return row[len(b)]
}
