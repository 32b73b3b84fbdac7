package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declaredLink is a name of the code that links to the file which declares it.
var declaredLink = regexp.MustCompile("\\[`([A-Za-z_][A-Za-z0-9_]*)`\\]\\(([^)#]+\\.go)\\)")

// Names that documents link to a Go file are declared there.
func TestNamesOfTheCode(t *testing.T) {
	found := 0
	for _, document := range markdown(t) {
		for _, m := range declaredLink.FindAllStringSubmatch(read(t, document), -1) {
			found++
			file := filepath.Join(filepath.Dir(document), m[2])
			if !slices.Contains(declared(t, file), m[1]) {
				t.Errorf("%s: %s is not declared in %s", document, m[1], m[2])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d names were found: has the form of these links changed?", found)
	}
}

// declared lists what a Go file declares at its top level, with methods and the
// fields of structs.
func declared(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	var out []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			out = append(out, f.Name.Name)
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				out = append(out, n.Name.Name)
			case *ast.ValueSpec:
				for _, name := range n.Names {
					out = append(out, name.Name)
				}
				return false
			case *ast.Field:
				for _, name := range n.Names {
					out = append(out, name.Name)
				}
			}
			return true
		})
	}
	return out
}

var (
	goFile   = regexp.MustCompile(`(?:[\w-]+/)*[\w-]+\.go\b`)
	external = regexp.MustCompile(`\[[^\]]*\]\([a-z]+://[^)]*\)`)
)

// Go files that documents name are there: from the root, or, if only the name
// is given, anywhere.
func TestFilesOfTheCode(t *testing.T) {
	files := goFiles(t)
	for _, document := range markdown(t) {
		if filepath.Base(document) == "CHANGELOG.md" {
			continue // it tells what was
		}
		for _, name := range goFile.FindAllString(withoutTargets(read(t, document)), -1) {
			known := func(file string) bool {
				return file == name || !strings.Contains(name, "/") && filepath.Base(file) == name
			}
			if !slices.ContainsFunc(files, known) {
				t.Errorf("%s names %s, which is not there", document, name)
			}
		}
	}
}

// withoutTargets drops what links lead to, and links to elsewhere as a whole.
func withoutTargets(text string) string {
	return link.ReplaceAllString(external.ReplaceAllString(text, ""), "]")
}

// goFiles lists the repository's Go files, relative to its root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".go" {
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out = append(out, filepath.ToSlash(relative))
		}
		if os.IsNotExist(err) {
			return nil // another test's file
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
