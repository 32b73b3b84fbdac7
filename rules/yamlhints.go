package rules

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// What CEL may begin with, and YAML takes for something else.
var (
	// quotedFirst is a value that goes on behind what stands in quotes.
	quotedFirst = regexp.MustCompile(`:\s+((?:'(?:[^']|'')*'|"(?:[^"\\]|\\.)*")[ \t]*[^\s#,}\]])`)
	// bracketFirst is one that goes on behind a list or a mapping.
	bracketFirst = regexp.MustCompile(`:\s+((?:\[[^\]]*\]|\{[^}]*\})[ \t]*[^\s#,}\]])`)
	// signFirst is one that begins with what YAML keeps for itself.
	signFirst = regexp.MustCompile(":\\s+([@`%])")
)

// unquoted adds to an error of the YAML parser what to quote, and moves it there.
func (p *Problem) unquoted() {
	for _, known := range []struct {
		found *regexp.Regexp
		what  string
	}{{quotedFirst, "a quote"}, {bracketFirst, ""}, {signFirst, ""}} {
		m := known.found.FindStringSubmatchIndex(p.Line)
		if m == nil {
			continue
		}
		what := known.what
		if what == "" {
			what = p.Line[m[2] : m[2]+1]
		}
		p.Pos.Column = utf8.RuneCountInString(p.Line[:m[2]]) + 1
		p.Msg = strings.TrimSpace(p.Msg) + ": quote what begins with " + what + ", all of it, or write it in a |- block"
		return
	}
}
