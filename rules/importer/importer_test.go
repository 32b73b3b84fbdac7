package importer

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// TestGolden imports the policies of testdata: what comes of them, and what is
// said about them, are files beside them. UPDATE=1 writes these files.
func TestGolden(t *testing.T) {
	for _, folder := range folders(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(folder, "policy.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			result := Import([]input.File{{Name: "policy.yaml", Data: data}}, Options{})
			if result.Unreadable != nil {
				t.Fatal(result.Unreadable)
			}
			golden(t, filepath.Join(folder, "rules.yaml"), result.YAML())
			golden(t, filepath.Join(folder, "notes.txt"), findings(result))
			checkLoads(t, result)
		})
	}
}

// folders are those of the cases.
func folders(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/policy.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("found %d cases, %v", len(files), err)
	}
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

func findings(r *Result) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// checkLoads gives the rules to the loader: they must be valid rule files.
func checkLoads(t *testing.T, result *Result) {
	t.Helper()
	var want []string
	for _, r := range result.Rules {
		want = append(want, r.Name)
	}
	set, problems := rules.Load(rules.Source{Name: "rules.yaml", Data: []byte(result.YAML())})
	for _, p := range problems {
		t.Errorf("%s", p.Detail())
	}
	var got []string
	for _, r := range set.All() {
		got = append(got, r.Name)
	}
	sorted := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(want, got, sorted, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("loaded rules (-want +got):\n%s", diff)
	}
}

// TestExpressionsAreUnchanged finds each expression of the policies in the
// rules, character by character.
func TestExpressionsAreUnchanged(t *testing.T) {
	compared := 0
	for _, folder := range folders(t) {
		data, err := os.ReadFile(filepath.Join(folder, "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		result := Import([]input.File{{Name: "policy.yaml", Data: data}}, Options{})
		if len(result.Rules) == 0 {
			continue
		}
		var imported strings.Builder
		docs, err := yamldoc.Parse("rules.yaml", []byte(result.YAML()), yamldoc.RuleLimits)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			value, err := doc.Value()
			if err != nil {
				t.Fatal(err)
			}
			collect(value, func(_, s string) { imported.WriteString(s + "\n") })
		}
		docs, err = yamldoc.Parse("policy.yaml", data, yamldoc.ManifestLimits)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			value, err := doc.Value()
			if err != nil {
				t.Fatal(err)
			}
			collect(value, func(key, s string) {
				if key != "expression" {
					return
				}
				compared++
				if !strings.Contains(imported.String(), strings.TrimSpace(s)) {
					t.Errorf("%s: the expression is not in the rules as it was:\n%s", folder, s)
				}
			})
		}
	}
	if compared < 25 {
		t.Errorf("only %d expressions were compared", compared)
	}
}

// collect calls f for all strings below a value, with their key.
func collect(v any, f func(key, s string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, val := range v {
			if s, ok := val.(string); ok {
				f(key, s)
			} else {
				collect(val, f)
			}
		}
	case []any:
		for _, val := range v {
			collect(val, f)
		}
	}
}

func TestNamesAreDistinctLabels(t *testing.T) {
	im := &importer{names: map[string]bool{}}
	long := strings.Repeat("long.", 20)
	label := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	for _, in := range []struct{ policy, binding, want string }{
		{"plain", "", "plain"},
		{"plain", "", "plain-2"},
		{"plain", "", "plain-3"},
		{"Dots.and_Others", "b.inding", "dots-and-others-b-inding"},
		{"pre", "pre-fix", "pre-fix"},
		{"...", "", "policy"},
		{long + "a", "", ""},
		{long + "b", "", ""},
		{long + "b", "", ""},
		{strings.Repeat("x", 63), "", strings.Repeat("x", 63)},
		{strings.Repeat("x", 63), "", ""},
	} {
		got := im.ruleName(in.policy, in.binding)
		if in.want != "" && got != in.want {
			t.Errorf("%q and %q became %q, want %q", in.policy, in.binding, got, in.want)
		}
		if !label.MatchString(got) {
			t.Errorf("%q is not a label", got)
		}
	}
	if len(im.names) != 11 {
		t.Errorf("%d distinct names of 11", len(im.names))
	}
}
