package rules

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

func TestDetailShowsAWindowOfALongLine(t *testing.T) {
	const mark = "X"
	for name, tc := range map[string]struct {
		before, after string
		cutBefore     bool
		cutAfter      bool
	}{
		"all of it":            {strings.Repeat("a", 100), strings.Repeat("b", 59), false, false},
		"at the start":         {"", strings.Repeat("b", 100_000), false, true},
		"near the start":       {strings.Repeat("a", 80), strings.Repeat("b", 100_000), false, true},
		"in the middle":        {strings.Repeat("a", 50_000), strings.Repeat("b", 50_000), true, true},
		"at the end":           {strings.Repeat("a", 100_000), "", true, false},
		"wide runes":           {strings.Repeat("日", 300), strings.Repeat("本", 300), true, true},
		"few runes of 3 bytes": {strings.Repeat("日", 100), "", false, false},
		"tabs":                 {strings.Repeat("\t", 200), strings.Repeat("b", 200), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			column := utf8.RuneCountInString(tc.before) + 1
			p := &Problem{Pos: yamldoc.Position{File: "f.yaml", Line: 7, Column: column}, Msg: "wrong", Line: tc.before + mark + tc.after}
			lines := strings.Split(p.Detail(), "\n")
			if len(lines) != 3 || lines[0] != p.Error() {
				t.Fatalf("got %q", lines)
			}
			source, ok := strings.CutPrefix(lines[1], "  7 | ")
			caret := []rune(strings.TrimPrefix(lines[2], "      "))
			if runes := []rune(source); !ok || len(runes) > 160 || string(runes[len(caret)-1]) != mark {
				t.Errorf("%d runes, and the caret is not below %s:\n%s", len(runes), mark, p.Detail())
			}
			if strings.HasPrefix(source, "…") != tc.cutBefore || strings.HasSuffix(source, "…") != tc.cutAfter {
				t.Errorf("cut at the wrong ends: %s", source)
			}
		})
	}
	behind := &Problem{Pos: yamldoc.Position{Line: 1, Column: 301}, Line: strings.Repeat("a", 300)}
	if lines := strings.Split(behind.Detail(), "\n"); len(lines[2]) != len("  1 | ")+161 {
		t.Errorf("behind the line:\n%s", behind.Detail())
	}
}

func TestCountInvalidCountsRules(t *testing.T) {
	rule := func(name, fields string) string { return named(name) + fields + "\n---\n" }
	for name, tc := range map[string]struct {
		sources []Source
		want    int
	}{
		"none":                     {[]Source{{Name: "a.yaml", Data: []byte(named("a"))}}, 0},
		"two problems of one rule": {[]Source{{Name: "a.yaml", Data: []byte(rule("a", "  foo: 1\n  bar: 2"))}}, 1},
		"the same name twice":      {[]Source{{Name: "a.yaml", Data: []byte(named("a"))}, {Name: "b.yaml", Data: []byte(named("a"))}}, 2},
		"without a name":           {[]Source{{Name: "a.yaml", Data: []byte("foo: bar\n---\nfoo: bar\n")}}, 2},
		"unreadable, and another":  {[]Source{{Name: "a.yaml", Data: []byte("a: [")}, {Name: "b.yaml", Data: []byte(rule("b", "  foo: 1"))}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(tc.sources...)
			if got := CountInvalid(problems); got != tc.want {
				t.Errorf("got %d, want %d: %v", got, tc.want, problems)
			}
		})
	}
}

func TestATemplateThatIsNotRenderedIsToldToBeOne(t *testing.T) {
	const hint = " ({{ looks like a template, which has to be rendered first)"
	for text, want := range map[string]string{
		"kind: Rule\nx: {{ .Values.x }}\n":               "r.yaml:2:5: a key must be a string, not a list or a mapping" + hint,
		"kind: Rule\n{{- if .Values.x }}\na: b\n":        "r.yaml:2:1: invalid YAML: could not find expected ':'" + hint,
		"kind: Rule\nx: {[a]: \"${{'a': 1}}\"}\n":        "r.yaml:2:5: a key must be a string, not a list or a mapping",
		"kind: Rule\nx: {{a: 1}: \"{{ no template }}\"}": "r.yaml:2:5: a key must be a string, not a list or a mapping" + hint,
	} {
		_, problems := Load(Source{Name: "r.yaml", Data: []byte(text)})
		var got []string
		for _, p := range problems {
			got = append(got, p.Error())
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
