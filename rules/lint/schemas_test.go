package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// schemaChecks are those that need to know the resources.
var schemaChecks = []string{"cel-type", "patch-field", "resource-name", "older-version", "cluster-scoped-namespaces", "subresource-missing", "status-subresource", "atomic-list", "merge-list", "immutable-field", "int-or-string"}

// knowing is what is known from the built-in kinds and CRD manifests.
func knowing(t testing.TB, crds string) lint.Known {
	t.Helper()
	docs, err := yamldoc.Parse("crd.yaml", []byte(crds), yamldoc.ManifestLimits)
	if err != nil {
		t.Fatal(err)
	}
	var manifests []map[string]any
	for _, doc := range docs {
		v, err := yamldoc.Value(doc.Root)
		if err != nil {
			t.Fatal(err)
		}
		if m := v.(map[string]any); m["kind"] == "CustomResourceDefinition" {
			manifests = append(manifests, m)
		}
	}
	catalog, err := gvr.NewCatalog(manifests...)
	if err != nil {
		t.Fatal(err)
	}
	own, err := openapi.NewCRDs(manifests...)
	if err != nil {
		t.Fatal(err)
	}
	return offline.Known{Catalog: catalog, Types: openapi.Join(own, openapi.Builtin())}
}

// found are the findings of some checks as line:column: message [id].
func found(report lint.Report, ids ...string) []string {
	var out []string
	for _, f := range report.Findings {
		if slices.Contains(ids, f.Check.ID) || f.Problem.Check != "" {
			out = append(out, fmt.Sprintf("%d:%d: %s [%s]", f.Problem.Pos.Line, f.Problem.Pos.Column, f.Problem.Msg, f.Check.ID))
		}
	}
	return out
}

// rule is a rule from its spec, whose first line is line 4 of the file.
func rule(spec string) rules.Source {
	lines := strings.Split(strings.Trim(spec, "\n"), "\n")
	for i := range lines {
		lines[i] = "  " + strings.TrimPrefix(lines[i], "\t")
	}
	return rules.Source{Name: "rule.yaml", Data: []byte("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r}\nspec:\n" + strings.Join(lines, "\n") + "\n")}
}

// schemaCase is a rule, and what one check finds in it.
type schemaCase struct {
	name string
	crds string
	spec string
	want []string
}

func testCheck(t *testing.T, id string, cases []schemaCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var want []string
			for _, w := range tc.want {
				want = append(want, w+" ["+id+"]")
			}
			if diff := cmp.Diff(want, found(lint.Run(knowing(t, tc.crds), rule(tc.spec)), id)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// All that ships is free of findings.
func TestWhatShipsHasNoFindingsOfSchemas(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/rule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := filepath.Glob("../builtin/*.yaml")
	if err != nil || len(files) < 20 || len(builtin) == 0 {
		t.Fatalf("found %d examples and %d built-in rules: %v", len(files), len(builtin), err)
	}
	for _, file := range append(files, builtin...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crds, err := os.ReadFile(filepath.Join(filepath.Dir(file), "crd.yaml"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		report := lint.Run(knowing(t, string(crds)), rules.Source{Name: file, Data: data})
		for _, finding := range found(report, schemaChecks...) {
			t.Errorf("%s:%s", file, finding)
		}
	}
}
