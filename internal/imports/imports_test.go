package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rectifier-dev/rectifier/"

// pkg is what `go list` says of a package. Deps are all that it needs, direct
// or not, without its tests.
type pkg struct {
	ImportPath, Name, Dir, Doc                        string
	GoFiles, Imports, TestImports, XTestImports, Deps []string
}

// name is the path within the module.
func (p pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// direct are the packages that the files import, with the tests' or without.
func (p pkg) direct(tests bool) []string {
	if !tests {
		return p.Imports
	}
	return slices.Concat(p.Imports, p.TestImports, p.XTestImports)
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Name,Dir,Doc,GoFiles,Imports,TestImports,XTestImports,Deps", module+"...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read the output of go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	return pkgs
}

// within says whether a path is one of the prefixes, or below it.
func within(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

// rule forbids imports to some packages of the module.
type rule struct {
	why    string
	of     func(name string) bool // the packages that it is about
	never  []string               // what they may not import, prefixes
	deep   bool                   // nor by way of others
	tests  bool                   // nor their tests
	module bool                   // never holds names within the module
}

func in(prefixes ...string) func(string) bool {
	return func(name string) bool { return within(name, prefixes...) }
}

func notIn(prefixes ...string) func(string) bool {
	return func(name string) bool { return !within(name, prefixes...) }
}

var directions = []rule{
	{why: "nothing is built on a command", of: in("engine", "rules", "gvr", "internal", "cmd"), never: []string{"cmd"}, module: true, tests: true},
	{why: "rules are pure: the offline commands evaluate them without a cluster", of: in("rules"), never: []string{"engine", "gvr", "internal/controlplane"}, module: true, deep: true},
	{why: "rules are pure: no clients", of: in("rules"), never: []string{"k8s.io/client-go"}, deep: true},
	{why: "the tests of rules need no cluster", of: in("rules"), never: []string{"engine", "internal/controlplane"}, module: true, tests: true},
	{why: "rules/patch works on plain values", of: in("rules/patch"), never: []string{"github.com/google/cel-go", "cel.dev", "k8s.io/apiserver", "go.yaml.in", "sigs.k8s.io/yaml"}, deep: true},
	{why: "gvr knows resources, not what is done to them", of: in("gvr"), never: []string{"engine", "rules"}, module: true, deep: true},
	{why: "CEL moves to another module path with Kubernetes 1.38: one package imports it", of: notIn("rules/expression"), never: []string{"github.com/google/cel-go", "cel.dev"}, tests: true},
	{why: "controller-runtime starts the servers of the tests, and nothing else", of: notIn("internal/controlplane"), never: []string{"sigs.k8s.io/controller-runtime"}},
	{why: "what ships does not hold what only tests need", of: in("cmd"), never: []string{"sigs.k8s.io/controller-runtime", "testing", "github.com/google/go-cmp", module + "internal/controlplane"}, deep: true},
	{why: "helpers know nothing of the engine", of: in("internal/yamldoc", "internal/manifest", "internal/input"), never: []string{"engine", "rules", "gvr", "cmd"}, module: true, deep: true},
	{why: "table tests and go-cmp are enough", of: notIn(), never: []string{"github.com/stretchr/testify", "github.com/onsi"}, tests: true},
}

// breaches returns the imports of a package that a rule forbids.
func (r rule) breaches(p pkg) []string {
	if !r.of(p.name()) {
		return nil
	}
	imports := p.direct(r.tests)
	if r.deep {
		imports = slices.Concat(imports, p.Deps)
	}
	var out []string
	for _, i := range imports {
		name, inside := strings.CutPrefix(i, module)
		switch {
		case r.module && !inside:
		case i == p.ImportPath || strings.HasSuffix(i, "_test"):
		case r.module && within(name, r.never...), !r.module && within(i, r.never...):
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestImportDirections(t *testing.T) {
	pkgs := listPackages(t)
	for _, r := range directions {
		seen := false
		for _, p := range pkgs {
			seen = seen || r.of(p.name())
			for _, i := range r.breaches(p) {
				t.Errorf("%s imports %s\n\tbut %s", p.name(), i, r.why)
			}
		}
		if !seen {
			t.Errorf("the rule %q is about no package that exists", r.why)
		}
	}
}

// The test itself: each rule must be able to fail.
func TestABreachIsFound(t *testing.T) {
	for _, tc := range []struct {
		p    pkg
		want int
	}{
		{pkg{ImportPath: module + "rules", Deps: []string{"k8s.io/client-go/rest"}}, 1},
		{pkg{ImportPath: module + "rules", Deps: []string{module + "engine"}}, 1},
		{pkg{ImportPath: module + "rules", XTestImports: []string{module + "rules"}}, 0},
		{pkg{ImportPath: module + "rules/patch", Deps: []string{"go.yaml.in/yaml/v3"}}, 1},
		{pkg{ImportPath: module + "engine", Imports: []string{module + "rules", module + "gvr"}}, 0},
		{pkg{ImportPath: module + "engine", TestImports: []string{"github.com/google/cel-go/cel"}}, 1},
		{pkg{ImportPath: module + "engine", TestImports: []string{"sigs.k8s.io/controller-runtime/pkg/envtest"}}, 0},
		{pkg{ImportPath: module + "engine", Imports: []string{module + "cmd/rectifier"}}, 1},
		{pkg{ImportPath: module + "gvr", Deps: []string{module + "rules"}}, 1},
		{pkg{ImportPath: module + "cmd/rectifier", Deps: []string{"testing"}}, 1},
	} {
		var got []string
		for _, r := range directions {
			got = append(got, r.breaches(tc.p)...)
		}
		if len(got) != tc.want {
			t.Errorf("%+v: %d breaches %q, want %d", tc.p, len(got), got, tc.want)
		}
	}
}

// What may stand in the top folder. Names that begin with a dot are for tools,
// but for .ci; bin and dist are built and ignored by git.
var (
	topFolders = []string{"cmd", "deploy", "docs", "engine", "examples", "gvr", "internal", "rules", "bin", "dist"}
	topFiles   = []string{"CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "go.mod", "go.sum"}
)

func TestTopFolder(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), "."), strings.HasSuffix(e.Name(), ".test"), strings.HasSuffix(e.Name(), ".prof"), e.Name() == "coverage.out":
		case e.IsDir() && !slices.Contains(topFolders, e.Name()):
			t.Errorf("the folder %s stands at the top: CONTRIBUTING.md tells where things go", e.Name())
		case !e.IsDir():
			files = append(files, e.Name())
		}
	}
	if !slices.Equal(files, topFiles) {
		t.Errorf("the files at the top are %q, not %q", files, topFiles)
	}
}

// fewFiles is how many files a package may have before its doc.go is missed.
const fewFiles = 3

// Each package says what it is for, and no folder is a drawer.
func TestPackages(t *testing.T) {
	drawers := []string{"pkg", "util", "utils", "common", "types", "helpers", "misc", "lib"}
	for _, p := range listPackages(t) {
		for part := range strings.SplitSeq(p.name(), "/") {
			if slices.Contains(drawers, part) {
				t.Errorf("%s: a folder is named by what it is about, not %s", p.name(), part)
			}
		}
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.name())
		}
		doc, err := os.ReadFile(p.Dir + "/doc.go")
		switch n := bytes.Count(doc, []byte("\n")); {
		case err != nil && len(p.GoFiles) > fewFiles && p.Name != "main":
			t.Errorf("%s has %d files and no doc.go: %v", p.name(), len(p.GoFiles), err)
		case n > 60:
			t.Errorf("%s/doc.go has %d lines: up to 60 is what people read", p.name(), n)
		}
	}
}
