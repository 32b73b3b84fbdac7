package rules_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// repository is what tests find in the repository's own files: manifests,
// documentation, scripts and strings of Go.
type repository struct {
	files   []*rules.Set // rules that stand in one text
	rules   []*rules.Rule
	samples map[schema.GroupVersionResource][]map[string]any
	kinds   map[schema.GroupVersionResource]schema.GroupVersionKind
	types   openapi.Types
}

// collect reads all files of the repository.
func collect(t testing.TB) *repository {
	t.Helper()
	var texts []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "node_modules") {
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".md", ".txtar", ".go":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			texts = append(texts, textsIn(path, string(data))...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{samples: map[schema.GroupVersionResource][]map[string]any{}, kinds: map[schema.GroupVersionResource]schema.GroupVersionKind{}}
	for _, kind := range openapi.BuiltinKinds() {
		r.kinds[kind.GroupVersion().WithResource(plural(kind.Kind))] = kind
	}
	slices.Sort(texts)
	var objects []map[string]any
	known := []openapi.Types{openapi.Builtin()}
	for _, text := range slices.Compact(texts) {
		if strings.Contains(text, "kind: Rule") {
			if set, _ := loadText(text); len(set.All()) > 0 {
				r.files = append(r.files, set)
				r.rules = append(r.rules, set.All()...)
			}
			continue
		}
		docs, _ := yamldoc.Parse("text", []byte(text), yamldoc.ManifestLimits)
		for _, doc := range docs {
			if o, _ := doc.Value(); o != nil {
				if o, ok := o.(map[string]any); ok && o["kind"] != nil {
					objects = append(objects, o)
				}
			}
		}
	}
	for _, o := range objects {
		if o["kind"] == "CustomResourceDefinition" {
			if types, err := openapi.NewCRDs(o); err == nil {
				known = append(known, types)
				r.defines(o)
			}
		}
	}
	r.types = openapi.Join(known...)
	for _, o := range objects {
		for resource, kind := range r.kinds {
			if o["apiVersion"] == kind.GroupVersion().String() && o["kind"] == kind.Kind {
				r.samples[resource] = append(r.samples[resource], o)
			}
		}
	}
	return r
}

// defines notes the resources of a CRD.
func (r *repository) defines(crd map[string]any) {
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		kind := schema.GroupVersionKind{Group: fmt.Sprint(spec["group"]), Version: fmt.Sprint(version["name"]), Kind: fmt.Sprint(names["kind"])}
		r.kinds[kind.GroupVersion().WithResource(fmt.Sprint(names["plural"]))] = kind
	}
}

// schemaOf is the schema of a resource, nil if it is not known.
func (r *repository) schemaOf(resource schema.GroupVersionResource) rules.Schema {
	if kind, ok := r.kinds[resource]; ok {
		if typ, err := r.types.Type(context.Background(), kind); err == nil {
			return typ
		}
	}
	return nil
}

func plural(kind string) string {
	s := strings.ToLower(kind)
	switch {
	case s == "endpoints":
		return s
	case strings.HasSuffix(s, "s"):
		return s + "es"
	case strings.HasSuffix(s, "y") && !strings.HasSuffix(s, "ay"):
		return s[:len(s)-1] + "ies"
	}
	return s + "s"
}

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```ya?ml\n(.*?)^ *```")
	archiveFile = regexp.MustCompile(`(?m)^-- .* --$`)
)

// textsIn are the YAML texts in a file.
func textsIn(path, data string) []string {
	var out []string
	switch filepath.Ext(path) {
	case ".md":
		for _, m := range fencedBlock.FindAllStringSubmatch(data, -1) {
			out = append(out, m[1])
		}
	case ".txtar":
		out = archiveFile.Split(data, -1)
	case ".go":
		return stringsIn(path, data)
	default:
		out = []string{data}
	}
	return slices.DeleteFunc(out, func(s string) bool { return !strings.Contains(s, "kind:") })
}

// stringsIn are the rules in the strings of a Go file, and those that tests of this
// package write in short: rule("name", "condition: …").
func stringsIn(path, data string) []string {
	if !strings.HasSuffix(path, "_test.go") {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, data, 0)
	if err != nil {
		return nil // somebody is writing it
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name, ok := n.Fun.(*ast.Ident)
			if ok && name.Name == "rule" && len(n.Args) == 2 && filepath.Dir(path) == filepath.Join("..", "rules") {
				if spec, ok := constantText(n.Args[1]); ok {
					out = append(out, rule("short", spec))
				}
			}
		case *ast.BasicLit:
			if text, ok := constantText(n); ok && strings.Contains(text, "kind: Rule\n") {
				out = append(out, text)
			} else if ok && strings.Contains(text, "patch: {") || ok && strings.Contains(text, "patches: [") {
				out = append(out, rule("short", text)) // of a table
			}
		}
		return true
	})
	return out
}

// constantText is the value of an expression of strings.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, ok1 := constantText(e.X)
		b, ok2 := constantText(e.Y)
		return a + b, ok1 && ok2 && e.Op == token.ADD
	}
	return "", false
}

func builtinTypes() openapi.Types { return openapi.Builtin() }
