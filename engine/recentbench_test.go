package engine

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rectifier-dev/rectifier/rules"
)

// A fix is remembered in a small part of the time that its request takes,
// whatever the size of the object.
func BenchmarkNoteChange(b *testing.B) {
	set, problems := rules.Load(rules.Source{Name: "r.yaml", Data: []byte(strings.ReplaceAll(rule("r",
		"resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {fixed: b}, metadata: {labels: {team: a}}}}"), "NS", "ns"))})
	if len(problems) > 0 {
		b.Fatal(problems[0].Detail())
	}
	data := map[string]any{}
	for i := range 1000 {
		data["key-"+strings.Repeat("x", i%50)+string(rune('a'+i%26))] = strings.Repeat("value", 50)
	}
	object := map[string]any{"metadata": map[string]any{"name": "c", "namespace": "ns", "labels": map[string]any{"a": "b"}}, "data": data}
	result := rules.Evaluate(set.All(), rules.Input{Resource: configmaps, Object: object})
	e := &Engine{}
	d := &decision{Engine: e, policy: &policy{rules: set}, view: view{configmaps, &unstructured.Unstructured{Object: object}}, key: Key{Resource: configmaps.GroupResource(), Namespace: "ns", Name: "c"}}
	for b.Loop() {
		d.noteChange(Fixed, &result.Requests[0], result.Verdicts)
	}
}
