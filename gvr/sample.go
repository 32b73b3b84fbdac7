package gvr

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Sample is what one store holds: how many objects, and some of them.
type Sample struct {
	Resource  schema.GroupVersionResource
	Namespace string // of the store; "": the whole cluster
	Objects   int
	Some      []*unstructured.Unstructured // read-only
}

// Samples returns a sample of each store in use, in no particular order, with at
// most that many objects of each: spread evenly over them, other ones each time.
// It costs a list of the store's keys, and copies no object.
func (m *Manager) Samples(atMost int) []Sample {
	m.mu.RLock()
	var out []Sample
	var stores []cache.Store
	for _, r := range m.resources {
		for namespace, i := range r.informers {
			out = append(out, Sample{Resource: r.gvr, Namespace: namespace})
			stores = append(stores, i.shared.GetStore())
		}
	}
	m.mu.RUnlock()
	for i := range out {
		out[i].take(stores[i], atMost)
	}
	return out
}

func (s *Sample) take(store cache.Store, atMost int) {
	keys := store.ListKeys() // in the order of a map: at random
	s.Objects = len(keys)
	n := min(len(keys), atMost)
	s.Some = slices.Grow(s.Some, n)
	for i := range n {
		obj, exists, err := store.GetByKey(keys[i*len(keys)/n])
		if u, ok := obj.(*unstructured.Unstructured); ok && exists && err == nil {
			s.Some = append(s.Some, u)
		}
	}
}
