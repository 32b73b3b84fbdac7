package input

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files below a new folder, which becomes the working one; the
// content "-> target" makes a link.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(content, "-> "); link {
			err = os.Symlink(target, name)
		} else {
			err = os.WriteFile(name, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFileIsReadOnce(t *testing.T) {
	tree(t, map[string]string{"dir/a.yaml": "a", "dir/b.yaml": "b", "dir/link.yaml": "-> a.yaml", "other": "-> dir", "c.yaml": "-> dir/b.yaml"})
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		paths []string
		want  []string // name=content, * for those found in a folder
	}{
		{"a folder with a link in it", []string{"dir"}, []string{"dir/a.yaml=a*", "dir/b.yaml=b*"}},
		{"the folder, then the file", []string{"dir", "dir/a.yaml"}, []string{"dir/a.yaml=a", "dir/b.yaml=b*"}},
		{"the file, then the folder", []string{"dir/b.yaml", "dir"}, []string{"dir/b.yaml=b", "dir/a.yaml=a*"}},
		{"other spellings", []string{"dir/a.yaml", "./dir/a.yaml", "dir/../dir//a.yaml", filepath.Join(working, "dir/a.yaml")}, []string{"dir/a.yaml=a"}},
		{"links", []string{"c.yaml", "other/b.yaml", "dir/b.yaml", "other", "dir"}, []string{"c.yaml=b", "other/a.yaml=a*"}},
		{"standard input", []string{"-", "dir/a.yaml", "-"}, []string{"<stdin>=in", "dir/a.yaml=a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files, err := Read(tc.paths, strings.NewReader("in"), 100)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range files {
				mark := ""
				if f.Listed {
					mark = "*"
				}
				got = append(got, fmt.Sprintf("%s=%s%s", f.Name, f.Data, mark))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestALinkThatLeadsNowhereSaysSo(t *testing.T) {
	tree(t, map[string]string{"dir/a.yaml": "a", "dir/gone.yaml": "-> nowhere.yaml", "dir/.hidden.yaml": "-> nowhere.yaml", "fine/.hidden.yaml": "-> nowhere.yaml"})
	const want = "dir/gone.yaml is a link that leads nowhere, to nowhere.yaml: file does not exist"
	for _, path := range []string{"dir", "dir/gone.yaml"} {
		if _, err := Read([]string{path}, nil, 100); !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if files, err := Read([]string{"fine"}, nil, 100); err != nil || len(files) > 0 {
		t.Errorf("hidden links: got %v, %v", files, err)
	}
	if _, err := Read([]string{"missing.yaml"}, nil, 100); err == nil || err.Error() != "stat missing.yaml: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

// A shell's <(command) is the name of a pipe, which is a link to no path.
func TestAPipeIsReadByName(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skipf("this system has no names for open files: %v", err)
	}
	files, err := Read([]string{name}, nil, 100)
	if diff := cmp.Diff([]File{{Name: name, Data: []byte("a")}}, files); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
