package live

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// Of custom resources it is known which version is preferred; those of built-in
// ones hold the same.
func TestThePreferredVersion(t *testing.T) {
	group := testcluster.Namespace(t) + ".example.io"
	version := func(name string, stored bool) any {
		return map[string]any{"name": name, "served": true, "storage": stored, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
	}
	client := testcluster.Dynamic(t).Resource(crds)
	_, err := client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "kind": "Gadget"},
			"versions": []any{version("v1alpha1", false), version("v1", true)},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Delete(context.Background(), "gadgets."+group, metav1.DeleteOptions{}) })
	for resource, want := range map[schema.GroupVersionResource]string{
		{Group: group, Version: "v1", Resource: "gadgets"}:                          "",
		{Group: group, Version: "v1alpha1", Resource: "gadgets"}:                    "v1",
		{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}: "",
	} {
		testcluster.Eventually(t, 30*time.Second, func() error {
			c, err := Connect(t.Context(), testcluster.Start(t).AdminConfig())
			if err != nil {
				return err
			}
			if r, ok := (Known{c}).Resource(t.Context(), resource); !ok || r.Preferred != want {
				return fmt.Errorf("%v: known %v, and %q is preferred, not %q", resource, ok, r.Preferred, want)
			}
			return nil
		})
	}
}
