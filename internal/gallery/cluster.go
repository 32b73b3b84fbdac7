package gallery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Cluster holds the objects of examples on the API server, until the end of the
// test.
type Cluster struct {
	*testing.T
	Client  dynamic.Interface // an administrator's
	Catalog *gvr.Catalog
}

// NewCluster installs the CRDs and makes the namespaces of examples.
func NewCluster(t *testing.T, client dynamic.Interface, examples []*Example) *Cluster {
	t.Helper()
	definitions, namespaceNames := map[string]map[string]any{}, map[string]bool{}
	for _, x := range examples {
		for _, o := range x.CRDs {
			definitions[named(o).GetName()] = o
		}
		for _, o := range slices.Concat(x.Before, x.Objects) {
			if ns := named(o).GetNamespace(); ns != "" {
				namespaceNames[ns] = true
			}
		}
	}
	all := slices.Collect(maps.Values(definitions))
	catalog, err := gvr.NewCatalog(all...)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t, client, catalog}
	for _, o := range all {
		c.install(o)
	}
	for name := range namespaceNames {
		c.put(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	return c
}

// install installs a CRD until the end of the test.
func (c *Cluster) install(crd map[string]any) {
	c.Helper()
	client, name := c.Client.Resource(crds), named(crd).GetName()
	if _, err := client.Create(c.Context(), named(crd), metav1.CreateOptions{}); err != nil {
		c.Fatalf("install %s: %v", name, err)
	}
	c.Cleanup(func() { // with all its objects; a next run of the test installs it again
		if err := client.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			c.Error(err)
		}
	})
	testcluster.Eventually(c, 20*time.Second, func() error {
		u, err := client.Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, condition := range conditions {
			if m, _ := condition.(map[string]any); m["type"] == "Established" && m["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("%s is not established", name)
	})
}

// Create makes the objects of an example.
func (c *Cluster) Create(x *Example) {
	c.Helper()
	for _, o := range slices.Concat(x.Objects, x.Before) {
		c.put(o)
	}
}

// Resource returns the client for an object, and what its resource is.
func (c *Cluster) Resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, gvr.Info) {
	infos := c.Catalog.Info(u.GroupVersionKind())
	if len(infos) != 1 {
		c.Fatalf("it is not known what %s is", u.GroupVersionKind())
	}
	client := c.Client.Resource(infos[0].Resource)
	if infos[0].Namespaced {
		return client.Namespace(u.GetNamespace()), infos[0]
	}
	return client, infos[0]
}

// put makes an object as the manifest has it: its status too, and in deletion
// if that says so.
func (c *Cluster) put(o map[string]any) {
	c.Helper()
	u := named(runtime.DeepCopyJSON(o))
	client, info := c.Resource(u)
	status, hasStatus := u.Object["status"]
	going := u.GetDeletionTimestamp() != nil
	for _, field := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	created, err := client.Create(c.Context(), u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) && info.Kind == "Namespace" {
		// A Namespace cannot be removed here: without its controller it stays.
		created, err = client.Update(c.Context(), u, metav1.UpdateOptions{})
	}
	if err != nil {
		c.Fatalf("create %s %s: %v", u.GetKind(), u.GetName(), err)
	}
	if info.Kind != "Namespace" {
		c.Cleanup(func() { c.remove(client, u.GetName()) })
	}
	if hasStatus && info.HasStatus {
		created.Object["status"] = status
		if _, err := client.UpdateStatus(c.Context(), created, metav1.UpdateOptions{}); err != nil {
			c.Fatalf("set the status of %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	if going {
		if err := client.Delete(c.Context(), u.GetName(), metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *Cluster) remove(client dynamic.ResourceInterface, name string) {
	c.Helper()
	ctx := context.Background() // the test's own has ended
	err := client.Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil { // there may be nobody who takes the finalizers off
		_, err = client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		c.Errorf("remove %s: %v", name, err)
	}
}

// serversOwn are fields that an object here cannot have as the example has them.
var serversOwn = []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "lastTransitionTime"}

// Check compares an object on the API server with what the example wants.
func (c *Cluster) Check(before, after map[string]any) error {
	u := named(after)
	client, _ := c.Resource(u)
	live, err := client.Get(c.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := Holds(live.Object, before, after); err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// Holds reports where live is not as after says, and what it still has of
// before that after has not. What is in neither is the server's: defaults.
func Holds(live, before, after any) error {
	switch after := after.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return fmt.Errorf("is %v, not a mapping", live)
		}
		b, _ := before.(map[string]any)
		for key := range b {
			if _, stays := after[key]; !stays && l[key] != nil {
				return fmt.Errorf("%s is still there", key)
			}
		}
		for key, value := range after {
			if slices.Contains(serversOwn, key) {
				continue
			}
			if err := Holds(l[key], b[key], value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		return nil
	case []any:
		l, _ := live.([]any)
		b, _ := before.([]any)
		if len(l) != len(after) {
			return fmt.Errorf("has %d elements, not %d", len(l), len(after))
		}
		for i, value := range after {
			var was any
			if len(b) == len(after) {
				was = b[i]
			}
			if err := Holds(l[i], was, value); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
		return nil
	}
	if live != after {
		return fmt.Errorf("is %v, not %v", live, after)
	}
	return nil
}
