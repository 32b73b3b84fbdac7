package ruletest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/rules"
)

var update = flag.Bool("update", false, "write the golden files")

// Every bad file is refused with the text in its golden file, and gives no test
// (of two tests of one name, the first stays).
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f := parse(input.File{Name: filepath.Base(file), Data: data})
			var got strings.Builder
			for _, p := range f.Problems {
				got.WriteString(p.Detail() + "\n")
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(f.Problems) == 0 || len(f.Tests) > 0 && filepath.Base(file) != "same-test-twice.yaml" {
				t.Errorf("%d problems, %d tests", len(f.Problems), len(f.Tests))
			}
		})
	}
}

const valid = `
apiVersion: rectifier.dev/v1alpha1
kind: RuleTest
metadata: {name: all, labels: {a: b}, annotations: {c: d}}
spec:
  rules: [rule.yaml, "builtin:x"]
  crds: [crd.yaml]
  now: "2026-06-01T12:00:00+02:00"
  namespace: shop
  context:
    - objects.yaml
    - {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
  cases:
    - name: one
      object: &object {apiVersion: v1, kind: ConfigMap, data: {size: "1"}}
      expect:
        outcome: Patch
        rules: [a]
        object: {data: {size: "2", old: null}}
        patch: [{op: test, path: /data/size, value: null}]
        event: {reason: R, message: m}
    - name: two
      objectFile: o.yaml
      objectName: ConfigMap/c
      expect: {outcome: Error, error: ^no, exactObject: *object}
`

func TestAllFieldsAreRead(t *testing.T) {
	for name, data := range map[string]string{
		"plain": valid, "CRLF": strings.ReplaceAll(valid, "\n", "\r\n"), "BOM": "\xef\xbb\xbf" + valid, "beside others": "a: 1\n---" + valid + "---\napiVersion: v1\nkind: Secret\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(input.File{Name: "dir/test.yaml", Data: []byte(data)})
			for _, p := range f.Problems {
				t.Error(p.Detail())
			}
			if len(f.Tests) != 1 || f.Dir != "dir" {
				t.Fatalf("got %+v", f)
			}
			test := f.Tests[0]
			refs := func(all ...Ref) (out []string) {
				for _, r := range all {
					out = append(out, r.Name)
				}
				return out
			}
			one, two := test.Cases[0], test.Cases[1]
			got := []any{
				test.Name, refs(test.Rules...), refs(test.CRDs...), test.Now.UTC(), test.Namespace, test.Context[0].File.Name, test.Context[1].Value["kind"],
				one.Name, one.Object.Value, string(one.Expect.Outcome), refs(one.Expect.Rules...), one.Expect.Object.Value, one.Expect.Patch.Ops[0].Path.String(),
				*one.Expect.Event.Reason, *one.Expect.Event.Message,
				two.Object.File.Name, two.Object.Name.Name, two.Expect.Error.String(), two.Expect.ExactObject.Value,
			}
			object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"size": "1"}}
			want := []any{
				"all", []string{"rule.yaml", "builtin:x"}, []string{"crd.yaml"}, time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC), "shop", "objects.yaml", "Namespace",
				"one", object, "Patch", []string{"a"}, map[string]any{"data": map[string]any{"size": "2", "old": nil}}, "/data/size",
				"R", "m", "o.yaml", "ConfigMap/c", "^no", object,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsLeftOutHasADefaultThatDoesNotChange(t *testing.T) {
	f := parse(input.File{Name: "t", Data: []byte(`{"apiVersion": "rectifier.dev/v1alpha1", "kind": "RuleTest", "metadata": {"name": "t"}, "spec": {"rules": ["r"],
		"cases": [{"name": "a", "objectFile": "o", "expect": {"outcome": "Skip"}}]}}`)})
	if len(f.Tests) != 1 {
		t.Fatalf("got %+v", f.Problems)
	}
	if test := f.Tests[0]; test.Namespace != "default" || !test.Now.Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("got %q, %s", test.Namespace, test.Now)
	}
}

// In a folder there are other files; only what may be a test counts.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"a/test.yaml": valid, "a/rule.yaml": "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nspec: [\n",
		"b/chart.yaml": "{{ if .Values.x }}\nkind: ConfigMap\n{{ end }}\n", "b/manifest.json": `{"kind": "RuleTest", "apiVersion": "example.io/v1"}`,
		"c/broken.yaml": "apiVersion: rectifier.dev/v1alpha1\nkind: RuleTest\nspec: [\n", "d/empty.yml": "", "d/notes.txt": valid,
		"e/older.yaml": "apiVersion: rectifier.dev/v1\nkind: RuleTest\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Read([]string{dir, filepath.Join(dir, "a", "test.yaml")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]int{}
	for _, f := range files {
		name, err := filepath.Rel(dir, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = [2]int{len(f.Tests), len(f.Problems)}
	}
	want := map[string][2]int{"a/test.yaml": {1, 0}, "c/broken.yaml": {0, 1}, "e/older.yaml": {0, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tests and problems (-want +got):\n%s", diff)
	}
	if _, err := Read([]string{filepath.Join(dir, "nowhere")}, nil); err == nil {
		t.Error("a path that is not there is read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := parse(input.File{Name: "fuzz.yaml", Data: data})
		if len(file.Tests) == 0 && len(file.Problems) == 0 {
			t.Error("neither a test nor a problem")
		}
		for _, p := range file.Problems {
			if p.Pos.Line < 1 || p.Pos.Column < 1 || p.Msg == "" {
				t.Errorf("a problem without a place or a message: %+v", p)
			}
		}
		for _, test := range file.Tests {
			if test.Name == "" || len(test.Rules) == 0 || len(test.Cases) == 0 {
				t.Errorf("half a test: %+v", test)
			}
			for _, c := range test.Cases {
				if (c.Object.Value == nil) == (c.Object.File.Name == "") || c.Expect.Outcome == "" || c.Name == "" {
					t.Errorf("half a case: %+v", c)
				}
				// Whatever is expected, it is held against what there is.
				Check(c, map[string]any{"kind": "ConfigMap"}, Share(nil), func(object map[string]any) Evaluation {
					return Evaluation{Seen: object, Result: rules.Result{Object: object}}
				})
			}
		}
		// What the schema refuses is refused.
		if len(file.Problems) == 0 {
			if _, err := validate(t, "fuzz.yaml", data); err != nil {
				t.Errorf("a test that is read does not fit the schema: %v", err)
			}
		}
	})
}
