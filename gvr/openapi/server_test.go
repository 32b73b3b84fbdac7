package openapi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientopenapi "k8s.io/client-go/openapi"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

func realCluster(t *testing.T) *Cluster {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testcluster.Start(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return NewCluster(clientopenapi.ToClientWithContext(client.OpenAPIV3()))
}

// TestClusterEqualsBuiltin: what the API server says about its kinds gives the same merges as what is embedded.
func TestClusterEqualsBuiltin(t *testing.T) {
	testcluster.RequireVersion(t, "1.37", "what is embedded is of 1.37")
	cluster := realCluster(t)
	compared, notServed := 0, 0
	for _, gvk := range builtinKinds(t) {
		served, err := cluster.Type(t.Context(), gvk)
		if errors.Is(err, ErrNoSchema) {
			notServed++ // alpha and beta versions are off by default
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		compared++
		embedded := mustBuiltin(t, gvk)
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 4))
			live := (&generator{Rand: random, schema: embedded.schema}).object(embedded)
			config := (&generator{Rand: random, schema: embedded.schema, partial: true, atomics: seed%3 == 0}).object(embedded)
			want, wantErr := embedded.Merge(live, config)
			got, gotErr := served.Merge(live, config)
			if fmt.Sprint(wantErr) != fmt.Sprint(gotErr) || !jsonvalue.Equal(want, got) {
				t.Fatalf("%s, seed %d: embedded %v, served %v, %v", gvk, seed, wantErr, gotErr, Changes(want, got))
			}
		}
	}
	t.Logf("%d kinds are the same, %d are not served", compared, notServed)
	if compared < 60 {
		t.Errorf("only %d kinds compared", compared)
	}
}

// TestClusterEqualsManifest: a CRD's file and the schema that the API server makes of it give the same merges, and a change of
// the CRD is seen.
func TestClusterEqualsManifest(t *testing.T) {
	cluster, crds := realCluster(t), testcluster.Dynamic(t).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	if _, err := cluster.Type(t.Context(), widgetKind); !errors.Is(err, ErrNoSchema) {
		t.Fatalf("before the CRD: %v", err)
	}
	// The server wants a schema for every version.
	manifest := strings.Replace(widgets, "  - name: v1alpha1\n    served: false\n    storage: false\n", "", 1)
	created, err := crds.Create(t.Context(), &unstructured.Unstructured{Object: object(t, manifest)}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var typ *Type
	testcluster.Eventually(t, 20*time.Second, func() error {
		typ, err = cluster.Type(t.Context(), widgetKind)
		return err
	})
	testWidgets(t, typ)

	added := object(t, `{spec: {added: x}}`)
	if err := typ.Check(added); !errors.Is(err, ErrUnknownField) {
		t.Fatalf("before the change: %v", err)
	}
	changed := object(t, strings.Replace(manifest, "size: {type: integer}", "size: {type: integer}\n              added: {type: string}", 1))
	testcluster.Eventually(t, 10*time.Second, func() error { // its status is being written at the same time
		current, err := crds.Get(t.Context(), created.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		update := &unstructured.Unstructured{Object: changed}
		update.SetResourceVersion(current.GetResourceVersion())
		_, err = crds.Update(t.Context(), update, metav1.UpdateOptions{})
		return err
	})
	testcluster.Eventually(t, 20*time.Second, func() error {
		if _, err := cluster.Refresh(t.Context()); err != nil {
			return err
		}
		typ, err := cluster.Type(t.Context(), widgetKind)
		if err != nil {
			return err
		}
		return typ.Check(added)
	})
}
