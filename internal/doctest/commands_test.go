package doctest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// binaryDir holds the rectifier binary of all tests.
var binaryDir string

func TestMain(m *testing.M) { os.Exit(withBinary(m.Run)) }

// withBinary builds the binary for the time that run takes.
func withBinary(run func() int) int {
	dir, err := os.MkdirTemp("", "rectifier-doctest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "rectifier"), "./cmd/rectifier")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build rectifier: %v\n%s", err, out)
		return 1
	}
	binaryDir = dir
	return run()
}

// documents are those whose commands are run.
func documents(t *testing.T) []string {
	t.Helper()
	documents := []string{root + "/README.md", root + "/CONTRIBUTING.md", root + "/docs/testing.md", root + "/docs/faq.md"}
	for _, pattern := range []string{"/examples/*/README.md", "/docs/migration/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: nothing is found: %v", pattern, err)
		}
		documents = append(documents, found...)
	}
	return documents
}

// shell runs a command line as a reader would, and returns what is seen.
func shell(t *testing.T, dir, line string) (output string, failed bool) {
	t.Helper()
	line = strings.ReplaceAll(line, "go run ./cmd/rectifier", "rectifier")
	sh := exec.CommandContext(t.Context(), "sh", "-c", line)
	sh.Dir = dir
	// No cluster is in reach of a command that is run by mistake.
	sh.Env = append(os.Environ(), "PATH="+binaryDir+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+os.DevNull, "HOME="+dir)
	out, err := sh.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %s: %v", line, err)
	}
	return string(out), err != nil
}

// workspace is a folder with links to the repository's.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"examples", "docs"} {
		target, err := filepath.Abs(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCommandsInDocuments(t *testing.T) {
	for _, document := range documents(t) {
		t.Run(strings.TrimPrefix(document, root+"/"), func(t *testing.T) {
			dir := workspace(t)
			for _, b := range blocks(t, document) {
				file, isFile := strings.CutPrefix(b.directive, "file: ")
				switch {
				case isFile:
					path := filepath.Join(dir, file)
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(b.text), 0o600)); err != nil {
						t.Fatal(err)
					}
				case b.language != "console" && b.language != "sh":
				case b.directive == "cluster":
					for _, c := range b.commands() {
						checkSpelling(t, b.line, c.line)
					}
				default:
					for _, c := range b.commands() {
						runShown(t, dir, b.line, c, b.directive == "fails")
					}
				}
			}
		})
	}
}

func runShown(t *testing.T, dir string, line int, c command, fails bool) {
	t.Helper()
	output, failed := shell(t, dir, c.line)
	if failed != fails {
		t.Errorf("line %d: %s: failed is %v:\n%s", line, c.line, failed, output)
	}
	if c.output == "" {
		return
	}
	if diff := cmp.Diff(c.output, output); diff != "" {
		t.Errorf("line %d: %s (-document +output):\n%s", line, c.line, diff)
	}
}

var (
	flagName   = regexp.MustCompile(`(?:^|\s)(--?[a-zA-Z][a-z-]*)`)
	subcommand = regexp.MustCompile(`(?:^|[|;]\s*)(?:bin/)?(?:rectifier|go run \./cmd/rectifier) ([a-z]+)([^|;#]*)`)
	makeTarget = regexp.MustCompile(`^make ([a-z-]+)`)
)

// checkSpelling checks a command that is not run: the subcommand, its flags,
// and the target of make must exist.
func checkSpelling(t *testing.T, line int, text string) {
	t.Helper()
	if m := makeTarget.FindStringSubmatch(text); m != nil {
		makefile, err := os.ReadFile(root + "/Makefile")
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
			t.Errorf("line %d: %s: make has no such target", line, text)
		}
	}
	for _, m := range subcommand.FindAllStringSubmatch(text, -1) {
		known := helpFlags(t, m[1])
		for _, f := range flagName.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(known, f[1]) {
				t.Errorf("line %d: %s: rectifier %s has no flag %s", line, text, m[1], f[1])
			}
		}
	}
}

// helpFlags are the flags that a command's --help lists.
func helpFlags(t *testing.T, name string) []string {
	t.Helper()
	help, failed := shell(t, t.TempDir(), "rectifier "+name+" --help")
	if failed || !strings.Contains(help, "rectifier "+name) {
		t.Fatalf("there is no command %s:\n%s", name, help)
	}
	_, help, _ = strings.Cut(help, "\nFlags:\n")
	var out []string
	// What is further in is text that goes on from the line before.
	for _, m := range regexp.MustCompile(`(?m)^ {2,6}(?:(-[a-z]), )?(--[a-z-]+)`).FindAllStringSubmatch(help, -1) {
		out = append(out, m[2])
		if m[1] != "" {
			out = append(out, m[1])
		}
	}
	return out
}

// The README's table of flags is that of the binary.
func TestTableOfFlags(t *testing.T) {
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`-.*?) \\|").FindAllStringSubmatch(string(readme), -1) {
		for _, m := range regexp.MustCompile("`(--?[a-z-]+)").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, m[1])
		}
	}
	documented = append(documented, "--help", "-h")
	known := helpFlags(t, "run")
	slices.Sort(documented)
	slices.Sort(known)
	if diff := cmp.Diff(known, documented); diff != "" {
		t.Errorf("flags of run (-binary +README):\n%s", diff)
	}
}
