package lint_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// Whatever keeps a rule from loading is found under an ID of its own.
func TestUnracedProblemsOfLoadingHaveChecks(t *testing.T) {
	files, err := filepath.Glob("../testdata/bad/*.*")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var got strings.Builder
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source := rules.Source{Name: filepath.Base(file), Data: data}
		_, problems := rules.Load(source)
		var ids []string
		for _, p := range problems {
			c := lint.Find(p.Check)
			if c == nil || c.Severity != lint.Error {
				t.Errorf("%s: there is no check %q of severity error", p, p.Check)
			}
			if !slices.Contains(ids, p.Check) {
				ids = append(ids, p.Check)
			}
		}
		fmt.Fprintf(&got, "%s: %s\n", source.Name, strings.Join(ids, ", "))
		report := lint.Run(knowing(t, ""), source)
		for _, p := range problems {
			if !slices.ContainsFunc(report.Findings, func(f *lint.Finding) bool { return f.Problem.Error() == p.Error() && f.Check.ID == p.Check }) {
				t.Errorf("lint does not report: %s", p)
			}
		}
	}
	golden := "testdata/load.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunCountsRules(t *testing.T) {
	good := "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: NAME}\nspec:\n  resource: {version: v1, resource: configmaps}\n  patch: {merge: {data: {a: '1'}}}\n"
	one, bad := strings.ReplaceAll(good, "NAME", "one"), strings.ReplaceAll(strings.ReplaceAll(good, "NAME", "bad"), "patch:", "patsch:")
	for _, tc := range []struct {
		name, text string
		listed     bool
		rules      int
		findings   []string
	}{
		{name: "nothing", text: ""},
		{name: "comments only", text: "# rectifier:ignore cost it is not\n"},
		{name: "one that loads, one that does not", text: one + "---\n" + bad, rules: 2, findings: []string{"rule-format"}},
		{name: "two of one name", text: one + "---\n" + one, rules: 2, findings: []string{"duplicate-name", "duplicate-name"}},
		{name: "a broken file", text: one + "---\na: [", findings: []string{"yaml-syntax"}},
		{name: "a manifest in a file that was named", text: "apiVersion: v1\nkind: Service\n", findings: []string{"rule-format"}},
		{name: "a manifest in a folder", text: "apiVersion: v1\nkind: Service\n", listed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report := lint.Run(knowing(t, ""), rules.Source{Name: "f.yaml", Data: []byte(tc.text), Listed: tc.listed})
			var ids []string
			for _, f := range report.Findings {
				ids = append(ids, f.Check.ID)
			}
			if report.Rules != tc.rules || !slices.Equal(ids, tc.findings) {
				t.Errorf("%d rules, findings %v; want %d, %v", report.Rules, ids, tc.rules, tc.findings)
			}
		})
	}
}

// The examples, as one rule set with all their CRDs, and the built-in rules
// have no problem that their comments do not give a reason for.
func TestWhatShipsHasNoFindings(t *testing.T) {
	var sources []rules.Source
	crds := map[string]string{} // by what they say: examples may share one
	for _, pattern := range []string{"../../examples/*/rule.yaml", "../../examples/*/crd.yaml", "../builtin/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) == "crd.yaml" {
				crds[string(data)] = file
				continue
			}
			sources = append(sources, rules.Source{Name: file, Data: data})
		}
	}
	report := lint.Run(knowing(t, strings.Join(slices.Sorted(maps.Keys(crds)), "\n---\n")), sources...)
	for _, f := range report.Findings {
		t.Errorf("%s [%s]", f.Problem.Detail(), f.Check.ID)
	}
	if report.Rules < 20 {
		t.Errorf("only %d rules", report.Rules)
	}
}
