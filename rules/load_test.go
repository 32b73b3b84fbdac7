package rules

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// source reads a rule file of the test's own.
func source(t testing.TB, path string) Source {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Source{Name: filepath.Base(path), Data: data}
}

// load compiles rules that have to be right.
func load(t testing.TB, texts ...string) *Set {
	t.Helper()
	sources := make([]Source, len(texts))
	for i, text := range texts {
		sources[i] = Source{Name: fmt.Sprintf("%d.yaml", i+1), Data: []byte(text)}
	}
	set, problems := Load(sources...)
	for _, p := range problems {
		t.Errorf("%s", p.Detail())
	}
	for _, s := range sources {
		if _, err := validate(t, s.Name, s.Data); err != nil {
			t.Errorf("a rule that loads does not fit the JSON Schema: %v\n%s", err, s.Data)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return set
}

func ruleNames(s *Set) []string {
	out := []string{}
	for _, r := range s.All() {
		out = append(out, r.Name)
	}
	return out
}

// report is what a user sees of a load: the rules that are used, and what is
// wrong with the others.
func report(set *Set, problems []*Problem) string {
	var b strings.Builder
	fmt.Fprintf(&b, "loaded: %s\n", strings.Join(ruleNames(set), " "))
	for _, p := range problems {
		fmt.Fprintf(&b, "\n%s\n", p.Detail())
	}
	return b.String()
}

// Every file of testdata/bad has something wrong with it; the golden file
// beside it holds all that is reported, to the column. A rule called good in
// it loads nevertheless, one called bad never does.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.*")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			s := source(t, file)
			set, problems := Load(s)
			got := report(set, problems)
			golden := file + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(problems) == 0 {
				t.Error("nothing was found wrong")
			}
			readable := strings.Contains(got, "loaded: good") || !strings.Contains(string(s.Data), "name: good")
			if !readable || slices.Contains(ruleNames(set), "bad") {
				t.Errorf("loaded: %v", ruleNames(set))
			}
			for _, p := range problems {
				checkPosition(t, s, p)
			}
		})
	}
}

// checkPosition holds for every problem whatever it says: it points into the
// file, and the line that it shows is that line.
func checkPosition(t *testing.T, s Source, p *Problem) {
	t.Helper()
	lines := strings.Split(strings.ReplaceAll(string(s.Data), "\r\n", "\n"), "\n")
	if p.Pos.File != s.Name || p.Pos.Line < 1 || p.Pos.Line > len(lines) {
		t.Errorf("%s is not in the file", p.Pos)
		return
	}
	line := lines[p.Pos.Line-1]
	if p.Line != "" && p.Line != line {
		t.Errorf("%s shows %q instead of %q", p.Pos, p.Line, line)
	}
	if n := len([]rune(line)); p.Pos.Column < 1 || p.Pos.Column > n+1 {
		t.Errorf("%s is outside of a line of %d", p.Pos, n)
	}
}

const goodRule = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: NAME}
spec:
  resource: {version: v1, resource: configmaps}
  patch: {merge: {data: {a: "1"}}}
`

// named is a rule that loads.
func named(name string) string { return strings.ReplaceAll(goodRule, "NAME", name) }

func TestAllDocumentsOfAFileAreRead(t *testing.T) {
	one, two := named("one"), named("two")
	indented := func(s string) string {
		return strings.ReplaceAll("- "+strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
	}
	jsonRule := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"rectifier.dev/v1alpha1","kind":"Rule","metadata":{"name":%q},"spec":{"resource":{"version":"v1","resource":"configmaps"},"patch":{"merge":{"data":{"a":"1"}}}}}`, name)
	}
	both := []string{"one", "two"}
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"several documents", one + "---\n" + two, both},
		{"markers around everything", "---\n" + one + "...\n---\n" + two + "...\n", both},
		{"YAML-01 comments and separators only", "---\n# Source: chart/t.yaml\n---\n", []string{}},
		{"YAML-01 a leading comment", "# a comment\n---\n" + one, []string{"one"}},
		{"YAML-01 nothing", "", []string{}},
		{"empty documents between", one + "---\n---\n# nothing\n---\n" + two, both},
		{"YAML-08 CRLF", strings.ReplaceAll(one+"---\n"+two, "\n", "\r\n"), both},
		{"YAML-08 byte-order mark", "\ufeff" + one + "---\n" + two, both},
		{"YAML-08 both", "\ufeff" + strings.ReplaceAll(one+"---\n"+two, "\n", "\r\n"), both},
		{"a List", "apiVersion: v1\nkind: List\nitems:\n" + indented(one) + indented(two), both},
		{"a RuleList", "apiVersion: rectifier.dev/v1alpha1\nkind: RuleList\nitems:\n" + indented(one), []string{"one"}},
		{"a List in a List", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  " + strings.ReplaceAll(indented(one), "\n", "\n  ") + "\n", []string{"one"}},
		{"an empty List", "apiVersion: v1\nkind: List\nitems: []\n", []string{}},
		{"a List without items", "apiVersion: v1\nkind: List\nitems:\n", []string{}},
		{"JSON", jsonRule("one"), []string{"one"}},
		{"JSON values in a row", jsonRule("one") + "\n" + jsonRule("two"), both},
		{"tests beside rules", one + "---\napiVersion: rectifier.dev/v1alpha1\nkind: RuleTest\nmetadata: {name: t}\n", []string{"one"}},
		{"rules sorted by name", two + "---\n" + one, both},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set := load(t, tc.text)
			if diff := cmp.Diff(tc.want, ruleNames(set)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// YAML-09: anchors and merge keys give what they stand for, and an explicit
// key wins over a merged one.
func TestAnchorsAndMergeKeys(t *testing.T) {
	set := load(t, `
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: anchors}
spec:
  resource: &r {version: v1, resource: configmaps}
  variables:
    - name: &name one
      expression: &e object.metadata.name
    - name: two
      expression: *e
  patches:
    - merge: {data: &d {k: "1", m: "${variables.one + variables.two}"}}
    - merge:
        data:
          <<: *d
          k: "2"
          z: "3"
`)
	got := evaluate(t, set, `{metadata: {name: x}}`).Object["data"]
	if diff := cmp.Diff(map[string]any{"k": "2", "m": "xx", "z": "3"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPositionsCountFromTheStartOfTheFile(t *testing.T) {
	bad := strings.Replace(named("bad"), "patch:", "condition: foo\n  patch:", 1)
	for _, tc := range []struct{ name, text, want string }{
		{"LF", named("one") + "---\n" + bad, "f.yaml:13:14"},
		{"CRLF", strings.ReplaceAll(named("one")+"---\n"+bad, "\n", "\r\n"), "f.yaml:13:14"},
		{"byte-order mark", "\ufeff" + named("one") + "---\n" + bad, "f.yaml:13:14"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := Load(Source{Name: "f.yaml", Data: []byte(tc.text)})
			if len(problems) != 1 || problems[0].Pos.String() != tc.want || problems[0].Line != "  condition: foo" {
				t.Errorf("got %v, want one at %s", problems, tc.want)
			}
		})
	}
}

func TestUnreadableFileLeavesTheOthers(t *testing.T) {
	set, problems := Load(
		Source{Name: "a.yaml", Data: []byte(named("a"))},
		Source{Name: "b.yaml", Data: []byte("a: [")},
		Source{Name: "c.yaml", Data: []byte{0xff, 0xfe, 'a', 0}},
		Source{Name: "d.yaml", Data: []byte(named("d"))},
	)
	if diff := cmp.Diff([]string{"a", "d"}, ruleNames(set)); diff != "" {
		t.Error(diff)
	}
	var files []string
	for _, p := range problems {
		files = append(files, p.Pos.File)
	}
	if diff := cmp.Diff([]string{"b.yaml", "c.yaml"}, files); diff != "" {
		t.Error(diff)
	}
}

func TestSameNameInTwoFiles(t *testing.T) {
	set, problems := Load(
		Source{Name: "a.yaml", Data: []byte(named("same"))},
		Source{Name: "b.yaml", Data: []byte(named("same"))},
		Source{Name: "c.yaml", Data: []byte(named("other"))},
	)
	want := `loaded: other

a.yaml:3:18: rule "same": there is another rule of this name at b.yaml:3:18: neither is used
  3 | metadata: {name: same}
                       ^

b.yaml:3:18: rule "same": there is another rule of this name at a.yaml:3:18: neither is used
  3 | metadata: {name: same}
                       ^
`
	if diff := cmp.Diff(want, report(set, problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What stands beside rules in a folder is not our business, unless it claims
// to be a rule.
func TestOtherDocumentsInAFolder(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\n---\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n---\n" +
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret}]\n---\n" + named("one")
	if set, problems := Load(Source{Name: "f.yaml", Data: []byte(text), Listed: true}); len(problems) != 0 || len(set.All()) != 1 {
		t.Errorf("%s", report(set, problems))
	}
	for _, text := range []string{
		"apiVersion: rectifier.dev/v1\nkind: Rule\n", "apiVersion: rectifier.io/v1alpha1\nkind: Rule\n",
		"apiVersion: rectifier.dev/v1alpha1\nkind: Rul\n", "kind: Rule\nspec: {}\n", "replicas: 3\n",
	} {
		if _, problems := Load(Source{Name: "f.yaml", Data: []byte(text), Listed: true}); len(problems) != 1 {
			t.Errorf("%q: %v", text, problems)
		}
	}
}

// SEC-06: what is made to exhaust the parser is refused at once.
func TestLimits(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"over 1 MiB", "# " + strings.Repeat("x", MaxFileBytes), "f.yaml:1:1: the file is larger than 1048576 bytes (1 MiB)"},
		{"20000 brackets", strings.Repeat("[", 20000), "depth"},
		{"20000 brackets that close", strings.Repeat("[", 20000) + strings.Repeat("]", 20000), "depth"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			begin := time.Now()
			_, problems := Load(Source{Name: "f.yaml", Data: []byte(tc.text)})
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), tc.want) {
				t.Errorf("got %v, want %q", problems, tc.want)
			}
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	if _, problems := Load(Source{Name: "f.yaml", Data: []byte(named("one") + "# " + strings.Repeat("x", MaxFileBytes-len(goodRule)-16))}); problems != nil {
		t.Errorf("a file within the limit: %v", problems)
	}
}

func TestSetKnowsItsResources(t *testing.T) {
	set := load(t, named("b"), named("a"), strings.Replace(named("c"), "resource: {version: v1, resource: configmaps}",
		"resources: [{group: apps, version: v1, resource: deployments}, {version: v1, resource: configmaps}]", 1))
	var got []string
	for _, gvr := range set.Resources() {
		line := ResourceName(gvr) + ":"
		for _, r := range set.For(gvr) {
			line += " " + r.Name
		}
		got = append(got, line)
	}
	want := []string{"apps/v1/deployments: c", "v1/configmaps: a b c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var empty Set
	if len(empty.All())+len(empty.Resources()) != 0 {
		t.Error("the zero Set is not empty")
	}
}

func TestCaretStandsBelowTheColumnBehindTabsAndWideRunes(t *testing.T) {
	p := &Problem{Line: "\tä: foo", Msg: "m"}
	p.Pos.File, p.Pos.Line, p.Pos.Column = "f", 7, 5
	if diff := cmp.Diff("f:7:5: m\n  7 | \tä: foo\n      \t   ^", p.Detail()); diff != "" {
		t.Error(diff)
	}
}
