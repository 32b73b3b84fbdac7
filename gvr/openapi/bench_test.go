package openapi

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
)

// benchDeployment is a Deployment of 3.5 KB of JSON, the size that the performance figures of this project are given for.
func benchDeployment(b *testing.B) map[string]any {
	b.Helper()
	live := object(b, deployment)
	spec := live["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	env := []any{}
	for i := range 37 {
		env = append(env, map[string]any{"name": fmt.Sprintf("VARIABLE_%d", i), "value": "a value of some length, as they are"})
	}
	spec["containers"].([]any)[1].(map[string]any)["env"] = env
	return live
}

func BenchmarkMerge(b *testing.B) {
	live := benchDeployment(b)
	config := object(b, `{metadata: {labels: {team: x}}, spec: {template: {spec: {containers: [{name: sidecar, image: "sidecar:2", env: [{name: VARIABLE_3, value: x}]}]}}}}`)
	typ := mustBuiltin(b, deploymentKind)
	b.Run("Merge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := typ.Merge(live, config); err != nil {
				b.Fatal(err)
			}
		}
	})
	merged, err := typ.Merge(live, config)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("no-op", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := typ.Merge(merged, config); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Changes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if len(Changes(live, merged)) != 3 {
				b.Fatal(Changes(live, merged))
			}
		}
	})
	doc, err := builtinDocument()
	if err != nil {
		b.Fatal(err)
	}
	converter := upstreamConverter(b, doc)
	patch := clone(config).(map[string]any)
	patch["apiVersion"], patch["kind"] = live["apiVersion"], live["kind"]
	b.Run("upstream", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := upstream.ApplyStructuredMergeDiff(converter, &unstructured.Unstructured{Object: live}, &unstructured.Unstructured{Object: patch})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	doc, err := builtinDocument()
	if err != nil {
		b.Fatal(err)
	}
	for _, gvk := range []schema.GroupVersionKind{configMapKind, deploymentKind} {
		b.Run(gvk.Kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := doc.build(gvk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("inflate all", func(b *testing.B) {
		for b.Loop() {
			if _, err := inflateBuiltin(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
