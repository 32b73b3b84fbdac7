package expression

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// operatorSign tells of a syntax error that comes of a sign which other languages
// have for an operator, and moves the issue there; false if it comes of something
// else.
func (i *Issue) operatorSign(source string) bool {
	at := min(i.Offset, len(source))
	before, rest := source[:at], source[at:]
	sign, meant := "", ""
	switch {
	case !strings.HasPrefix(i.Msg, "Syntax error: "):
		return false
	case strings.HasPrefix(rest, ">") && strings.HasSuffix(before, "<"):
		sign, meant, at = "<>", "!=", at-1
	case !strings.Contains(i.Msg, "token recognition error"):
		return false
	case strings.HasPrefix(rest, "=") && (strings.HasSuffix(before, "==") || strings.HasSuffix(before, "!=")):
		meant = before[len(before)-2:]
		sign, at = meant+"=", at-2
	case strings.HasPrefix(rest, "=>"):
		sign, meant = "=>", ">="
	case strings.HasPrefix(rest, "=!"):
		sign, meant = "=!", "!="
	case strings.HasPrefix(rest, "="):
		sign, meant = "=", "=="
	case strings.HasPrefix(rest, "&"), strings.HasPrefix(rest, "|"):
		sign, meant = rest[:1], rest[:1]+rest[:1]
	default:
		return false
	}
	i.Offset = at
	i.Msg = fmt.Sprintf("Syntax error: CEL has no %s: write %s", sign, meant)
	return true
}

// follows is a syntax error after which all others may be of the same making.
type follows struct{ first *Issue }

func (f follows) explains(i *Issue) bool {
	return i.Offset > f.first.Offset && strings.HasPrefix(i.Msg, "Syntax error: ") && !strings.HasPrefix(i.Msg, "Syntax error: CEL has no ")
}

// Where keys stand that people write as if they were fields.
var (
	chainBefore = regexp.MustCompile(`[A-Za-z_]\w*(?:\.\??[A-Za-z_]\w*|\[[^\]]*\])*[/-]$`)
	mapOfKeys   = regexp.MustCompile(`^(.*\.\??(?:labels|annotations|nodeSelector|matchLabels|data))\.\??(.+)$`)
	restOfKey   = regexp.MustCompile(`^[\w./-]*`)
)

// plainKey tells of a key with slashes or dashes that is written as a field: CEL
// takes it for a division or a subtraction of names that it does not know.
func (i *Issue) plainKey(source string) []cause {
	at := min(i.Offset, len(source))
	m := mapOfKeys.FindStringSubmatch(chainBefore.FindString(source[:at]))
	if m == nil {
		return nil
	}
	rest := restOfKey.FindString(source[at:])
	if dot := strings.LastIndexByte(rest, '.'); dot >= 0 && strings.HasPrefix(source[at+len(rest):], "(") {
		rest = rest[:dot] // a method of what the key holds
	}
	key := m[2] + rest
	mark := ""
	if strings.Contains(m[1], "?") {
		mark = "?"
	}
	i.Offset = at - len(m[2])
	i.Msg += fmt.Sprintf(": a key that is no name is an index: write %s[%s'%s']", m[1], mark, key)
	return []cause{keyParts{i, at + len(rest)}}
}

// keyParts is a key of which each part is an issue.
type keyParts struct {
	told *Issue
	end  int
}

func (k keyParts) explains(i *Issue) bool {
	return i != k.told && k.told.Offset < i.Offset && i.Offset < k.end
}

var (
	longDuration = regexp.MustCompile(`^['"](\d{1,6})([dw])['"]`)
	applied      = regexp.MustCompile(`^found no matching overload for '([^']+)' applied to '(.*)'$`)
)

// hint adds what to write instead for a mistake that people are known to make;
// rest is the source from where it was found.
func hint(msg, rest string) string {
	switch {
	case strings.Contains(msg, "invalid argument to has() macro"):
		return `: has() takes a field selection; for a key write 'key' in object.metadata.labels`
	case msg == "invalid duration argument":
		return durationHint(rest)
	case strings.HasPrefix(msg, "expected type 'bool' but found 'optional_type("):
		return optionalHint("false")
	}
	if m := applied.FindStringSubmatch(msg); m != nil && strings.Contains(m[2], "optional_type(") {
		return optionalHint(defaultBeside(m[1], m[2]))
	}
	return ""
}

func durationHint(rest string) string {
	m := longDuration.FindStringSubmatch(rest)
	if m == nil {
		return ": write it such as 90s, 10m or 24h"
	}
	hours, err := strconv.Atoi(m[1])
	if err != nil {
		return ""
	}
	if hours *= 24; m[2] == "w" {
		hours *= 7
	}
	return fmt.Sprintf(": the largest unit is the hour: write %dh", hours)
}

// optionalHint says how an optional value becomes one.
func optionalHint(otherwise string) string {
	return fmt.Sprintf(": what .? and [? give may be absent: say with .orValue(%s) what counts then", otherwise)
}

// defaultBeside is a value of the type that an optional one meets, as far as a
// call tells.
func defaultBeside(function, signature string) string {
	if function == "@in" {
		return "{}"
	}
	if value, ok := defaults[spelledType.FindString(optionalType.ReplaceAllString(signature, ""))]; ok {
		return value
	}
	return "…"
}

var (
	optionalType = regexp.MustCompile(`optional_type\([^)]*\)`)
	spelledType  = regexp.MustCompile(`\b(list|map|string|uint|int|double|bool)\b`)
	defaults     = map[string]string{"list": "[]", "map": "{}", "string": "''", "uint": "0u", "int": "0", "double": "0.0", "bool": "false"}
)
