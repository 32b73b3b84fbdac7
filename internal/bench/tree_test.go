package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Documentation is of a commit: changes are refused, but for what a run writes.
func TestReproducible(t *testing.T) {
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) {
		t.Helper()
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := reproducible(t.Context(), dir); err == nil {
		t.Error("what is in no repository can be measured again")
	}
	if got := commitOf(t.Context(), dir); got != "unknown" {
		t.Errorf("its commit is %q", got)
	}
	run("init", "--quiet")
	write("main.go", "package main")
	write("docs/scale.md", "scale")
	for _, path := range written {
		write(path, "of the last run")
	}
	run("add", ".")
	run("-c", "user.name=t", "-c", "user.email=t@example.io", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "all")
	for _, path := range written {
		write(path, "of this run")
	}
	if err := reproducible(t.Context(), dir); err != nil {
		t.Errorf("what a run writes counts: %v", err)
	}
	if got := commitOf(t.Context(), dir); len(got) != 12 {
		t.Errorf("the commit is %q", got)
	}
	for _, path := range []string{"docs/scale.md", "main.go", "untracked.go"} {
		t.Run(path, func(t *testing.T) {
			write(path, "changed")
			defer run("stash", "--quiet", "--include-untracked", "--", path)
			if err := reproducible(t.Context(), dir); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			if got := commitOf(t.Context(), dir); !strings.HasSuffix(got, ", with changes") {
				t.Errorf("the commit is %q", got)
			}
		})
	}
}
