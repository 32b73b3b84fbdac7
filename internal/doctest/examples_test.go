package doctest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each example makes after.yaml of before.yaml, and a second pass changes
// nothing.
func TestExamples(t *testing.T) {
	folders, err := filepath.Glob(root + "/examples/*/before.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no example is found: %v", err)
	}
	gallery, err := os.ReadFile(root + "/examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range folders {
		dir := filepath.Dir(before)
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			fix := "rectifier fix " + rulesOf(t, dir, name)
			want, wrong := read(t, dir+"/after.yaml"), read(t, before)
			if want == wrong {
				t.Error("after.yaml is before.yaml: the example shows nothing")
			}
			for _, input := range []string{"before.yaml", "after.yaml"} {
				if told, failed := shell(t, dir, fix+" "+input+" >"+os.DevNull); failed {
					t.Errorf("%s %s fails:\n%s", fix, input, told)
				}
				got, _ := shell(t, dir, fix+" "+input+" 2>"+os.DevNull)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s %s (-after.yaml +output):\n%s", fix, input, diff)
				}
			}
			if !strings.Contains(string(gallery), "("+name+")") {
				t.Errorf("examples/README.md does not name %s", name)
			}
		})
	}
}

// Every folder is an example.
func TestFoldersOfExamples(t *testing.T) {
	entries, err := os.ReadDir(root + "/examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		for _, file := range []string{"README.md", "before.yaml", "after.yaml", "test.yaml"} {
			if path := filepath.Join(root, "examples", entry.Name(), file); entry.IsDir() && read(t, path) == "" {
				t.Errorf("%s is empty", path)
			}
		}
	}
}

// rulesOf are the flags for an example: its rule, or the built-in one of its
// name, and what else its folder holds.
func rulesOf(t *testing.T, dir, name string) string {
	t.Helper()
	if !exists(dir + "/rule.yaml") {
		return "--builtin " + name
	}
	flags := "--builtin none --rules rule.yaml"
	if exists(dir + "/crd.yaml") {
		flags += " --crds crd.yaml"
	}
	if exists(dir + "/objects.yaml") {
		flags += " --objects objects.yaml"
	}
	if exists(dir + "/now") {
		flags += " --now " + strings.TrimSpace(read(t, dir+"/now"))
	}
	return flags
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
