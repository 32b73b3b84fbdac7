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
			fix := "rectifier fix " + rulesOf(dir, name)
			want, err := os.ReadFile(dir + "/after.yaml")
			if err != nil {
				t.Fatal(err)
			}
			for _, input := range []string{"before.yaml", "after.yaml"} {
				if told, failed := shell(t, dir, fix+" "+input+" >"+os.DevNull); failed {
					t.Errorf("%s %s fails:\n%s", fix, input, told)
				}
				got, _ := shell(t, dir, fix+" "+input+" 2>"+os.DevNull)
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("%s %s (-after.yaml +output):\n%s", fix, input, diff)
				}
			}
			if !strings.Contains(string(gallery), "("+name+")") {
				t.Errorf("examples/README.md does not name %s", name)
			}
		})
	}
}

// rulesOf are the flags for an example: its rule and CRD, or the built-in rule
// of its name.
func rulesOf(dir, name string) string {
	if _, err := os.Stat(dir + "/rule.yaml"); err != nil {
		return "--builtin " + name
	}
	flags := "--builtin none --rules rule.yaml"
	if _, err := os.Stat(dir + "/crd.yaml"); err == nil {
		flags += " --crds crd.yaml"
	}
	return flags
}
