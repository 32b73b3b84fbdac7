package lint_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

var update = flag.Bool("update", false, "write docs/lint/README.md anew")

const docs = "../../docs/lint/"

// index is docs/lint/README.md.
func index() string {
	var b strings.Builder
	b.WriteString("# Checks of `rectifier lint`\n\n" +
		"An error means that a rule does not do what it says, a warning that it falls into a known trap. Each page says what the check\n" +
		"finds, why that matters, what to write instead, and how to ignore it.\n\n" +
		"A comment silences a check, where the reason is given: at the end of the line of the problem, on the line above it (for a text of several\n" +
		"lines: above its key), or above the rule for all of it.\n\n" +
		"```yaml\n# rectifier:ignore ID reason\n```\n\n" +
		"This table is made by `go test ./rules/lint -run Index -update`.\n\n" +
		"| check | severity | finds |\n|---|---|---|\n")
	for _, c := range lint.Sorted() {
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", c.ID, c.ID, c.Severity, c.Summary)
	}
	return b.String()
}

func TestIndexOfChecks(t *testing.T) {
	if *update {
		if err := os.WriteFile(docs+"README.md", []byte(index()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docs + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(index(), string(got)); diff != "" {
		t.Errorf("docs/lint/README.md is not that of the checks (-checks +README):\n%s", diff)
	}
}

// Each check has a page, and each page a check.
func TestEachCheckHasAPage(t *testing.T) {
	files, err := filepath.Glob(docs + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	var pages, ids []string
	for _, file := range files {
		if name := filepath.Base(file); name != "README.md" {
			pages = append(pages, strings.TrimSuffix(name, ".md"))
		}
	}
	for _, c := range lint.Sorted() {
		ids = append(ids, c.ID)
		if c.Summary == "" || strings.HasSuffix(c.Summary, ".") || c.Severity != lint.Error && c.Severity != lint.Warning {
			t.Errorf("%s: severity %q, summary %q", c.ID, c.Severity, c.Summary)
		}
	}
	slices.Sort(pages)
	if diff := cmp.Diff(ids, pages); diff != "" {
		t.Errorf("(-checks +pages):\n%s", diff)
	}
	if len(slices.Compact(ids)) != len(lint.Checks) {
		t.Error("two checks have the same ID")
	}
}

// example is a yaml block of a page, after a comment that says whether it is
// bad or good.
type example struct {
	kind string
	line int
	text string
}

func examples(t *testing.T, page string) []example {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []example
	kind, open := "", false
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case open && line == "```":
			kind, open = "", false
		case open:
			out[len(out)-1].text += line + "\n"
		case line == "<!-- bad -->" || line == "<!-- good -->":
			kind = strings.Fields(line)[1]
		case strings.HasPrefix(line, "```yaml") && kind != "":
			out, open = append(out, example{kind: kind, line: i + 2}), true
		case line != "":
			kind = ""
		}
	}
	return out
}

// The bad example of a page has what the check finds, and the good one has not.
func TestExamplesOfThePages(t *testing.T) {
	for _, c := range lint.Sorted() {
		t.Run(c.ID, func(t *testing.T) {
			page := docs + c.ID + ".md"
			seen := map[string]int{}
			for _, e := range examples(t, page) {
				seen[e.kind]++
				// Empty lines in front: positions are those in the page.
				text := strings.Repeat("\n", e.line-1) + e.text
				report := lint.Run(knowing(t, crdsOf(e.text)), rules.Source{Name: page, Data: []byte(text), Listed: true})
				var ids []string
				for _, f := range report.Findings {
					ids = append(ids, f.Check.ID)
					if e.kind == "good" {
						t.Errorf("the good example: %s [%s]", f.Problem.Error(), f.Check.ID)
					}
				}
				if e.kind == "bad" && !slices.Contains(ids, c.ID) {
					t.Errorf("%s:%d: the bad example has only %v", page, e.line, ids)
				}
				if report.Rules == 0 {
					t.Logf("%s:%d: no rule has a name", page, e.line)
				}
			}
			if seen["bad"] == 0 || seen["good"] == 0 {
				t.Errorf("%s has %d bad and %d good examples", page, seen["bad"], seen["good"])
			}
			if head, _ := os.ReadFile(page); !strings.HasPrefix(string(head), "# "+c.ID+"\n") {
				t.Errorf("the title of %s is not its ID", page)
			}
		})
	}
}

// crdsOf are the documents of an example, if any is a CRD: an example that
// cannot be read has none.
func crdsOf(text string) string {
	if strings.Contains(text, "kind: CustomResourceDefinition") {
		return text
	}
	return ""
}
