package offline_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/offline"
)

func widgets(t *testing.T) offline.Known {
	t.Helper()
	version := func(name string, served bool) map[string]any {
		return map[string]any{"name": name, "served": served, "storage": served, "schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}}}},
		}}}
	}
	crd := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.io"},
		"spec": map[string]any{
			"group": "example.io", "scope": "Cluster", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{version("v1", true), version("v1beta1", false), version("v2alpha1", true)},
		},
	}
	catalog, err := gvr.NewCatalog(crd)
	if err != nil {
		t.Fatal(err)
	}
	crds, err := openapi.NewCRDs(crd)
	if err != nil {
		t.Fatal(err)
	}
	return offline.Known{Catalog: catalog, Types: openapi.Join(crds, openapi.Builtin())}
}

// resource reads group/version/resource, or version/resource.
func resource(s string) schema.GroupVersionResource {
	parts := strings.Split(s, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
}

func TestKnownResources(t *testing.T) {
	known := widgets(t)
	for name, want := range map[string]bool{
		"apps/v1/deployments": true, "v1/pods": true, "example.io/v1/widgets": true, "example.io/v2alpha1/widgets": true, "autoscaling/v2/horizontalpodautoscalers": true,
		"apps/v1beta1/deployments": false, "apps/v1/deployment": false, "v1/deployments": false, "example.io/v1beta1/widgets": false, "example.io/v3/widgets": false, "example.org/v1/things": false,
	} {
		got, ok := known.Resource(t.Context(), resource(name))
		if ok != want || ok && (got.Schema == nil || got.Kind == "") {
			t.Errorf("%s: %v %+v", name, ok, got)
		}
	}
}

func TestSpelling(t *testing.T) {
	known := widgets(t)
	for name, want := range map[string]string{
		"apps/v1/deployment": "apps/v1/deployments", "apps/v1/Deployment": "apps/v1/deployments", "v1/deployments": "apps/v1/deployments", "apps/v1/pods": "/v1/pods",
		"networking.k8s.io/v1/ingress": "networking.k8s.io/v1/ingresses", "extensions/v1beta1/ingresses": "networking.k8s.io/v1beta1/ingresses", "v1/podz": "/v1/pods", "apps/v1/deploymnets": "apps/v1/deployments",
		"example.io/v1/widget": "example.io/v1/widgets", "example.io/v1/gadgets": "", "example.org/v1/things": "", "v1/xyzzyxyzzy": "",
	} {
		got, ok := known.Spelling(resource(name))
		spelled := ""
		if ok {
			spelled = got.Group + "/" + got.Version + "/" + got.Resource
		}
		if spelled != want {
			t.Errorf("%s is spelled %s, not %s", name, spelled, want)
		}
	}
}

func TestVersions(t *testing.T) {
	known := widgets(t)
	for name, want := range map[string]string{
		"apps/v1/deployments": "v1", "autoscaling/v2/horizontalpodautoscalers": "v2 v1", "example.io/v1/widgets": "v1 v2alpha1", "example.io/v1/gadgets": "",
	} {
		if got := strings.Join(known.Versions(resource(name).GroupResource()), " "); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
}

// Every built-in resource has a schema in some version: where none is found,
// the version does not exist.
func TestEveryBuiltinKindHasASchema(t *testing.T) {
	catalog, err := gvr.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	known := offline.Known{Catalog: catalog, Types: openapi.Builtin()}
	kinds := openapi.BuiltinKinds()
	if len(kinds) < 60 || !slices.IsSortedFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		t.Fatalf("%d kinds, or not sorted", len(kinds))
	}
	for _, gvk := range kinds {
		if !catalog.Known(gvk.GroupKind()) {
			continue
		}
		resource := catalog.Info(gvk)[0].Resource
		if _, ok := known.Resource(t.Context(), resource); !ok {
			t.Errorf("%s has no schema", resource)
		}
		if !slices.Contains(known.Versions(resource.GroupResource()), gvk.Version) {
			t.Errorf("%s is not among the versions of %s", gvk.Version, resource.GroupResource())
		}
		if !known.Complete(gvk.Group) {
			t.Errorf("the group %q has resources of others", gvk.Group)
		}
	}
	if known.Complete("example.io") {
		t.Error("the group example.io is known completely")
	}
}
