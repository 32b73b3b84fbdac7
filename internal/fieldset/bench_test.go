package fieldset

import (
	"encoding/json"
	"fmt"
	"testing"
)

// deployment is one as the API server returns it, of about 3.5 KB of JSON.
func deployment() map[string]any {
	labels := func() map[string]any {
		return map[string]any{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-7", "team": "team-7", "tier": "frontend"}
	}
	var env []any
	for i := range 8 {
		env = append(env, map[string]any{"name": fmt.Sprintf("APP_SETTING_%d", i), "value": fmt.Sprintf("value-of-setting-%d", i)})
	}
	managed := map[string]any{}
	for i := range 24 {
		managed[fmt.Sprintf("f:setting%d", i)] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}}
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "uid": "6f1f3f0e-1b5b-4ac6-9d50-2a5f2f0c8b11", "resourceVersion": "123456", "generation": int64(3),
			"creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels(),
			"annotations":   map[string]any{"example.io/expected-replicas": "3", "deployment.kubernetes.io/revision": "7", "example.io/owner": "team-7"},
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "fieldsV1": managed}},
		},
		"spec": map[string]any{
			"replicas": int64(2), "revisionHistoryLimit": int64(10), "progressDeadlineSeconds": int64(600),
			"selector": map[string]any{"matchLabels": labels()},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels()},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "app", "image": "registry.example.io/shop/web:1.2.3", "env": env,
					"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "128Mi"}, "limits": map[string]any{"memory": "256Mi"}},
					"ports":     []any{map[string]any{"containerPort": int64(8080), "protocol": "TCP"}},
				}}},
			},
		},
		"status": map[string]any{"replicas": int64(2), "readyReplicas": int64(2), "observedGeneration": int64(3), "conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "lastUpdateTime": "2026-01-01T00:00:00Z", "message": "Deployment has minimum availability."},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastUpdateTime": "2026-01-01T00:00:00Z", "message": "ReplicaSet has successfully progressed."},
		}},
	}
}

// replicaRule is what the built-in rule reads.
func replicaRule() *Set {
	return Of("metadata", "annotations", "example.io/expected-replicas").Union(Of("spec", "replicas"))
}

func TestDigestDoesNotAllocate(t *testing.T) {
	o := deployment()
	for _, s := range []*Set{replicaRule(), Whole(), Of("spec", "template", "spec", "containers", Elem, "image"), Keys("metadata", "labels")} {
		if n := testing.AllocsPerRun(100, func() { s.Digest(o) }); n != 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	o := deployment()
	raw, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]*Set{
		"replicas": replicaRule(),
		"images":   Of("spec", "template", "spec", "containers", Elem, "image"),
		"whole":    Whole(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Digest(o)
			}
			b.ReportMetric(float64(len(raw)), "JSON-bytes")
		})
	}
}

func BenchmarkProject(b *testing.B) {
	o := deployment()
	for name, s := range map[string]*Set{
		"replicas": replicaRule(),
		"images":   Of("spec", "template", "spec", "containers", Elem, "image"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Project(o)
			}
		})
	}
}
