package gvr

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

func storeOf(t testing.TB, objects int) cache.Store {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range objects {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetNamespace(fmt.Sprintf("ns-%d", i%10))
		u.SetName(fmt.Sprintf("c-%d", i))
		o, err := projection.Of(u, projection.Fields{})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func TestASampleIsOfDifferentObjects(t *testing.T) {
	for _, tc := range []struct{ objects, atMost, want int }{{0, 10, 0}, {7, 10, 7}, {10, 10, 10}, {1234, 100, 100}} {
		var s Sample
		store, seen := storeOf(t, tc.objects), map[string]bool{}
		s.take(store, tc.atMost)
		for _, key := range spread(store.ListKeys(), tc.atMost) {
			seen[key] = true
		}
		if s.Objects != tc.objects || len(s.Some) != tc.want || len(seen) != tc.want || slices.Contains(s.Some, 0) {
			t.Errorf("of %d objects: %d counted, %d taken, %d of them different; want %d", tc.objects, s.Objects, len(s.Some), len(seen), tc.want)
		}
	}
}

// A scrape asks for this.
func BenchmarkSample(b *testing.B) {
	store := storeOf(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		var s Sample
		s.take(store, 100)
	}
}
