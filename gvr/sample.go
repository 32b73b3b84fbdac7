package gvr

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// Sample is what one store holds: how many objects, and how large some of them are.
type Sample struct {
	Resource  schema.GroupVersionResource
	Namespace string // of the store; "": the whole cluster
	Objects   int
	Some      []int // bytes that objects take in memory, with their places in the store
}

// Samples returns a sample of each store in use, in no particular order, with at
// most that many objects of each: spread evenly over them, other ones each time.
// It costs a list of the store's keys, and parses no object.
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
	for _, key := range spread(keys, atMost) {
		obj, exists, err := store.GetByKey(key)
		if o, ok := obj.(*projection.Object); ok && exists && err == nil {
			s.Some = append(s.Some, o.Bytes())
		}
	}
}

// spread picks at most so many keys, evenly.
func spread(keys []string, atMost int) []string {
	n := min(len(keys), atMost)
	out := make([]string, n)
	for i := range out {
		out[i] = keys[i*len(keys)/n]
	}
	return out
}
