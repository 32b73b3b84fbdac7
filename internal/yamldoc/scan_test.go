package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// streamed is a stream as a Scanner sees it.
type streamed struct {
	Texts  []string
	Docs   []string // where each starts, whether it is JSON, and what is in it
	Errors []string
}

func scanAll(t testing.TB, name string, r io.Reader, limits Limits) streamed {
	t.Helper()
	var out streamed
	s := NewScanner(name, r, limits)
	for {
		c, err := s.Next()
		var e *Error
		switch {
		case err == io.EOF:
			return out
		case errors.As(err, &e):
			out.Errors = append(out.Errors, err.Error())
			continue
		case err != nil:
			t.Fatal(err)
		case len(c.Text) == 0 && !c.BOM:
			t.Fatal("an empty chunk")
		}
		text := string(c.Text)
		if c.BOM {
			text = string(utf8BOM) + text
		}
		out.Texts = append(out.Texts, text)
		d, err := c.Parse()
		if err != nil {
			out.Errors = append(out.Errors, err.Error())
		} else if d != nil {
			out.Docs = append(out.Docs, docString(d))
		}
	}
}

func docString(d *Document) string {
	v, err := d.InexactValue()
	var at []string
	walk(d.Root, func(n *yaml.Node) { at = append(at, d.Pos(n).String()) })
	return fmt.Sprintf("%v json=%v %v %v", at, d.IsJSON(), v, err)
}

// agrees holds a Scanner against Parse of the whole.
func agrees(t testing.TB, name, text string) {
	t.Helper()
	limits := Limits{MaxDepth: 1000}
	whole, wholeErr := Parse(name, []byte(text), limits)
	for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		got := scanAll(t, name, r, limits)
		if together := strings.Join(got.Texts, ""); together != text {
			t.Fatalf("the chunks are not the text:\n%q\n%q", text, got.Texts)
		}
		switch {
		case wholeErr == nil && isJSONFile(name) && slices.ContainsFunc(whole, func(d *Document) bool { return !d.IsJSON() }):
			// what becomes of it is for the caller to say
		case wholeErr == nil:
			var want []string
			for _, d := range whole {
				want = append(want, docString(d))
			}
			if diff := cmp.Diff(streamed{Texts: got.Texts, Docs: want}, got); diff != "" {
				t.Fatalf("%q: (-Parse +Scanner)\n%s", text, diff)
			}
		case len(got.Errors) == 0:
			t.Fatalf("%q: Parse says %v, the chunks %q have no error", text, wholeErr, got.Texts)
		}
	}
}

// splitsSoundly splits whatever looks like a list: the chunks must still be the text, and none may come from within another.
func splitsSoundly(t testing.TB, text string) {
	t.Helper()
	s := NewScanner("f.yaml", iotest.HalfReader(strings.NewReader(text)), Limits{})
	s.SplitFrom, s.SplitList = 0, func(head, first Chunk) bool {
		_, err := first.Parse()
		return err == nil
	}
	var together string
	was := Whole
	for {
		c, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.BOM {
			together += string(utf8BOM)
		}
		together += string(c.Text)
		if inList := was == ListHead || was == ListItem; (c.Part == ListItem || c.Part == ListTail) && !inList || c.Part == Whole && was == ListHead {
			t.Fatalf("%q: part %v after %v", text, c.Part, was)
		}
		was = c.Part
		_, _ = c.Parse()
	}
	if together != text {
		t.Fatalf("the chunks are not the text:\n%q\n%q", text, together)
	}
}

var streams = []string{
	"items:\n- a\n- b: |\n    c\n\n# d\nkind: x\n", "a: 1\nitems: # c\n  - a\n  -\n    b\n  # d\n  - [\n- c]\n---\nitems:\n- 1\n- 2", "items:\n- 'a\n- b'\n- c\n...\n",
	`{"items":[{"a":1},{"b":2}],"c":3}{"d":4}`, `{"items":[{"a":1} , {"items":[{}]} ] }`, `{"items":[{"a":1},,{"b":2}]}`, "{\"items\":[{},1]}\n---\na", `{"items":[{}`, `{"a":{"items":[{}]},"items":[{}]}`,
	"#000000{\"\":  0}00000000", "# a comment {\"a\": 1} that is long\na: 1\n",
	"", "\n", " ", "\n\n# c\n", "a: 1", "a: 1\n", "---\na: 1\n---\nb: 1\n", "--- # c\n---\n--- a\n...\n...\nb: 1\n", "a: 1\r\n---\r\nb: 2\r\n", "a: 1\r---\rb: 2",
	"\ufeffa: 1\n---\n\ufeff---\nb: 1\n", "a: |\n  ---\n  x\n  ----- BEGIN\nb: 2\n--- # next\nc: 3\n", "%YAML 1.1\n---\na: 1\n...\n%TAG ! x\n--- \n{}\n",
	"# c\n%YAML 1.1\n# d\n\n--- a\n", "a: 1\n--- {b: 2}\n---x\n", "a: 1\n----x\n", "a: 1\n---", "a: 1\n--", "---", "...", "--- \n...", "...\n---\n...\n",
	`{"a": 1}`, `{"a": 1}{"b": [1, 2, {"c": "}"}]} [3]`, "{\"a\": 1}\n{\"b\": 2}\n---\n{\"c\": 3}\n...\n{\"d\": 4}\n", "{\"a\": 1} # c\n", "{\"a\": 1}\n# c\n\n---\nb: 1\n", "{\"a\": 1}\n# c\n{\"b\": 2}",
	`{"a": "\"}{\\"}{"b": "\u00e9"}`, "{\"a\": 1}\nx\n", "{\"a\": 1}{b: 2}", "{a: 1}\n{b: 2}", "{a: \"}\"}", "{a: '\"'}\n---\n{\"b\": 2}", "{\"a\": 1}: x", "[{\"a\": [\n---\n1]}]",
	"{\"a\": 1}\n... # c\n{\"b\": 2}\n", "{\"a\": 1}\n... {\"b\": 2}\n", "{\"a\": 1} ... {\"b\": 2}\n", "{\"a\": 1,}", "{\"a\": 1", "{\"a\": tru}", "{\"a\": true, \"b\": [null, -1.5e+3, false]}x", "{,}", "[1 2]", "{\"a\" 1}", "{1: 2}", "]",
	"{\"é\": 1} {\"ü\": \n1} {\"x\": {", "a: é\xff\n", "a\x00", "é: ü\n---\nä: \u2028 x\n---\nb: c\n", strings.Repeat("[", 2000), strings.Repeat("{\"a\":", 20000), "a: \"\n---\n\"", "a: '\n...\n'",
}

func TestUnracedScannerCutsAsParse(t *testing.T) {
	for _, text := range streams {
		agrees(t, "f.yaml", text)
		agrees(t, "f.json", text)
		agrees(t, "f.yaml", strings.ReplaceAll(text, "\n", "\r\n"))
		splitsSoundly(t, text)
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range streams {
		if len(text) < 1000 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\ufeff") {
			return // only at the start of a line it is more than a character, and of a Chunk
		}
		agrees(t, "f.yaml", text)
		splitsSoundly(t, text)
	})
}

func TestChunks(t *testing.T) {
	for text, want := range map[string][]string{
		"# c\n---\na: 1\n--- # d\nb: |\n  ---\n---\n": {"# c\n", "---\na: 1\n", "--- # d\nb: |\n  ---\n", "---\n"},
		"%YAML 1.1\n---\na: 1\n...\n# c\n---\nb: 1\n": {"%YAML 1.1\n---\na: 1\n...\n", "# c\n", "---\nb: 1\n"},
		"{\"a\": 1}\n {\"b\":\n2}\n":                  {"{\"a\": 1}", "\n {\"b\":\n2}", "\n"},
		"{a: 1\n}\n{\"b\": 2}\n---\n[1][2]":           {"{a: 1\n}\n{\"b\": 2}\n", "---\n[1]", "[2]"},
	} {
		if diff := cmp.Diff(want, scanAll(t, "f.yaml", strings.NewReader(text), Limits{}).Texts); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestUnracedLimitCountsForEachDocument checks that a document beyond the limit is an error at its place, and that the next one is found.
func TestUnracedLimitCountsForEachDocument(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	limits := Limits{MaxBytes: 100 << 10}
	const tooBig = "document has more than 102400 bytes, the most that is allowed"
	for name, tc := range map[string]struct {
		text string
		want streamed
	}{
		"many small ones": {strings.Repeat("a: 1\n---\n", 50_000), streamed{}},
		"lines":           {"a: 1\n---\n" + strings.Repeat("b: 1\n", 1<<18) + "---\nc: 1\n", streamed{[]string{"a: 1\n", "---\nc: 1\n"}, nil, []string{"f:2:1: " + tooBig}}},
		"one line":        {"a: 1\n---\nb: " + long + "\n---\nc: 1\n", streamed{[]string{"a: 1\n", "---\nc: 1\n"}, nil, []string{"f:2:1: " + tooBig}}},
		"JSON":            {"{\"a\":1}\n{\"b\":[\"" + long + "\"]} {\"c\":1}", streamed{[]string{"{\"a\":1}", " {\"c\":1}"}, nil, []string{"f:1:8: " + tooBig}}},
		"not quite JSON":  {"{\"b\":[\"" + long + "\"}\r\n{}\r\n---\r\nc: 1\r\n", streamed{[]string{"---\r\nc: 1\r\n"}, nil, []string{"f:1:1: " + tooBig}}},
		"spaces":          {strings.Repeat(" ", 1<<20) + "\n---\na: 1", streamed{[]string{"---\na: 1"}, nil, []string{"f:1:1: " + tooBig}}},
		"the last":        {"a: " + long, streamed{nil, nil, []string{"f:1:1: " + tooBig}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.text), iotest.HalfReader(strings.NewReader(tc.text)), iotest.OneByteReader(strings.NewReader(tc.text))} {
				got := scanAll(t, "f", r, limits)
				if name == "many small ones" {
					if len(got.Docs) != 50_000 || got.Errors != nil {
						t.Errorf("%d documents, errors %v", len(got.Docs), got.Errors)
					}
					break
				}
				got.Docs = nil
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%.2000s", diff)
				}
			}
		})
	}
}

func TestPositionsBehindADroppedDocument(t *testing.T) {
	text := strings.Repeat("b: 1\r\n", 1<<16) + "---\r\nc: ü\r\n--- {\"a\": 1} x"
	got := scanAll(t, "f", strings.NewReader(text), Limits{MaxBytes: 1000})
	want := []string{"f:1:1: document has more than 1000 bytes, the most that is allowed", "f:65539:14: invalid JSON: unexpected 'x' after the JSON value"}
	if diff := cmp.Diff(want, got.Errors); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadErrorsEndTheScan(t *testing.T) {
	broken := errors.New("broken")
	s := NewScanner("f", io.MultiReader(strings.NewReader("a: 1\n---\nb: 1\n"), iotest.ErrReader(broken)), Limits{})
	if c, err := s.Next(); err != nil || string(c.Text) != "a: 1\n" {
		t.Errorf("%q, %v", c.Text, err)
	}
	for range 2 {
		if _, err := s.Next(); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
}

// TestUnracedLongLines checks that a file of one line is not read in quadratic time: the test would not end.
func TestUnracedLongLines(t *testing.T) {
	const items = 1 << 17
	for _, item := range []string{`{"a":1,"b":["c"]}`, `{"ä":1,"b":["c"]}`} {
		text := "[" + strings.Repeat(item+",", items) + item + "]"
		docs, err := Parse("f.json", []byte(text), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		last := docs[0].Root.Content[items]
		if got, want := docs[0].Pos(last), (Position{"f.json", 1, 1 + items*utf8.RuneCountInString(item+",") + 1}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		for _, n := range docs[0].Root.Content {
			if x, ok := docs[0].Extent(n); !ok || !bytes.Equal([]byte(text)[x.Start:x.End], []byte(item)) {
				t.Fatalf("%v: %v, %v", docs[0].Pos(n), x, ok)
			}
		}
	}
}
