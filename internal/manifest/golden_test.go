package manifest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the out.yaml files of testdata anew")

// TestGolden applies the merge patch in change.json to every object in in.yaml and expects out.yaml.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/in.yaml")
	if err != nil || len(cases) < 10 {
		t.Fatalf("found %d cases, %v", len(cases), err)
	}
	for _, in := range cases {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, patch := read(t, in), read(t, filepath.Join(dir, "change.json"))
			f := parse(t, text)
			for _, o := range f.Objects() {
				if err := o.Update(mergePatch(t, o.Value(), []byte(patch))); err != nil {
					t.Fatal(err)
				}
			}
			got, golden := output(t, f), filepath.Join(dir, "out.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, golden), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again := parse(t, got)
			for _, o := range again.Objects() {
				if err := o.Update(mergePatch(t, o.Value(), []byte(patch))); err != nil {
					t.Fatal(err)
				}
				if o.Changed() {
					t.Errorf("the second run changes %s", o.describe())
				}
			}
		})
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
