package gvr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// Info describes a resource, in use or not. It is false if the resource is not served or not known yet.
func (m *Manager) Info(gvr schema.GroupVersionResource) (Info, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v := m.world.resolve(gvr, time.Now())
	return v.info, v.presence == present
}

// Epoch grows whenever something changes that Info, Availability, Synced or Holds tells, of whichever resource. What
// was asked after an Epoch holds as long as that stays.
func (m *Manager) Epoch() uint64 { return m.epoch.Load() }

// Discovered says whether discovery has succeeded once, at least in part.
func (m *Manager) Discovered() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.world.discovered != nil
}

// DiscoveryError says why the newest look at discovery failed, in words that are fit for logs; empty: it did not. What
// was known before holds meanwhile.
func (m *Manager) DiscoveryError() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.world.discoveryError
}

// Get returns an object from the cache, as the fields that are kept of it, in constant time. It is parsed for the caller,
// whose it is: whoever wants no more than names takes Keys. It is false if the object is not there; a store that has not
// synced yet answers with what it has, one that was stopped with nothing. Namespace is empty for cluster-scoped objects.
func (m *Manager) Get(gvr schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, bool) {
	store := m.store(gvr, namespace)
	if store == nil {
		return nil, false
	}
	obj, exists, err := store.GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !exists {
		return nil, false
	}
	return parsed(obj)
}

// parsed is an object of a store.
func parsed(obj any) (*unstructured.Unstructured, bool) {
	o, ok := obj.(*projection.Object)
	if !ok {
		return nil, false
	}
	return o.Unstructured(), true
}

// List returns all objects of a resource in no particular order. Each is parsed; all of it is the caller's.
func (m *Manager) List(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, store := range m.stores(gvr) {
		for _, obj := range store.List() {
			if u, ok := parsed(obj); ok {
				objects = append(objects, u)
			}
		}
	}
	return objects
}

// Keys returns the names of all objects of a resource in no particular order. The slice is the caller's.
func (m *Manager) Keys(gvr schema.GroupVersionResource) []cache.ObjectName {
	var names []cache.ObjectName
	for _, store := range m.stores(gvr) {
		names = appendNames(names, store.ListKeys())
	}
	return names
}

// KeysIn is Keys for one namespace.
func (m *Manager) KeysIn(gvr schema.GroupVersionResource, namespace string) []cache.ObjectName {
	var names []cache.ObjectName
	for _, store := range m.stores(gvr) {
		if keys, err := store.IndexKeys(cache.NamespaceIndex, namespace); err == nil { // all stores have it
			names = appendNames(names, keys)
		}
	}
	return names
}

func appendNames(names []cache.ObjectName, keys []string) []cache.ObjectName {
	for _, key := range keys {
		if name, err := cache.ParseObjectName(key); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// Synced says whether all stores of a resource have been filled once. It stays true while an informer is Failing or
// Forbidden later on, with a store that ages; it is false for resources that are parked or not in use.
func (m *Manager) Synced(gvr schema.GroupVersionResource) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r := m.resources[gvr]
	if r == nil || len(r.informers) == 0 {
		return false
	}
	for _, i := range r.informers {
		if !i.shared.HasSynced() {
			return false
		}
	}
	return true
}

// Holds says whether the objects in the stores of a resource have some fields; with no stores, none lacks any. Where
// the fields are wanted of what the resource is, it becomes true once and stays so: who has asked before reading an
// object knows whether that object may lack them.
func (m *Manager) Holds(gvr schema.GroupVersionResource, fields projection.Fields) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r := m.resources[gvr]
	if r == nil {
		return true
	}
	for _, i := range r.informers {
		if !i.fields.Covers(fields) {
			return false
		}
	}
	return true
}

// Rereads says whether the objects of a resource are being read again, because fields are wanted that they lack, and
// whether their handler has yet to be given them. A successor whose requests fail is not counted.
func (m *Manager) Rereads(gvr schema.GroupVersionResource) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r := m.resources[gvr]
	if r == nil {
		return false
	}
	for _, i := range r.informers {
		if next := i.successor; next != nil && next.health.problem == nil {
			return true
		}
		select {
		case <-i.served:
		default:
			if i.served != nil {
				return true
			}
		}
	}
	return false
}

// LastSyncVersion returns the newest resource version that the store for a resource and namespace has seen, bookmarks
// included, to be compared with k8s.io/apimachinery/pkg/util/resourceversion. It is empty while nothing is known.
func (m *Manager) LastSyncVersion(gvr schema.GroupVersionResource, namespace string) string {
	store := m.store(gvr, namespace)
	if store == nil {
		return ""
	}
	return store.LastStoreSyncResourceVersion()
}

// ByIndex returns the objects with a value in an index of Options.Indexers (or cache.NamespaceIndex), in no particular
// order. Each is parsed; all of it is the caller's. An index that the resource does not have is an error of
// the caller; a resource that is not in use, or parked, has no objects. Who concludes something from an object's absence
// uses Find.
func (m *Manager) ByIndex(gvr schema.GroupVersionResource, index, value string) ([]*unstructured.Unstructured, error) {
	return byIndex(m.stores(gvr), gvr, index, value)
}

// Find is ByIndex for several values and Availability, both of one moment: a resource whose informer is stopped, or
// started anew, right now does not look as if it had no objects. There are objects only if it is Available.
func (m *Manager) Find(gvr schema.GroupVersionResource, index string, values ...string) ([]*unstructured.Unstructured, Availability, string, error) {
	m.mu.RLock()
	availability, reason := m.availabilityLocked(gvr)
	stores := m.storesLocked(gvr)
	m.mu.RUnlock()
	if availability != Available {
		return nil, availability, reason, nil
	}
	objects, err := byIndex(stores, gvr, index, values...)
	return objects, availability, reason, err
}

func byIndex(stores []cache.Indexer, gvr schema.GroupVersionResource, index string, values ...string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, store := range stores {
		for _, value := range values {
			found, err := store.ByIndex(index, value)
			if err != nil {
				return nil, fmt.Errorf("look up %s: %w", gvr.GroupResource(), err)
			}
			for _, obj := range found {
				if u, ok := parsed(obj); ok {
					objects = append(objects, u)
				}
			}
		}
	}
	return objects, nil
}

// Availability says how far the absence of an object from the stores can be believed.
type Availability int

const (
	// Unavailable: nothing is known. The stores have not synced, or they age because the watch fails or is forbidden.
	Unavailable Availability = iota
	// Available: all stores have synced and their watches work.
	Available
	// Absent: discovery has succeeded, and the resource is not served.
	Absent
	// Denied: it may not be read: RBAC, or Options.Namespaces and a cluster-scoped resource.
	Denied
)

// Availability of a resource in use. The reason is for people; it is empty if it is Available.
func (m *Manager) Availability(gvr schema.GroupVersionResource) (Availability, string) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.availabilityLocked(gvr)
}

func (m *Manager) availabilityLocked(gvr schema.GroupVersionResource) (Availability, string) {
	r := m.resources[gvr]
	if r == nil {
		return Unavailable, "not in use"
	}
	if len(r.informers) == 0 {
		if v := m.world.resolve(gvr, time.Now()); v.presence == absent {
			return Absent, v.reason
		}
		if r.parked.State == Forbidden {
			return Denied, r.parked.Reason
		}
		return Unavailable, r.parked.Reason
	}
	worst, reason := Available, ""
	for _, i := range r.informers {
		switch i.status.State {
		case Synced:
		case Forbidden:
			return Denied, i.status.Reason
		default:
			worst, reason = Unavailable, strings.TrimSuffix(string(i.status.State)+": "+i.status.Reason, ": ")
		}
	}
	return worst, reason
}

// Status returns the state of all resources in use, sorted by group, resource, version and namespace. The numbers of
// objects are of a moment ago, one second for 100,000.
func (m *Manager) Status() []Status {
	return m.statuses(func(i *informer) int { return i.count.of(i.shared.GetStore(), time.Now()) })
}

// States is Status without the numbers of objects. It costs the same however many there are.
func (m *Manager) States() []Status {
	return m.statuses(func(*informer) int { return 0 })
}

func (m *Manager) statuses(objects func(*informer) int) []Status {
	m.mu.RLock()
	defer m.mu.RUnlock()
	statuses := make([]Status, 0, len(m.resources))
	for _, r := range m.resources {
		if len(r.informers) == 0 {
			statuses = append(statuses, r.parked)
			continue
		}
		for _, i := range r.informers {
			s := i.status
			s.Objects = objects(i)
			statuses = append(statuses, s)
		}
	}
	slices.SortFunc(statuses, func(a, b Status) int {
		return cmp.Or(
			strings.Compare(a.Resource.Group, b.Resource.Group),
			strings.Compare(a.Resource.Resource, b.Resource.Resource),
			strings.Compare(a.Resource.Version, b.Resource.Version),
			strings.Compare(a.Namespace, b.Namespace),
		)
	})
	return statuses
}

// store is the one that has the objects of a namespace, or nil.
func (m *Manager) store(gvr schema.GroupVersionResource, namespace string) cache.Store {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r := m.resources[gvr]
	if r == nil {
		return nil
	}
	if i := r.informers[""]; i != nil {
		return i.shared.GetStore()
	}
	if i := r.informers[namespace]; i != nil {
		return i.shared.GetStore()
	}
	return nil
}

func (m *Manager) stores(gvr schema.GroupVersionResource) []cache.Indexer {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.storesLocked(gvr)
}

func (m *Manager) storesLocked(gvr schema.GroupVersionResource) []cache.Indexer {
	r := m.resources[gvr]
	if r == nil {
		return nil
	}
	stores := make([]cache.Indexer, 0, len(r.informers))
	for _, i := range r.informers {
		stores = append(stores, i.shared.GetIndexer())
	}
	return stores
}
