package rules

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Unmatched and Verdicts tell each rule's outcome; those in neither pass. So it is
// with rules that fail later, and are left out.
func TestUnmatchedRules(t *testing.T) {
	rule := func(name, spec string) Source {
		return Source{Name: name, Data: []byte("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n  resource: {version: v1, resource: configmaps}\n" + spec)}
	}
	set, problems := Load(
		rule("a-elsewhere", "  match: {names: [other]}\n  patch: {merge: {data: {x: a}}}\n"),
		rule("b-grows", "  match: {names: [c]}\n  patch: {merge: {data: {num: \"${object.data.num}x\"}}}\n"),
		rule("c-right", "  match: {names: [c]}\n  patch: {merge: {data: {num: \"1\"}}}\n  condition: \"false\"\n"),
		rule("d-skipped", "  match: {names: [c]}\n  patch: {merge: {data: {why: b}}}\n"),
		rule("e-elsewhere", "  match: {namespaces: [other]}\n  patch: {merge: {data: {x: a}}}\n"),
	)
	if len(problems) > 0 {
		t.Fatal(problems[0].Detail())
	}
	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"num": "1"},
		"metadata": map[string]any{"name": "c", "namespace": "ns", "annotations": map[string]any{SkipAnnotation: "d-skipped"}},
	}
	result := Evaluate(set.For(configmaps), Input{Resource: configmaps, Object: object, Now: time.Now()})
	var unmatched, verdicts []string
	for _, r := range result.Unmatched {
		unmatched = append(unmatched, r.Name)
	}
	for _, v := range result.Verdicts {
		verdicts = append(verdicts, v.Rule.Name+" "+string(v.Outcome))
	}
	if want := []string{"a-elsewhere", "e-elsewhere"}; !slices.Equal(unmatched, want) {
		t.Errorf("unmatched are %v, not %v", unmatched, want)
	}
	if want := []string{"b-grows Error", "d-skipped Skip"}; !slices.Equal(verdicts, want) {
		t.Errorf("verdicts are %v, not %v", verdicts, want)
	}
}
