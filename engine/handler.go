package engine

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// handler makes the event handlers of one informer. They only enqueue: the
// object itself, if rules are about it, and what depends on it. What the watch has
// brought is counted.
func (e *Engine) handler(resource schema.GroupVersionResource) cache.ResourceEventHandler {
	events := e.metrics.watchCounters(resource.GroupResource())
	enqueue := func(p *policy, obj any, add func(Key)) {
		if len(p.rules.For(resource)) > 0 {
			e.enqueue(resource.GroupResource(), obj, add)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			defer e.contain(resource.GroupResource(), obj)
			p := e.policy.Load()
			if initial {
				events.initial.Inc()
				enqueue(p, obj, e.addBackground)
				return
			}
			events.relevant.Inc()
			enqueue(p, obj, e.add)
			e.affect(p, resource, nil, unwrap(obj))
		},
		UpdateFunc: func(old, obj any) {
			defer e.contain(resource.GroupResource(), obj)
			p, was, is := e.policy.Load(), unwrap(old), unwrap(obj)
			switch {
			case was == nil || is == nil:
			case was.ResourceVersion() == is.ResourceVersion():
				e.objects.resynced(objectKey(resource, is))
				enqueue(p, obj, e.addBackground)
				return
			case e.immaterial(p, resource, was, is):
				events.passedOver.Inc()
				return
			}
			events.relevant.Inc()
			enqueue(p, obj, e.add)
			e.affect(p, resource, was, is)
		},
		DeleteFunc: func(obj any) {
			defer e.contain(resource.GroupResource(), obj)
			p, was := e.policy.Load(), unwrap(obj)
			events.relevant.Inc()
			enqueue(p, obj, e.add)
			e.affect(p, resource, was, was)
		},
	}
}

// immaterial reports whether an update can be passed over: the object differs in
// nothing that is kept of it but its resourceVersion, so rules, and those that look
// it up, make of it what they made of it before. That holds for all rules in force
// that run: what they read is kept, or they wait until it is, and then all objects
// are looked at again. What comes by time or from elsewhere (a recheck, a hold that
// ends, a permission, other rules, a resync, a successor's store) enqueues by itself.
//
// What is not passed over, because somebody waits for the version, not for a change:
//
//   - What is remembered of the object waits for a newer version (objectState.waits):
//     the cache does not hold a write yet, or held what met a conflict, or a rule
//     that was refused is tried again on the next version, or failures have put it
//     off, or an expression ran out of time.
//   - A worker has the object: what it is about to remember may wait for this
//     version, be it the one that it writes now.
//   - Rules read the object in another version of the resource too. A view that was
//     behind the other has been passed over for what it showed then: this event may
//     be the one that was still to come.
//   - A rule reads resourceVersions.
//   - With FullObjects, nothing is.
//
// An object in the queue is looked at as it is when its turn comes. A change that is
// set back before the cache has seen it was never there.
func (e *Engine) immaterial(p *policy, resource schema.GroupVersionResource, was, is *projection.Object) bool {
	return was.Same(is) && !e.opts.FullObjects && !p.needs.versions[resource] &&
		len(p.rules.Versions(resource.GroupResource())) < 2 && !e.objects.waits(objectKey(resource, is))
}

func objectKey(resource schema.GroupVersionResource, o *projection.Object) Key {
	return Key{Resource: resource.GroupResource(), Namespace: o.Namespace(), Name: o.Name()}
}

// enqueue has an object looked at; tombstones are unwrapped.
func (e *Engine) enqueue(resource schema.GroupResource, obj any, add func(Key)) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		klog.Background().Error(err, "Informer handed out something that is no object", "resource", resource)
		return
	}
	// The name of an object is a part of its text, which a key must not keep alive.
	key := Key{Resource: resource, Namespace: strings.Clone(name.Namespace), Name: strings.Clone(name.Name)}
	if !e.ownLease(key) { // views would pass it over, as it does own Events, which have to be parsed
		add(key)
	}
}

// add, for live changes, and addBackground, for what nobody waits for, are the only
// ways into the queue.
func (e *Engine) add(key Key) {
	if e.admit(key) {
		e.queue.Add(key)
	}
}

func (e *Engine) addBackground(key Key) {
	if e.admit(key) {
		e.queue.AddBackground(key)
	}
}

// admit notes that a key comes into the queue. What is excluded stays out here, and
// is not looked for again: exclusions do not change.
func (e *Engine) admit(key Key) bool {
	if e.excludes(key) {
		return false
	}
	e.pending.begin(key)
	e.arrivals.note(key)
	return true
}

// enqueueAll enqueues all objects of a resource.
func (e *Engine) enqueueAll(resource schema.GroupVersionResource) {
	for _, name := range e.informers.Keys(resource) {
		e.addBackground(Key{Resource: resource.GroupResource(), Namespace: name.Namespace, Name: name.Name})
	}
}
