package yamldoc

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// checkPositions checks for every character of every scalar that it stands where PosIn says, and that extents reproduce their nodes.
func checkPositions(t *testing.T, text string) {
	t.Helper()
	docs, err := Parse("f.yaml", []byte(text), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		walk(d.Root, func(n *yaml.Node) {
			if n.Kind != yaml.ScalarNode {
				return
			}
			if _, ok := d.Extent(n); !ok {
				t.Fatalf("no extent for %q in\n%s", n.Value, text)
			}
			for i, r := range n.Value {
				pos := d.PosIn(n, i)
				line := []rune(d.Line(pos.Line) + "\n")
				if pos.Column < 1 || pos.Column > len(line) {
					t.Fatalf("PosIn(%q, %d) = %v is outside of its line in\n%s", n.Value, i, pos, text)
				}
				if got := line[pos.Column-1]; got != r && got != '\\' && (r != ' ' || got != '\n') {
					t.Fatalf("PosIn(%q, %d) = %v, there is %q in\n%s", n.Value, i, pos, got, text)
				}
			}
		})
	}
}

func walk(n *yaml.Node, f func(*yaml.Node)) {
	f(n)
	for _, c := range n.Content {
		walk(c, f)
	}
}

func TestPosInFindsEveryMarkInEveryStyle(t *testing.T) {
	for name, text := range map[string]string{
		"plain":              "a: foo @bar\n",
		"plain over lines":   "a: foo\n  baz\n\n  @bar\n",
		"single":             "a: 'it''s @bar'\n",
		"single over lines":  "a: 'it''s\n   \n\n  x @bar'\n",
		"double":             "a: \"\\t\\\"\\u00e9é\\x41 @bar\"\n",
		"double joined":      "a: \"x\\\n    y\\\n   @bar\"\n",
		"double folded":      "a: \"x  \n    y\n\n   @bar\"\n",
		"literal":            "a: |\n  x\n\n   yé @bar\n",
		"literal indicator":  "a: |2-\n   x\n  @bar\n",
		"literal tab":        "a: |\n  x\ty\t@bar\n",
		"folded":             "a: >-\n  x\n  y\n\n  z\n    more\n  last é @bar\n",
		"folded comment":     "a: > # note @nope\n\n  x\n  @bar\n",
		"crlf":               "a: >\r\n  x\r\n  y\r\n\r\n  @bar\r\n",
		"tag and anchor":     "a: &x !!str  foo @bar\n",
		"tag, next line":     "a: !!str\n  foo @bar\n",
		"wide":               "日本: 'ü 😀 @bar'\n",
		"second document":    "x: 1\n---\n# c\na: 'y @bar'\n",
		"after separator":    "--- 'y @bar'\n",
		"in flow":            "a: [1, {b: 'x', c: foo @bar}]\n",
		"json":               "{\n\t\"a\": [\"\\ud83d\\ude00\\u0041\\/ @bar\"]}\n",
		"json lone half":     `{"a": "\ud83d\u0041 @bar"}`,
		"second bom":         "x: 1\n\ufeff---\na: 'y @bar'\n",
		"bom":                "\ufeffa: 'y @bar'\n",
		"unicode line break": "b: \"x\u2028y\"\na: 'y @bar'\n",
		"key":                "foo @bar: 1\n",
		"in sequence":        "- - a: |-\n      x @bar\n",
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := Parse("f.yaml", []byte(text), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			text = strings.TrimPrefix(text, "\ufeff")
			at := strings.Index(text, "@bar")
			line := strings.Count(text[:at], "\n")
			want := Position{"f.yaml", line + 1, utf8.RuneCountInString(text[strings.LastIndex(text[:at], "\n")+1:at]) + 1}
			if name == "second bom" && want.Line != 3 {
				t.Fatal(want)
			}
			found := false
			for _, d := range docs {
				walk(d.Root, func(n *yaml.Node) {
					i := strings.Index(n.Value, "@bar")
					if i < 0 {
						return
					}
					found = true
					if got := d.PosIn(n, i); got != want {
						t.Errorf("PosIn = %v, want %v", got, want)
					}
					if !strings.Contains(d.Line(want.Line), "@bar") {
						t.Errorf("Line(%d) = %q", want.Line, d.Line(want.Line))
					}
					if got := d.PosIn(n, len(n.Value)+1); got != d.Pos(n) {
						t.Errorf("out of range: %v", got)
					}
				})
			}
			if !found {
				t.Error("no node holds the mark")
			}
			if name != "unicode line break" {
				checkPositions(t, text)
			}
		})
	}
}

func TestExtents(t *testing.T) {
	text := "a: &x !!str foo # c\nb: [1, {c: d,}, # e\n  ]\nc:\n  - x: |+\n      t\n\n  - y\nd:\ne: *x\nf: {}\ng: \"q\\\"\"\n"
	docs, err := Parse("", []byte(text), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a": "foo", "b": "[1, {c: d,}, # e\n  ]", "c": "- x: |+\n      t\n\n  - y", "d": "", "e": "*x", "f": "{}", "g": `"q\""`,
	}
	root := docs[0].Root
	for i := 0; i < len(root.Content); i += 2 {
		e, ok := docs[0].Extent(root.Content[i+1])
		if got := text[e.Start:e.End]; !ok || got != want[root.Content[i].Value] {
			t.Errorf("%s: %q, %v", root.Content[i].Value, got, ok)
		}
	}
}
