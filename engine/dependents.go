package engine

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/rules"
)

// dependents knows which objects were decided on with the help of which
// look-ups, so that a change of what is looked up re-evaluates exactly those.
// It is safe for concurrent use.
type dependents struct {
	mu    sync.Mutex
	byKey map[lookedUp]map[Key][]rules.Query
	of    map[Key][]lookedUp
}

// lookedUp is one place in an index of a resource: all objects there look the
// same to the queries that asked for it, up to their selectors.
type lookedUp struct {
	resource schema.GroupVersionResource
	index    string
	key      string
}

// add notes that an object depends on one more query.
func (d *dependents) add(object Key, q rules.Query) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addLocked(object, q)
}

// set replaces what an object depends on.
func (d *dependents) set(object Key, queries []rules.Query) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(object)
	for _, q := range queries {
		d.addLocked(object, q)
	}
}

func (d *dependents) addLocked(object Key, q rules.Query) {
	if d.byKey == nil {
		d.byKey, d.of = map[lookedUp]map[Key][]rules.Query{}, map[Key][]lookedUp{}
	}
	for _, key := range q.Keys() {
		at := lookedUp{q.Resource, q.Index(), key}
		objects := d.byKey[at]
		if objects == nil {
			objects = map[Key][]rules.Query{}
			d.byKey[at] = objects
		}
		if _, ok := objects[object]; !ok {
			d.of[object] = append(d.of[object], at)
		}
		objects[object] = append(objects[object], q)
	}
}

// forget drops an object that is gone.
func (d *dependents) forget(object Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(object)
}

func (d *dependents) removeLocked(object Key) {
	for _, at := range d.of[object] {
		delete(d.byKey[at], object)
		if len(d.byKey[at]) == 0 {
			delete(d.byKey, at)
		}
	}
	delete(d.of, object)
}

// on returns the objects that depend on a looked-up object as it is (or was):
// those whose queries select it.
func (d *dependents) on(at lookedUp, object map[string]any) []Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Key
	for key, queries := range d.byKey[at] {
		for i := range queries {
			if queries[i].Selects(object) {
				out = append(out, key)
				break
			}
		}
	}
	return out
}

// affect does what a change of an object does to others: it enqueues those that
// were decided on with its help. old is nil for an object that came, obj is the
// same as old for one that went.
func (e *Engine) affect(p *policy, resource schema.GroupVersionResource, old, obj *projection.Object) {
	if obj == nil {
		return // a tombstone that holds nothing: what it was is not known
	}
	var readers []schema.GroupVersionResource
	if resource == namespaces {
		readers = p.namespaced
	}
	if len(readers) == 0 && len(p.lookups[resource]) == 0 {
		return
	}
	is, was := obj.Unstructured().Object, map[string]any(nil)
	if old != nil && old != obj {
		was = old.Unstructured().Object
	}
	if len(readers) > 0 && (was == nil || !p.rules.SameNamespace(was, is)) {
		for _, reader := range readers {
			e.enqueueNamespace(reader, obj.Name())
		}
	}
	for _, l := range p.lookups[resource] {
		e.enqueueDependents(l, was, is)
	}
}

// enqueueDependents enqueues what has looked up an object as it is, or as it was; was
// is nil for one that came, or went.
func (e *Engine) enqueueDependents(l *rules.Lookup, was, is map[string]any) {
	states := []map[string]any{is}
	if was != nil {
		if l.SameFor(was, is) {
			return
		}
		states = append(states, was)
	}
	for _, object := range states {
		for _, key := range e.dependents.on(lookedUp{l.Resource, l.Index(), l.Key(object)}, object) {
			e.add(key)
		}
	}
}

// enqueueNamespace enqueues all objects of a resource in a Namespace.
func (e *Engine) enqueueNamespace(resource schema.GroupVersionResource, namespace string) {
	for _, name := range e.informers.KeysIn(resource, namespace) {
		e.add(Key{Resource: resource.GroupResource(), Namespace: name.Namespace, Name: name.Name})
	}
}

// scope is what one informer watches: a resource, in one namespace or ("") in all.
type scope struct {
	resource  schema.GroupVersionResource
	namespace string
}

// stateChanged enqueues the objects of rules that wait for a resource which
// they read beside their objects, and those of a resource that comes back: an
// outage has driven their retries far into the future.
func (e *Engine) stateChanged(s gvr.Status) {
	e.schemas.soon()
	at := scope{s.Resource, s.Namespace}
	switch s.State {
	case gvr.Failing:
		e.failing.Store(at, true)
	case gvr.Synced:
		e.advise()
		if _, was := e.failing.LoadAndDelete(at); was {
			e.recovered(at)
		}
	}
	e.enqueueReaders(s.Resource)
}

// recovered has the objects tried again of an informer that works again.
func (e *Engine) recovered(at scope) {
	if len(e.rules().For(at.resource)) == 0 {
		return
	}
	e.objects.recovered(at.resource.GroupResource(), at.namespace)
	for _, name := range e.informers.Keys(at.resource) {
		if at.namespace == "" || name.Namespace == at.namespace {
			key := Key{Resource: at.resource.GroupResource(), Namespace: name.Namespace, Name: name.Name}
			e.queue.Forget(key)
			e.addBackground(key)
		}
	}
}

// renewed enqueues the objects of rules that could not run on a resource, or read
// it, because of what was not known of it.
func (e *Engine) renewed(resource schema.GroupVersionResource) {
	e.schemas.soon()
	e.advise()
	if len(e.rules().For(resource)) > 0 {
		e.enqueueAll(resource)
	}
	e.enqueueReaders(resource)
}

// enqueueReaders enqueues the objects of rules that read a resource beside them.
func (e *Engine) enqueueReaders(looked schema.GroupVersionResource) {
	for _, r := range e.rules().All() {
		reads := looked == namespaces && (r.NeedsNamespace || r.OptOut) ||
			slices.ContainsFunc(r.Lookups, func(l *rules.Lookup) bool { return l.Resource == looked })
		if !reads {
			continue
		}
		for _, resource := range r.Resources {
			e.enqueueAll(resource)
		}
	}
}

// unwrap returns the object of an event; nil if there is none.
func unwrap(obj any) *projection.Object {
	if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = t.Obj
	}
	o, _ := obj.(*projection.Object)
	return o
}
