package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// program stands for cmd/rectifier: it prints its version and, for each shell, a line.
const program = `package main

import (
	"fmt"
	"os"
)

var version = ""

func main() {
	if os.Args[1] == "version" {
		fmt.Printf("{\"version\": %q}", version)
		return
	}
	fmt.Println("completion for", os.Args[2])
}
`

// tree makes a repository with one commit.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.org/rectifier\n\ngo 1.26.0\n", "cmd/rectifier/main.go": program,
		"LICENSE": "license\n", "README.md": "readme\n", "CHANGELOG.md": "changes\n", ".gitignore": "/dist/\n",
	} {
		write(t, filepath.Join(root, name), content)
	}
	command(t, root, "git", "init", "-q")
	command(t, root, "git", "add", ".")
	t.Setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
	command(t, root, "git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "program")
	command(t, root, "git", "tag", "v1.2.3")
	t.Setenv("SOURCE_DATE_EPOCH", "")
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// defaults are the options of `make release`, with one platform beside the host.
func defaults(root string) options {
	return options{output: filepath.Join(root, "dist"), platforms: host().String() + ",darwin/arm64"}
}

func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program with an empty build cache")
	}
	root := tree(t)
	o := defaults(root)
	o.verify = true
	write(t, filepath.Join(root, "dist", "rectifier_v1.2.2_linux_amd64.tar.gz"), "of the last release")
	var said bytes.Buffer
	if err := run(t.Context(), root, o, &said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "verified: the same bytes") {
		t.Errorf("the second build was not compared:\n%s", said.String())
	}
	names := []string{"rectifier_v1.2.3_darwin_arm64", "rectifier_v1.2.3_" + host().os + "_" + host().arch}
	archives, err := filepath.Glob(filepath.Join(o.output, "*.tar.gz"))
	if err != nil || len(archives) != 2 {
		t.Fatalf("archives: %s (%v)", archives, err)
	}
	for i, name := range names {
		if archives[i] != filepath.Join(o.output, name+".tar.gz") {
			t.Errorf("archive %s, want %s", archives[i], name)
		}
		var want []string
		for _, entry := range []string{"CHANGELOG.md", "LICENSE", "README.md", "completions/_rectifier",
			"completions/rectifier.bash", "completions/rectifier.fish", "completions/rectifier.ps1", "rectifier"} {
			want = append(want, name+"/"+entry)
		}
		if diff := cmp.Diff(want, entries(t, archives[i])); diff != "" {
			t.Errorf("entries of %s (-want +got):\n%s", name, diff)
		}
	}
	command(t, o.output, "tar", "-xzf", names[1]+".tar.gz")
	if got := command(t, o.output, filepath.Join(o.output, names[1], "rectifier"), "version"); got != `{"version": "v1.2.3"}` {
		t.Errorf("the binary of the archive says %s", got)
	}
	script, err := os.ReadFile(filepath.Join(o.output, names[1], "completions/rectifier.fish"))
	if err != nil || string(script) != "completion for fish\n" {
		t.Errorf("the completion script: %q, %v", script, err)
	}
	command(t, o.output, "sha256sum", "--check", "--strict", "SHA256SUMS")
}

// entries returns an archive's names, and checks what all entries share.
func entries(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	unzipper, err := gzip.NewReader(content)
	if err != nil {
		t.Fatal(err)
	}
	if !unzipper.ModTime.IsZero() || unzipper.Name != "" {
		t.Errorf("the gzip header of %s says %s, %q", path, unzipper.ModTime, unzipper.Name)
	}
	var names []string
	for archive := tar.NewReader(unzipper); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
			t.Errorf("%s: user %d:%d, %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
	}
}

func TestADirtyTreeIsRefused(t *testing.T) {
	root := tree(t)
	write(t, filepath.Join(root, "new.txt"), "not committed")
	o := defaults(root)
	err := run(t.Context(), root, o, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "new.txt") {
		t.Fatalf("want a refusal that names the change, got %v", err)
	}
	if _, err := os.Stat(o.output); !os.IsNotExist(err) {
		t.Errorf("something was built: %v", err)
	}
	o.allowDirty, o.verify = true, true
	var said bytes.Buffer
	if err := run(t.Context(), root, o, &said); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "not verified") {
		t.Errorf("a build of no commit counts as verified:\n%s", said.String())
	}
}

func TestADifferenceIsFound(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "one")
	write(t, filepath.Join(dir, "b"), "two")
	err := compare(filepath.Join(dir, "a"), filepath.Join(dir, "b"), time.Now(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "not reproducible") {
		t.Errorf("got %v", err)
	}
}

func TestTheVersionOfTheBinaryIsChecked(t *testing.T) {
	src := &source{root: tree(t), version: "v9.9.9"}
	binary := filepath.Join(t.TempDir(), "rectifier")
	if err := compile(t.Context(), &source{root: src.root, version: "v1.2.3"}, host(), binary, nil); err != nil {
		t.Fatal(err)
	}
	if err := checkVersion(t.Context(), src, binary); err == nil || !strings.Contains(err.Error(), "v1.2.3") {
		t.Errorf("got %v", err)
	}
}

func TestPlatforms(t *testing.T) {
	for _, list := range []string{"", "linux", "linux/", "/arm64", "linux/amd64,,linux/arm64"} {
		if got, err := parsePlatforms(list); err == nil {
			t.Errorf("%q is taken for %v", list, got)
		}
	}
	got, err := parsePlatforms("linux/amd64,darwin/arm64")
	if want := []platform{{"linux", "amd64"}, {"darwin", "arm64"}}; err != nil || !cmp.Equal(got, want, cmp.AllowUnexported(platform{})) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestSourceDateEpoch(t *testing.T) {
	root := tree(t)
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	src, err := readSource(t.Context(), root)
	if err != nil || src.time.Format(time.DateOnly) != "1970-01-02" {
		t.Errorf("got %v, %v", src, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := readSource(t.Context(), root); err == nil {
		t.Error("yesterday is taken for a number of seconds")
	}
}
