package doctest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/rules"
)

// guardTable is the head of a table of conditions; its rows are like guardRow.
const guardTable = "| condition | guard | false on |\n|---|---|---|\n"

var guardRow = regexp.MustCompile("^\\| `(.+)` \\| (yes|no) \\| `(.+)` \\|$")

// guardExample is a condition that is false on an object. The rule is passed over
// there if the condition has a guard, and evaluated if it has none.
type guardExample struct {
	condition, object string
	guard             bool
}

// guardExamples reads the tables of conditions in a document.
func guardExamples(t *testing.T, text string) []guardExample {
	t.Helper()
	var out []guardExample
	for _, table := range strings.Split(text, guardTable)[1:] {
		for line := range strings.Lines(table) {
			if !strings.HasPrefix(line, "|") {
				break
			}
			m := guardRow.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				t.Errorf("this is no row of a table of conditions: %s", line)
				continue
			}
			out = append(out, guardExample{strings.ReplaceAll(m[1], `\|`, "|"), m[3], m[2] == "yes"})
		}
	}
	return out
}

// Conditions that documents say have a guard are not evaluated where it is false,
// and those that have none are.
func TestConditionsWithGuards(t *testing.T) {
	for document, least := range map[string]struct{ with, without int }{"cel.md": {20, 10}, "scale.md": {1, 1}} {
		found := map[bool]int{}
		for _, example := range guardExamples(t, read(t, root+"/docs/"+document)) {
			found[example.guard]++
			if got := example.passedOver(t); got != example.guard {
				t.Errorf("%s: %s on %s: the rule is passed over: %v", document, example.condition, example.object, got)
			}
		}
		if found[true] < least.with || found[false] < least.without {
			t.Errorf("%s shows %d conditions with a guard, and %d without: has the form of the table changed?", document, found[true], found[false])
		}
	}
}

// passedOver reports whether a rule with the condition is passed over. That is seen
// by what it looks up: the condition begins with that wherever it is evaluated.
func (e guardExample) passedOver(t *testing.T) bool {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: example}
spec:
  resource: {group: example.io, version: v1, resource: things}
  lookups: [{name: seen, resource: {version: v1, resource: configmaps}}]
  variables: [{name: team, expression: "object.metadata.?labels.?team.orValue('')"}]
  condition: %q
  patch: {merge: {metadata: {annotations: {example.io/changed: "true"}}}}
`, "lookups.seen.size() == 0 && ("+e.condition+")")
	set, problems := rules.Load(rules.Source{Name: "example.yaml", Data: []byte(text)})
	if len(problems) > 0 {
		t.Errorf("%s: %s", e.condition, problems[0].Detail())
		return !e.guard
	}
	asked := &recorder{}
	in := rules.Input{
		Resource: set.Resources()[0], Object: e.parsed(t), Lookups: asked,
		NamespaceObject: map[string]any{"metadata": map[string]any{"name": "default"}},
	}
	if all := rules.Evaluate(set.All(), in); len(all.Verdicts)+len(all.Unmatched) > 0 || asked.queries == 0 {
		t.Errorf("%s is not false on %s: %+v", e.condition, e.object, all.Verdicts)
	}
	asked.queries = 0
	rules.NewIndex(set.All()).Evaluate(in)
	return asked.queries == 0
}

// parsed is the object, with whole numbers as int64.
func (e guardExample) parsed(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	data, err := yaml.YAMLToJSON([]byte(e.object))
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", e.object, err)
	}
	return out
}

// recorder finds nothing, and counts how often it is asked.
type recorder struct{ queries int }

func (r *recorder) Find(rules.Query) ([]map[string]any, error) {
	r.queries++
	return nil, nil
}
