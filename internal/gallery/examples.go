package gallery

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

// impatient says what has to change in an example that is about time: the API
// server makes no objects that are old.
var impatient = map[string]struct {
	rule    *strings.Replacer
	without string // an object that is too young in the example
}{
	"service-without-workload": {rule: strings.NewReplacer("duration('1h')", "duration('1s')", "recheckAfter: 1h", "recheckAfter: 1s"), without: "wishlist"},
	"stuck-application":        {rule: strings.NewReplacer("duration('1h')", "duration('1s')", "recheckAfter: 30m", "recheckAfter: 1s")},
	"stale-job":                {rule: strings.NewReplacer("'720h'", "'720000h'")}, // its month is over
}

// Example is a folder of examples.
type Example struct {
	Name, Dir     string
	Rule          string // the text of the rule
	CRDs, Objects []map[string]any
	Before, After []map[string]any // the same objects in the same order
}

// Read reads the examples in a folder, as they can be shown at this moment and
// on a server where everything is new.
func Read(t testing.TB, folder string) []*Example {
	t.Helper()
	folders, err := filepath.Glob(folder + "/*/before.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no example is found: %v", err)
	}
	var out []*Example
	for _, path := range folders {
		dir := filepath.Dir(path)
		x := &Example{
			Name: filepath.Base(dir), Dir: dir,
			CRDs: readObjects(t, dir+"/crd.yaml"), Objects: readObjects(t, dir+"/objects.yaml"),
			Before: readObjects(t, path), After: readObjects(t, dir+"/after.yaml"),
		}
		rule, err := os.ReadFile(dir + "/rule.yaml")
		if errors.Is(err, os.ErrNotExist) {
			source, e := builtin.Source(x.Name)
			rule, err = source.Data, e
		}
		if err != nil {
			t.Fatal(err)
		}
		x.Rule = string(rule)
		if change, ok := impatient[x.Name]; ok {
			x.Rule = change.rule.Replace(x.Rule)
			if x.Rule == string(rule) {
				t.Fatalf("example %s: the rule has changed, and there is nothing to replace any more", x.Name)
			}
			young := func(o map[string]any) bool { return named(o).GetName() == change.without }
			x.Before, x.After = slices.DeleteFunc(x.Before, young), slices.DeleteFunc(x.After, young)
		}
		out = append(out, x)
	}
	return out
}

// readObjects reads a file of manifests; there are none if there is no file.
func readObjects(t testing.TB, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := manifest.Parse(path, data)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, o := range file.Objects() {
		out = append(out, runtime.DeepCopyJSON(o.Value()))
	}
	return out
}

func named(o map[string]any) *unstructured.Unstructured { return &unstructured.Unstructured{Object: o} }

// LimitedRule is the rule, for the objects of its example only: the API server
// has those of other examples and of other tests.
func (x *Example) LimitedRule(t testing.TB, catalog *gvr.Catalog) string {
	t.Helper()
	var rule map[string]any
	if err := yaml.Unmarshal([]byte(x.Rule), &rule); err != nil {
		t.Fatal(err)
	}
	names, namespaces := map[string]bool{}, map[string]bool{}
	for _, o := range x.Before {
		u := named(o)
		names[u.GetName()] = true
		if catalog.Info(u.GroupVersionKind())[0].Namespaced {
			namespaces[u.GetNamespace()] = true
		}
	}
	spec, _ := rule["spec"].(map[string]any)
	match, _ := spec["match"].(map[string]any)
	if match == nil {
		match = map[string]any{}
	}
	match["names"] = slices.Sorted(maps.Keys(names))
	if len(namespaces) > 0 {
		match["namespaces"] = slices.Sorted(maps.Keys(namespaces))
	}
	spec["match"] = match
	out, err := yaml.Marshal(rule)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
