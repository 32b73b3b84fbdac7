package manifest

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// numberLike are plain scalars that some YAML parser, if not ours, takes for a number or a time: 1:30, 1.2.3, 2020-01-01, 0o7, 1e3.
var numberLike = regexp.MustCompile(`^[-+.]?[0-9][0-9_.,:]*([eE][-+]?[0-9]*)?$|^[-+]?0[xXoObB][0-9a-fA-F_]*$|^\d{4}-\d\d?-\d\d?([Tt ].*)?$|^[-+]?\.(inf|Inf|INF|nan|NaN|NAN)$`)

// plainSafe reports whether a string means itself when it stands without quotes, for YAML 1.1 and 1.2 parsers alike.
func plainSafe(s string, flow bool) bool {
	if s == "" || !isPrintable(s) || strings.TrimSpace(s) != s || len(s) > 1000 {
		return false
	}
	if strings.IndexByte("-?:,[]{}#&*!|>'\"%@`=<~", s[0]) >= 0 || strings.HasSuffix(s, ":") {
		return false
	}
	if strings.Contains(s, ": ") || strings.Contains(s, " #") || strings.HasPrefix(s, "...") || flow && strings.ContainsAny(s, ",[]{}:") {
		return false
	}
	return !numberLike.MatchString(s) && yamldoc.IsString(&yaml.Node{Kind: yaml.ScalarNode, Value: s})
}

// isPrintable reports whether every character may stand in a YAML file, on one line.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, needsEscape) < 0
}

func needsEscape(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffe' || r == '\uffff'
}

// doubleQuoted quotes a string so that JSON and YAML parsers read it back.
func doubleQuoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s { // what is not UTF-8 becomes U+FFFD, as in JSON
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case needsEscape(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// literalBlock renders text of several lines as a | block, or returns false where that cannot hold it.
func literalBlock(s string, indent int) (string, bool) {
	body, header := s, "|-"
	if strings.HasSuffix(s, "\n") {
		body, header = s[:len(s)-1], "|"
	}
	if body == "" || strings.HasSuffix(body, "\n") || strings.IndexByte(" \t\n", body[0]) >= 0 {
		return "", false
	}
	var b strings.Builder
	b.WriteString(header)
	for line := range strings.SplitSeq(body, "\n") {
		if !isPrintable(strings.ReplaceAll(line, "\t", " ")) {
			return "", false
		}
		b.WriteByte('\n')
		if line != "" {
			b.WriteString(spaces(indent))
			b.WriteString(line)
		}
	}
	return b.String(), true
}
