package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// ruleWith writes a rule that sets data.x of ConfigMaps to a value.
func ruleWith(name, value string) string {
	return "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n" +
		"  resource: {version: v1, resource: configmaps}\n  patch: {merge: {data: {x: " + value + "}}}\n"
}

// files are sources by their name, in order: name, content, name, content …
func files(texts ...string) []Source {
	var out []Source
	for i := 0; i < len(texts); i += 2 {
		out = append(out, Source{Name: texts[i], Data: []byte(texts[i+1])})
	}
	return out
}

// inForce gives each rule of a set, what it sets data.x to, and where it stands.
func inForce(t *testing.T, set *Set) []string {
	t.Helper()
	out := []string{}
	for _, r := range set.All() {
		result := Evaluate([]*Rule{r}, Input{Resource: r.Resources[0], Object: map[string]any{"metadata": map[string]any{"name": "m"}}})
		data, _ := result.Object["data"].(map[string]any)
		out = append(out, fmt.Sprintf("%s=%v at %s", r.Name, data["x"], r.Pos))
	}
	return out
}

func TestReload(t *testing.T) {
	const broken = "nosuchfield: 1\n"
	one, two := ruleWith("one", "old"), ruleWith("two", "old")
	before := files("a.yaml", one+"---\n"+two, "b.yaml", ruleWith("three", "old"))
	for _, tc := range []struct {
		name     string
		now      []Source
		inForce  []string
		problems []string // the begin and the end of each
		changes  Changes
	}{{
		name:    "nothing has changed",
		now:     before,
		inForce: []string{"one=old at a.yaml:3:18", "three=old at b.yaml:3:18", "two=old at a.yaml:10:18"},
	}, {
		name:    "rules that move, comments and layout are no change",
		now:     files("c.yaml", "# here now\n"+strings.ReplaceAll(two, "{version: v1, resource: configmaps}", "\n    version: v1\n    resource: configmaps")+"---\n"+one, "b.yaml", "# as before\n"+ruleWith("three", "old")),
		inForce: []string{"one=old at c.yaml:13:18", "three=old at b.yaml:4:18", "two=old at c.yaml:4:18"},
	}, {
		name:    "one is changed, one goes, one comes",
		now:     files("a.yaml", ruleWith("one", "new"), "b.yaml", ruleWith("three", "old")+"---\n"+ruleWith("four", "new")),
		inForce: []string{"four=new at b.yaml:10:18", "one=new at a.yaml:3:18", "three=old at b.yaml:3:18"},
		changes: Changes{Added: []string{"four"}, Changed: []string{"one"}, Removed: []string{"two"}},
	}, {
		name:     "one does not compile, the one beside it is changed",
		now:      files("a.yaml", one+"  "+broken+"---\n"+ruleWith("two", "new"), "b.yaml", ruleWith("three", "old")),
		inForce:  []string{"one=old at a.yaml:3:18", "three=old at b.yaml:3:18", "two=new at a.yaml:11:18"},
		problems: []string{`a.yaml:7:3: rule "one": unknown field … it keeps its last good version`},
		changes:  Changes{Changed: []string{"two"}},
	}, {
		name:     "a new one that does not compile",
		now:      append(files("c.yaml", ruleWith("four", "new")+"  "+broken), before...),
		inForce:  []string{"one=old at a.yaml:3:18", "three=old at b.yaml:3:18", "two=old at a.yaml:10:18"},
		problems: []string{`c.yaml:7:3: rule "four": unknown field … "nosuchfield" in spec`},
	}, {
		name:     "a file that is no YAML",
		now:      files("a.yaml", "{{ broken", "b.yaml", ruleWith("three", "new")),
		inForce:  []string{"one=old at a.yaml:3:18", "three=new at b.yaml:3:18", "two=old at a.yaml:10:18"},
		problems: []string{"a.yaml:1:2: … the file's rules keep their last good version"},
		changes:  Changes{Changed: []string{"three"}},
	}, {
		name:     "a document of which it is not known what it is",
		now:      files("a.yaml", two+"---\n"+strings.Replace(one, "name: one", "nam: one", 1), "b.yaml", ruleWith("three", "old")),
		inForce:  []string{"one=old at a.yaml:3:18", "three=old at b.yaml:3:18", "two=old at a.yaml:3:18"},
		problems: []string{"a.yaml:10:12: unknown field … the file's rules keep their last good version"},
	}, {
		name:    "a namesake",
		now:     append(files("0.yaml", ruleWith("one", "new")), before...),
		inForce: []string{"one=old at 0.yaml:3:18", "three=old at b.yaml:3:18", "two=old at a.yaml:10:18"},
		problems: []string{
			`0.yaml:3:18: rule "one": there is another rule of this name at a.yaml:3:18; it keeps its last good version … `,
			`a.yaml:3:18: rule "one": there is another rule of this name at 0.yaml:3:18; it keeps its last good version … `,
		},
	}, {
		name:     "two new ones of one name",
		now:      append(files("c.yaml", ruleWith("four", "new")+"---\n"+ruleWith("four", "new")), before...),
		inForce:  []string{"one=old at a.yaml:3:18", "three=old at b.yaml:3:18", "two=old at a.yaml:10:18"},
		problems: []string{`c.yaml:3:18: rule "four": there is … : neither is used`, `c.yaml:10:18: rule "four": there is … : neither is used`},
	}, {
		name:    "all go",
		inForce: []string{},
		changes: Changes{Removed: []string{"one", "three", "two"}},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			old, problems := Load(before...)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			set, problems := Reload(old, tc.now...)
			if diff := cmp.Diff(tc.inForce, inForce(t, set)); diff != "" {
				t.Errorf("in force (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.changes, set.ChangesFrom(old)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if len(problems) != len(tc.problems) {
				t.Fatalf("problems: %q", problems)
			}
			for i, p := range problems {
				begin, end, _ := strings.Cut(tc.problems[i], " … ")
				if !strings.HasPrefix(p.Error(), begin) || !strings.HasSuffix(p.Error(), end) {
					t.Errorf("problem %s, not %s", p.Error(), tc.problems[i])
				}
			}
		})
	}
}

// A rule that stays in force in an old version stays so from reload to reload,
// wherever its broken text goes, and is not changed by its own repair.
func TestReloadAgain(t *testing.T) {
	good, bad := ruleWith("one", "old"), ruleWith("one", "old")+"  nosuchfield: 1\n"
	set, _ := Load(files("a.yaml", good)...)
	for _, step := range []struct {
		now     []Source
		inForce []string
		changes Changes
	}{
		{files("a.yaml", bad), []string{"one=old at a.yaml:3:18"}, Changes{}},
		{files("b.yaml", "# moved\n"+bad), []string{"one=old at b.yaml:4:18"}, Changes{}},
		{files("b.yaml", "no: [yaml"), []string{"one=old at b.yaml:4:18"}, Changes{}},
		{files("b.yaml", good), []string{"one=old at b.yaml:3:18"}, Changes{}},
		{files("b.yaml", bad), []string{"one=old at b.yaml:3:18"}, Changes{}},
		{files("b.yaml", ruleWith("one", "new")), []string{"one=new at b.yaml:3:18"}, Changes{Changed: []string{"one"}}},
		{files("b.yaml", ""), []string{}, Changes{Removed: []string{"one"}}},
		{files("b.yaml", bad), []string{}, Changes{}}, // there is no last good version any more
	} {
		next, _ := Reload(set, step.now...)
		if diff := cmp.Diff(step.inForce, inForce(t, next)); diff != "" {
			t.Fatalf("%s: in force (-want +got):\n%s", step.now[0].Data, diff)
		}
		if diff := cmp.Diff(step.changes, next.ChangesFrom(set)); diff != "" {
			t.Fatalf("%s: changes (-want +got):\n%s", step.now[0].Data, diff)
		}
		set = next
	}
}

// SEC-06: what would cost a parser its time or memory keeps the old rules, fast.
func TestReloadOfHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	set, _ := Load(files("a.yaml", ruleWith("one", "old"))...)
	for name, text := range map[string]string{
		"alias bomb":                    bomb,
		"an alias bomb within the rule": strings.Replace(ruleWith("one", "new"), "x: new", "x: new, "+strings.ReplaceAll(strings.TrimSpace(bomb), "\n", ", "), 1),
		"20000 brackets":                strings.Repeat("[", 20_000),
		"50 MiB":                        strings.Repeat("# \n", 50<<20/3),
	} {
		began := time.Now()
		next, problems := Reload(set, files("a.yaml", text)...)
		if d := time.Since(began); d > 5*time.Second { // it takes milliseconds; machines of tests may be slow
			t.Errorf("%s: it took %v", name, d)
		}
		if diff := cmp.Diff([]string{"one=old at a.yaml:3:18"}, inForce(t, next)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(problems) == 0 || !problems[0].Kept {
			t.Errorf("%s: problems %q", name, problems)
		}
	}
}

// What decides what a scalar is, is part of a rule's text; layout, comments and
// whether something is an alias are not. Anchors cost no time, however often they
// are used.
func TestDigest(t *testing.T) {
	digest := func(text string) digest {
		docs, err := yamldoc.Parse("a.yaml", []byte(text), yamldoc.ManifestLimits)
		if err != nil || len(docs) != 1 {
			t.Fatalf("%d documents, %v:\n%s", len(docs), err, text)
		}
		return digestOf(docs[0].Root)
	}
	for _, same := range [][2]string{
		{"{a: 1, b: [x, y]}", "a:   1 # one\nb:\n- x\n- y"},
		{"a: {x: 1}\nb: {x: 1}", "a: &a {x: 1}\nb: *a"},
	} {
		if digest(same[0]) != digest(same[1]) {
			t.Errorf("different digests:\n%s\n%s", same[0], same[1])
		}
	}
	for _, different := range [][2]string{
		{"a: y", `a: "y"`}, {"a: 1", "a: 2"}, {"a: [x, y]", "a: [xy]"}, {"a: [[x], y]", "a: [[x, y]]"}, {"a: ab\nc: d", "a: a\nbc: d"},
		{"a: !!str 1", "a: 1"}, {"a: !!str 1", "a: !!int 1"}, {"a: []", "a: {}"},
	} {
		if digest(different[0]) == digest(different[1]) {
			t.Errorf("the same digest:\n%s\n%s", different[0], different[1])
		}
	}
	// 2^60 nodes, were each alias followed.
	bomb := &yaml.Node{Kind: yaml.ScalarNode, Value: "x", Anchor: "a"}
	for range 60 {
		alias := &yaml.Node{Kind: yaml.AliasNode, Alias: bomb}
		bomb = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{alias, alias}, Anchor: "a"}
	}
	digestOf(bomb)
}
