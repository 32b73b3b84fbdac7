package doctest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The tests of all examples pass, and each shows its rule at work.
func TestTestsOfExamples(t *testing.T) {
	report, failed := shell(t, root, "rectifier test -v examples")
	if failed || strings.Contains(report, "\nnote: ") {
		t.Errorf("rectifier test -v examples:\n%s", report)
	}
	folders, err := filepath.Glob(root + "/examples/*/before.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range folders {
		if name := filepath.Base(filepath.Dir(before)); !strings.Contains(report, "\nok   examples/"+name+"/test.yaml  ") {
			t.Errorf("the test of %s is not run", name)
		}
	}
}

// unharmed are the rules whose patch is empty where nothing is wrong: their
// condition only says so once more.
var unharmed = []string{"alert-severity", "image-pull-policy"}

// The tests of an example fail when its rule does nothing any more, when it does
// everything, and when it tells something else.
func TestTestsOfExamplesCanFail(t *testing.T) {
	tests, err := filepath.Glob(root + "/examples/*/test.yaml")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no test is found: %v", err)
	}
	for _, test := range tests {
		source := filepath.Dir(test)
		name := filepath.Base(source)
		for mutation, change := range map[string]func(spec map[string]any){
			"condition false":  func(spec map[string]any) { spec["condition"] = "false" },
			"no condition":     func(spec map[string]any) { delete(spec, "condition"); delete(spec, "match") },
			"another reason":   func(spec map[string]any) { spec["event"].(map[string]any)["reason"] = "Mutated" },
			"an unknown field": func(spec map[string]any) { spec["conditon"] = "true" },
		} {
			if mutation == "no condition" && slices.Contains(unharmed, name) {
				continue
			}
			t.Run(name+"/"+mutation, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
					t.Fatal(err)
				}
				rule := filepath.Join(dir, "rule.yaml")
				if !exists(rule) { // the built-in one
					write(t, rule, read(t, root+"/rules/builtin/"+name+".yaml"))
					write(t, filepath.Join(dir, "test.yaml"), strings.ReplaceAll(read(t, test), "builtin:"+name, "rule.yaml"))
				}
				var doc map[string]any
				if err := yaml.Unmarshal([]byte(read(t, rule)), &doc); err != nil {
					t.Fatal(err)
				}
				change(doc["spec"].(map[string]any))
				text, err := yaml.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				write(t, rule, string(text))
				if report, failed := shell(t, dir, "rectifier test ."); !failed || !strings.Contains(report, "FAIL test.yaml  ") {
					t.Errorf("the tests pass:\n%s", report)
				}
			})
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// pageFiles writes the files that docs/testing.md shows, and returns the block
// with a directive.
func pageFiles(t *testing.T, dir, directive string) string {
	t.Helper()
	text := ""
	for _, b := range blocks(t, root+"/docs/testing.md") {
		if file, isFile := strings.CutPrefix(b.directive, "file: "); isFile {
			write(t, filepath.Join(dir, file), b.text)
		}
		if b.directive == directive {
			text = b.text
		}
	}
	if text == "" {
		t.Fatalf("docs/testing.md has no block %q", directive)
	}
	return text
}

// The test that shows every field passes, with the files that it names.
func TestWholeOfATest(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules", "whole.yaml"), pageFiles(t, dir, "whole"))
	write(t, filepath.Join(dir, "rules", "crds", "crd.yaml"), read(t, root+"/examples/minimum-backup-retention/crd.yaml"))
	write(t, filepath.Join(dir, "rules", "objects.yaml"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n")
	words := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: words, annotations: {example.io/expected-replicas: five}}\nspec: {replicas: 3}\n"
	write(t, filepath.Join(dir, "rules", "before.yaml"), words+"---\n"+strings.ReplaceAll(words, "words", "other"))
	if report, failed := shell(t, dir, "rectifier test rules/whole.yaml"); failed || !strings.HasPrefix(report, "ok   rules/whole.yaml  2 cases\n") {
		t.Errorf("got:\n%s", report)
	}
}

// The steps of the workflow in docs/testing.md do what they should on the rules
// that the page shows, with a manifest that is as they want it, and fail on one
// that is not.
func TestWorkflow(t *testing.T) {
	dir := t.TempDir()
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal([]byte(pageFiles(t, dir, "workflow")), &workflow); err != nil {
		t.Fatal(err)
	}
	manifest := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, labels: {team: %}}\n"
	steps := 0
	for _, step := range workflow.Jobs["rules"].Steps {
		command, _, _ := strings.Cut(strings.TrimPrefix(step.Run, "rectifier "), " ")
		if !strings.HasPrefix(step.Run, "rectifier ") {
			continue
		}
		steps++
		write(t, filepath.Join(dir, "manifests", "web.yaml"), strings.ReplaceAll(manifest, "%", "shop"))
		if out, failed := shell(t, dir, step.Run); failed {
			t.Errorf("%s fails:\n%s", step.Run, out)
		}
		write(t, filepath.Join(dir, "manifests", "web.yaml"), strings.ReplaceAll(manifest, "%", "cart"))
		if out, failed := shell(t, dir, step.Run); failed != (command == "diff") {
			t.Errorf("%s on a wrong manifest: failed is %v:\n%s", step.Run, failed, out)
		}
	}
	if steps != 3 {
		t.Errorf("%d commands were found", steps)
	}
}
