package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var benchDeployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// conditions are benchConditions of what rules on one resource ask; %d makes them
// differ from rule to rule. None holds for benchObject.
var conditions = []string{
	"'example.io/opt-%d' in object.metadata.?annotations.orValue({})",
	"has(object.metadata.labels) && 'team-%d' in object.metadata.labels && object.spec.replicas > 1",
	"object.metadata.?labels[?'app'].orValue('') == 'shop-%d'",
	"object.metadata.namespace == 'ns-%d' && object.spec.template.spec.containers.exists(c, c.image.endsWith(':latest'))",
	"has(object.metadata.annotations) && has(object.metadata.annotations.owner%d) && object.metadata.annotations.owner%[1]d != ''",
}

// benchConditions are the conditions of the rules that make bench has (internal/bench).
var benchConditions = []string{
	"'example.io/policy-%d' in object.metadata.?annotations.orValue({}) && object.spec.replicas > 0",
	"object.metadata.?labels.?team.orValue('') == 'no-team-%d' && object.spec.replicas > 1",
	"has(object.metadata.labels.tier%d) && object.metadata.labels.tier%[1]d != object.metadata.labels.team",
	"object.spec.template.spec.?serviceAccountName.orValue('') == 'robot-%d'",
	"object.spec.replicas > 1000 + %d && object.metadata.labels.team != 'no-team'",
}

func manyBenchRules(t testing.TB, n int, conditions []string) []*Rule {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r%04d}\nspec:\n  resource: {group: apps, version: v1, resource: deployments}\n  condition: |\n    %s\n  patch: {merge: {metadata: {labels: {example.io/seen: \"true\"}}}}\n",
			i, fmt.Sprintf(conditions[i%len(conditions)], i))
	}
	set, problems := Load(Source{Name: "many.yaml", Data: []byte(text.String())})
	if len(problems) > 0 {
		t.Fatal(problems[0].Detail())
	}
	return set.For(benchDeployments)
}

// benchObject is what the engine has of a Deployment; annotations are added.
func benchObject(annotations map[string]any) map[string]any {
	containers := []any{}
	for i := range 3 {
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", i), "image": "registry.example.io/app:1.2.3"})
	}
	given := map[string]any{"deployment.kubernetes.io/revision": "3", "example.io/contact": "shop@example.io"}
	for k, v := range annotations {
		given[k] = v
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7",
			"labels":      map[string]any{"app": "web", "tier": "front", "team": "shop"},
			"annotations": given,
		},
		"spec": map[string]any{"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"containers": containers}}},
	}
}

func benchInput(annotations map[string]any) Input {
	return Input{
		Resource: benchDeployments, Object: benchObject(annotations), ReplicasPath: []string{"spec", "replicas"}, HasStatus: true, Now: time.Now(),
		NamespaceObject: map[string]any{"metadata": map[string]any{"name": "shop", "labels": map[string]any{"env": "prod"}}},
		Lookups:         nothingFound{},
	}
}

type nothingFound struct{}

func (nothingFound) Find(Query) ([]map[string]any, error) { return nil, nil }

func expectedReplicas(t testing.TB) []*Rule {
	t.Helper()
	data, err := os.ReadFile("builtin/expected-replicas.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, problems := Load(Source{Name: "expected-replicas.yaml", Data: data})
	if len(problems) > 0 {
		t.Fatal(problems[0].Detail())
	}
	return set.For(benchDeployments)
}

func BenchmarkEvaluateExpectedReplicas(b *testing.B) {
	rs := expectedReplicas(b)
	for name, annotations := range map[string]map[string]any{
		"without": nil, "satisfied": {"example.io/expected-replicas": "3"}, "drifted": {"example.io/expected-replicas": "5"},
	} {
		in := benchInput(annotations)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if res := Evaluate(rs, in); len(res.Requests) > 0 != (name == "drifted") {
					b.Fatal(res.Requests)
				}
			}
		})
	}
}

func BenchmarkIndexMany(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkIndex(b, n, conditions) })
	}
}

// The rules of make bench together, and as many of each template alone.
func BenchmarkIndexTemplates(b *testing.B) {
	b.Run("all", func(b *testing.B) { benchmarkIndex(b, 1000, benchConditions) })
	for i := range benchConditions {
		b.Run(fmt.Sprint(i), func(b *testing.B) { benchmarkIndex(b, 1000, benchConditions[i:i+1]) })
	}
}

// Rules that nothing finds but their own evaluation.
func BenchmarkIndexWithoutGuards(b *testing.B) {
	benchmarkIndex(b, 200, []string{"object.spec.replicas * 2 > 1000 + %d && object.metadata.labels.team != 'no-team'"})
}

func benchmarkIndex(b *testing.B, n int, conditions []string) {
	x, in := NewIndex(manyBenchRules(b, n, conditions)), benchInput(nil)
	b.ReportAllocs()
	tally := x.NewTally()
	for b.Loop() {
		res := x.Evaluate(in)
		if len(res.Verdicts) > 0 || !res.Passed() {
			b.Fatal(res.Verdicts[0].Err)
		}
		tally.Count(&res)
	}
	b.ReportMetric(float64(x.Candidates(in)), "evaluated")
}

func BenchmarkNewIndex(b *testing.B) {
	for name, conditions := range map[string][]string{"conditions": conditions, "benchConditions": benchConditions} {
		rs := manyBenchRules(b, 1000, conditions)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				NewIndex(rs)
			}
		})
	}
}

func BenchmarkEvaluateMany(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		rs, in := manyBenchRules(b, n, conditions), benchInput(nil)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if res := Evaluate(rs, in); len(res.Verdicts) > 0 {
					b.Fatal(res.Verdicts[0].Err)
				}
			}
		})
	}
}
