package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func values(t *testing.T, text string) []any {
	t.Helper()
	docs, err := Parse("f.yaml", []byte(text), Limits{})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	out := []any{}
	for _, d := range docs {
		v, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func TestParseFindsTheDocumentsWithContent(t *testing.T) {
	a, b := map[string]any{"a": int64(1)}, map[string]any{"b": int64(2)}
	for text, want := range map[string][]any{
		"":                                   {},
		"\n\n":                               {},
		"# only\n":                           {},
		"---\n# Source: chart/t.yaml\n---\n": {},
		"---\n...\n---\n...\n":               {},
		"# c\n---\na: 1\n":                   {a},
		"a: 1\n---\nb: 2\n":                  {a, b},
		"a: 1\n--- # note\nb: 2\n...\n":      {a, b},
		"a: 1\n--- {b: 2}\n":                 {a, b},
		"a: 1\n---\tb\n":                     {a, "b"},
		"a: 1\n...\n---\nb: 2":               {a, b},
		"a: 1\n...\n%YAML 1.1\n---\nb: 2":    {a, b},
		"# c\n%YAML 1.1\n# d\n---\na: 1\n":   {a},
		"a: 1\r\n---\r\nb: 2\r\n":            {a, b},
		"\ufeffa: 1\r\n---\r\nb: 2\r\n":      {a, b},
		"a: 1\n\ufeff---\nb: 2\n":            {a, b},
		"a: 1\r---\rb: 2\r":                  {a, b},
		"{\"a\": 1}{\"b\": 2}\n":             {a, b},
		"{\"a\": 1}\n\n{\"b\": 2}\n":         {a, b},
		"{\"a\": 1}\n---\n{\"b\": 2}\n":      {a, b},
		"{\"a\": 1}\n---\nb: 2\n":            {a, b},
		"\t{\"a\": 1}":                       {a},
		"{\"a\": \"\\ud83d\\ude00\"}":        {map[string]any{"a": "😀"}},
		"a: |\n  ---\n  -----BEGIN CERTIFICATE-----\n---\nb: 2\n": {map[string]any{"a": "---\n-----BEGIN CERTIFICATE-----\n"}, b},
		"null\n---\na: 1\n": {nil, a},
		"a: 1\n...\nb: 2\n": {a, b},
		"----x\n":           {"----x"},
	} {
		if diff := cmp.Diff(want, values(t, text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"a: 1\nb: 2\na: 3\n", `f.yaml:3:1: duplicate key "a" (first on line 1)`},
		{"x:\n  y: 1\n  n: 2\n  on: 3\n", `f.yaml:4:3: duplicate key: on and y (line 2) both mean "true" in YAML 1.1; quote them if they are meant as strings`},
		{"---\na: 1\n---\n1: 1\n'1': 3\n", `f.yaml:5:1: duplicate key "1" (first on line 4)`},
		{"{\"a\": 1, \"a\": 2}", `f.yaml:1:10: duplicate key "a" (first on line 1)`},
		{"a: &x 1\n---\nb: *x\n", `f.yaml:3:4: unknown anchor "x" in this document`},
		{"a: &x [*x]\n", `f.yaml:1:8: anchor "x" contains itself`},
		{"a: 1\nb:\n\tc: 1\n", "f.yaml:3:1: invalid YAML: YAML is indented with spaces, and this is a tab"},
		{"\ta: 1\n", "f.yaml:1:1: invalid YAML: YAML is indented with spaces, and this is a tab"},
		{"a: 1\n----x\nb: 2\n", "f.yaml:2:1: invalid YAML: could not find expected ':'"},
		{"a: 1\n---\nb: 1\n- c\nd: 1\n", "f.yaml:4:1: invalid YAML: did not find expected key"},
		{"a:\n  - b\n  c: 3\nd: 4\n", "f.yaml:3:3: invalid YAML: did not find expected '-' indicator"},
		{"a: b\n  c: d\n", "f.yaml:2:3: invalid YAML: mapping values are not allowed in this context"},
		{"a: 1\nb: [1,\n2\n" + strings.Repeat("c: 1\n", 99), "f.yaml:2:1: invalid YAML: did not find expected ',' or ']'"},
		{"a: 1\nb: \"x\n" + strings.Repeat("c: 1\n", 99), "f.yaml:2:1: invalid YAML: found unexpected end of stream"},
		{"{a: 1}\n{b: 2}\n", "f.yaml:2:1: invalid YAML: did not find expected <document start>"},
		{"{\"a\": 1,\n \"b\" 2}\n", "f.yaml:2:6: invalid JSON: expected ':' after the key, found '2'"},
		{"{\"a\": 1}\nx\n", "f.yaml:2:1: invalid JSON: unexpected 'x' after the JSON value"},
		{"a: é\xff\n", "f.yaml:1:5: not UTF-8: invalid byte 0xff"},
		{"\xff\xfea\x00:\x00", "f.yaml:1:1: not UTF-8: the file is UTF-16; save it as UTF-8"},
		{"a\x00:\x00", "f.yaml:1:2: not UTF-8: the file holds NUL bytes (UTF-16?); save it as UTF-8"},
		{"a: 1\n~: 2\n", "f.yaml:2:1: a key must be a string, not null"},
		{"? [a]\n: 2\n", "f.yaml:1:3: a key must be a string, not a list or a mapping"},
		{"a: {<<: 3}\n", "f.yaml:1:5: a merge key needs a mapping or a list of mappings"},
	} {
		_, err := Parse("f.yaml", []byte(tc.text), Limits{})
		var e *Error
		if !errors.As(err, &e) || err.Error() != tc.want {
			t.Errorf("%.60q\n got %v\nwant %s", tc.text, err, tc.want)
		}
	}
}

func TestNumbersThatJSONCannotHold(t *testing.T) {
	for _, s := range []string{".inf", "-.inf", ".nan"} {
		docs, err := Parse("f.yaml", []byte("a: "+s+"\n"), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("f.yaml:1:4: %s is not a number that JSON can hold", s)
		if _, err := docs[0].Value(); err == nil || err.Error() != want {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestUnracedHostileInputIsRefusedQuickly(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 8), c-1)
	}
	quadratic := "a: &a [" + strings.Repeat("x,", 3000) + "]\nb: [" + strings.Repeat("*a,", 3000) + "]\n"
	// A tenth of it on an idle machine; what explodes takes minutes.
	const limit = time.Second
	for name, tc := range map[string]struct {
		text   []byte
		limits Limits
		want   string
	}{
		"alias bomb as rule":     {[]byte(bomb), RuleLimits, "excessive aliasing"},
		"alias bomb as manifest": {[]byte(bomb), ManifestLimits, "excessive aliasing"},
		"many aliases":           {[]byte(quadratic), ManifestLimits, "excessive aliasing"},
		"brackets":               {bytes.Repeat([]byte("["), 20000), RuleLimits, "max depth"},
		"closed brackets":        {[]byte(strings.Repeat("[", 20000) + strings.Repeat("]", 20000)), ManifestLimits, "max depth"},
		"json objects":           {[]byte(strings.Repeat(`{"a":`, 20000)), ManifestLimits, "max depth"},
		"dashes":                 {bytes.Repeat([]byte("- "), 9000), RuleLimits, "max depth of 64"},
		"braces":                 {bytes.Repeat([]byte("{a: "), 9000), RuleLimits, ""},
		"deep by alias":          {[]byte("a: &a " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\nb: " + strings.Repeat("[", 40) + "*a" + strings.Repeat("]", 40)), RuleLimits, "max depth of 64"},
		"large rule file":        {make([]byte, 50<<20), RuleLimits, "at most 1048576 are allowed"},
		"open quote":             {[]byte("a: \"" + strings.Repeat("x\n", 1<<18)), RuleLimits, "unexpected end of stream"},
	} {
		// The machine may be busy: the best of a few attempts counts.
		var err error
		took := time.Hour
		for attempt := 0; attempt < 10 && took > limit; attempt++ {
			start := time.Now()
			_, err = Parse("f.yaml", tc.text, tc.limits)
			took = min(took, time.Since(start))
		}
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, tc.want) {
			t.Errorf("%s: error %v", name, err)
		}
		t.Logf("%s: %v in %v", name, err, took)
		if took > limit && !raceEnabled {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

func TestNestingWithinTheLimitIsAccepted(t *testing.T) {
	for depth, ok := range map[int]bool{64: true, 65: false} {
		_, err := Parse("", []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)), RuleLimits)
		if (err == nil) != ok {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

func TestFirstErrorOfManyDocumentsIsReported(t *testing.T) {
	text := strings.Repeat("a: 1\n---\n", 300) + "a: 1\na: 2\n---\n" + strings.Repeat("b: [\n---\n", 300)
	for range 20 {
		_, err := Parse("", []byte(text), Limits{})
		if err == nil || !strings.HasPrefix(err.Error(), "602:1: duplicate key") {
			t.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: 1\n---\n{\"b\": [1]}\n")
	f.Add("a: &x {b: |\n  c\n}\nd: *x\n")
	f.Add("? >-\n  x\n\n  y\n: \"\\u00e9\\\n  z\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		docs, err := Parse("f", []byte(text), RuleLimits)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Pos.Line < 1 || e.Pos.Column < 1 {
				t.Fatalf("error %#v", err)
			}
			return
		}
		for _, d := range docs {
			_, _ = d.Value()
			_, _ = d.InexactValue()
			walk(d.Root, func(n *yaml.Node) {
				d.Pos(n)
				d.PosIn(n, len(n.Value)/2)
				d.Extent(n)
			})
		}
	})
}

// FuzzYardstick looks for single documents that sigs.k8s.io/yaml reads differently.
func FuzzYardstick(f *testing.F) {
	for _, s := range scalars {
		f.Add("a: " + strings.ReplaceAll(s, "¬", " ") + "\n")
	}
	f.Add("a: &x {b: 1}\nc: {<<: *x, d: [*x]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "!\x00\u0085\u2028\u2029\ufeff%") || strings.Count(text, "<<") > 1 {
			return // deliberately different, or not of interest
		}
		docs, err := Parse("f", []byte(text), Limits{})
		if err != nil || len(docs) != 1 || docs[0].IsJSON() {
			return // we may be stricter
		}
		got, err := docs[0].InexactValue()
		if err != nil {
			return
		}
		want, wantErr := yardstick(text)
		if wantErr != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" && !strings.Contains(text, "<<") {
			t.Fatalf("%q (-want +got):\n%s", text, diff)
		}
	})
}
