package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// Whatever stands in a file, lint ends, and what it finds stands in the file.
func FuzzRun(f *testing.F) {
	for _, pattern := range []string{"../testdata/bad/*.*", "../../examples/*/rule.yaml", "../builtin/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			if filepath.Ext(file) != ".golden" {
				f.Add(string(data))
			}
		}
	}
	f.Add("# rectifier:ignore cost x\n---\n\r# rectifier:ignore\r\napiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r}\nspec:\n  resource: {version: v1, resource: pods}\n  condition: |2 # rectifier:ignore cost x\n     object.a['é'].b == '#'\n  patch: {merge: {metadata: {labels: {a: b}}}}\n")
	known := knowing(f, "")
	f.Fuzz(func(t *testing.T, text string) {
		report := lint.Run(known, rules.Source{Name: "f.yaml", Data: []byte(text)})
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1
		for _, found := range report.Findings {
			if at := found.Problem.Pos; at.File != "f.yaml" || at.Line < 1 || at.Line > lines || at.Column < 1 {
				t.Errorf("%s is outside of the file [%s]", found.Problem, found.Check.ID)
			}
			if lint.Find(found.Check.ID) != found.Check || found.Problem.Msg == "" {
				t.Errorf("%s: check %q", found.Problem, found.Check.ID)
			}
		}
	})
}
