package rules

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// What cannot be read of a rule does not keep the rest from being compiled:
// whatever stands in whatever place, there is a problem or a rule, and no panic.
func TestUnracedAnyPartMayBeBroken(t *testing.T) {
	files, err := filepath.Glob("builtin/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "testdata/bad/layers.yaml", "testdata/bad/layers-of-patches.yaml", "testdata/bad/lookup-where-value.yaml", "testdata/bad/event-secret.yaml")
	tried := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		var breakAll func(n *yaml.Node)
		breakAll = func(n *yaml.Node) {
			was := *n
			for _, text := range []string{"null", "[]", "{}", "[x]", "[null]", "{x: y}", "5", "x", "''", "${x}"} {
				var other yaml.Node
				if err := yaml.Unmarshal([]byte(text), &other); err != nil {
					t.Fatal(err)
				}
				*n = *other.Content[0]
				out, err := yaml.Marshal(&doc)
				if err != nil {
					continue // a mapping as a key
				}
				tried++
				_, definitions, problems := LoadDefinitions(Source{Name: file, Data: out})
				for _, d := range definitions {
					if d.Rule == nil && len(problems) == 0 {
						t.Errorf("a rule is missing without a problem:\n%s", out)
					}
				}
				*n = was
			}
			for _, c := range n.Content {
				breakAll(c)
			}
		}
		breakAll(doc.Content[0])
	}
	if tried < 500 {
		t.Errorf("only %d were tried", tried)
	}
}
