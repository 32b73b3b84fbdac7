package rbac

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

// SEC-04: what an install needs by default. Nothing is created but Events and the
// Lease, nothing deleted, no Secret is read, and no right is a '*' or leads to more.
func TestTheDefaultRoleIsSmall(t *testing.T) {
	source, err := builtin.Source(builtin.Default)
	if err != nil {
		t.Fatal(err)
	}
	set, problems := rules.Load(source)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, o := range map[string]Options{
		"the whole cluster": {Lease: types.NamespacedName{Namespace: "rectifier", Name: "rectifier"}},
		"in namespaces":     {Lease: types.NamespacedName{Namespace: "rectifier", Name: "rectifier"}, Namespaces: []string{"a", "b"}},
	} {
		o.Known = func(schema.GroupVersionResource) Resource { return Resource{Builtin: true} }
		roles := Roles(For(set, o), "rectifier", types.NamespacedName{})
		if len(roles) == 0 {
			t.Errorf("%s: no roles", name)
		}
		for _, role := range roles {
			for _, g := range role.Grants {
				allowed := []string{"list", "watch"}
				switch g.Resource.String() {
				case "deployments.apps":
					if g.Subresource == "scale" {
						allowed = []string{"patch"}
					}
				case "events.events.k8s.io":
					allowed = []string{"create", "patch"}
				case "leases.coordination.k8s.io":
					allowed = []string{"create", "get", "update"}
				case "horizontalpodautoscalers.autoscaling", "namespaces", "customresourcedefinitions.apiextensions.k8s.io":
				default:
					t.Errorf("%s: %v", name, g)
				}
				for _, verb := range g.Verbs {
					if !slices.Contains(allowed, verb) {
						t.Errorf("%s: %s %s/%s", name, verb, g.Resource, g.Subresource)
					}
				}
				clusterScoped := slices.Contains([]string{"namespaces", "customresourcedefinitions.apiextensions.k8s.io"}, g.Resource.String())
				if len(o.Namespaces) > 0 && (role.Namespace == "" || clusterScoped) {
					t.Errorf("%s: beyond them: %v", name, g)
				}
			}
		}
	}
}
