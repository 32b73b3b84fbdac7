package rules

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a new folder; the content "-> target" makes a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReadAndLoadFolders(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		paths []string // below the folder
		want  []string
	}{
		{"a folder, recursively", map[string]string{"a.yaml": named("a"), "sub/b.yml": named("b"), "sub/deep/c.json": `{"apiVersion": "rectifier.dev/v1alpha1", "kind": "RuleTest"}`, "README.md": "text"}, []string{"."}, []string{"a", "b"}},
		{"hidden files and folders", map[string]string{"a.yaml": named("a"), ".b.yaml": named("b"), ".git/c.yaml": named("c")}, []string{"."}, []string{"a"}},
		{"a hidden folder that is named", map[string]string{".rules/a.yaml": named("a")}, []string{".rules"}, []string{"a"}},
		{"a mounted ConfigMap: each rule once", map[string]string{
			"..2026_01_01/a.yaml": named("a"), "..2026_01_01/b.yaml": named("b"), "..data": "-> ..2026_01_01", "a.yaml": "-> ..data/a.yaml", "b.yaml": "-> ..data/b.yaml",
		}, []string{"."}, []string{"a", "b"}},
		{"a folder that is a link", map[string]string{"real/a.yaml": named("a"), "link": "-> real"}, []string{"link"}, []string{"a"}},
		{"manifests beside rules", map[string]string{"a.yaml": named("a"), "deploy.yaml": "apiVersion: apps/v1\nkind: Deployment\n"}, []string{"."}, []string{"a"}},
		{"files by name, whatever they end in", map[string]string{"a.rule": named("a"), "b.yaml": named("b")}, []string{"a.rule", "b.yaml"}, []string{"a", "b"}},
		{"an empty folder", nil, []string{"."}, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := tree(t, tc.files)
			var paths []string
			for _, p := range tc.paths {
				paths = append(paths, filepath.Join(root, p))
			}
			sources, err := Read(paths, nil)
			if err != nil {
				t.Fatal(err)
			}
			set, problems := Load(sources...)
			if len(problems) > 0 {
				t.Errorf("%s", report(set, problems))
			}
			if diff := cmp.Diff(tc.want, ruleNames(set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadStandardInput(t *testing.T) {
	sources, err := Read([]string{"-"}, strings.NewReader(named("a")+"---\nfoo: bar\n"))
	if err != nil {
		t.Fatal(err)
	}
	set, problems := Load(sources...)
	want := `loaded: a

<stdin>:8:1: not a rule: a rule has apiVersion rectifier.dev/v1alpha1 and kind Rule, this has none and none
  8 | foo: bar
      ^
`
	if diff := cmp.Diff(want, report(set, problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadMissingPath(t *testing.T) {
	if _, err := Read([]string{t.TempDir(), filepath.Join(t.TempDir(), "none.yaml")}, nil); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestReadTooLargeFileIsAProblemOfThatFile(t *testing.T) {
	root := tree(t, map[string]string{"a.yaml": named("a"), "big.yaml": strings.Repeat("# x\n", MaxFileBytes/2)})
	sources, err := Read([]string{root}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if len(s.Data) > MaxFileBytes+1 {
			t.Errorf("%d bytes were read of %s", len(s.Data), s.Name)
		}
	}
	set, problems := Load(sources...)
	if len(set.All()) != 1 || len(problems) != 1 || problems[0].Pos.File != filepath.Join(root, "big.yaml") {
		t.Errorf("%s", report(set, problems))
	}
}
