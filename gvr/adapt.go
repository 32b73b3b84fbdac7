package gvr

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Adapt brings running informers in line with what Options.Indexers and Options.ManagedFields say now. An index that is
// wanted and not there is added, without a request; one that is not wanted any more stays until its informer ends, as
// client-go cannot drop it. Where managedFields are wanted that were left out, the objects have to be read again, by a
// second informer: the first one serves until the store of the second has synced. Stripped says how far that is. All
// other informers keep running.
func (m *Manager) Adapt() error {
	m.adapting.Lock() // AddIndexers must not run twice at a time: GetIndexers is the store's own map
	defer m.adapting.Unlock()
	running, err := m.readMore()
	errs := []error{err}
	for _, i := range running {
		if err := m.addIndexes(i); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// readMore starts successors of informers whose objects lack managedFields, and returns all that run.
func (m *Manager) readMore() (running []*informer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, r := range m.resources {
		wanted := m.wantsManagedFields(r.gvr)
		for _, i := range r.informers {
			if wanted && !i.managedFields && i.successor == nil {
				if err := m.succeedLocked(i); err != nil {
					errs = append(errs, fmt.Errorf("read %s with managedFields: %w", r.gvr.GroupResource(), err))
				}
			}
			for ; i != nil; i = i.successor {
				running = append(running, i)
			}
		}
	}
	return running, errors.Join(errs...)
}

// succeedLocked starts the successor of an informer. What becomes of that is not told before it serves: if it cannot
// read the objects, the one before goes on.
func (m *Manager) succeedLocked(old *informer) error {
	client, err := m.options.NewClient(old.status.Resource)
	if err != nil {
		return fmt.Errorf("create its client: %w", err)
	}
	next, err := m.newInformer(client, old.status.Resource, old.status.Namespace)
	if err != nil {
		return fmt.Errorf("create its informer: %w", err)
	}
	old.successor, next.unseen = next, true
	m.runLocked(next, func(ctx context.Context) { m.takeOver(ctx, old, next) })
	return nil
}

// takeOver has a successor serve whose store has synced. Its handler is given all of its objects, and the one before,
// which runs on until then, the deletions that neither of them has seen.
func (m *Manager) takeOver(ctx context.Context, old, next *informer) {
	m.mu.Lock()
	if next.stopped || m.stopped {
		m.mu.Unlock()
		return
	}
	gvr, namespace := next.status.Resource, next.status.Namespace
	m.resources[gvr].informers[namespace] = next
	old.stopped, old.successor, next.unseen = true, nil, false
	next.health.synced = true
	next.status = old.status
	state, reason := next.health.state()
	m.changeLocked(&next.status, state, reason)
	m.mu.Unlock()

	if next.addHandler() == nil { // it fails if the informer has been stopped
		done(ctx, next.delivered)
	}
	old.cancel()
	<-old.ended
	if ctx.Err() == nil {
		old.deleteMissing(next.shared.GetStore())
		m.mu.Lock()
		m.renewed = append(m.renewed, gvr)
		m.mu.Unlock()
	}
	m.announce()
}

// deleteMissing tells the handler of an informer that has ended that objects are gone which are not in another store.
func (i *informer) deleteMissing(from cache.Store) {
	if i.handler == nil {
		return
	}
	store := i.shared.GetStore()
	for _, key := range store.ListKeys() {
		if _, exists, err := from.GetByKey(key); err != nil || exists {
			continue
		}
		if obj, exists, err := store.GetByKey(key); err == nil && exists {
			i.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: obj})
		}
	}
}

func (m *Manager) wantsManagedFields(gvr schema.GroupVersionResource) bool {
	return m.options.ManagedFields != nil && m.options.ManagedFields(gvr)
}

func (m *Manager) addIndexes(i *informer) error {
	missing := m.indexers(i.status.Resource)
	for name := range i.shared.GetIndexer().GetIndexers() {
		delete(missing, name)
	}
	if len(missing) == 0 {
		return nil
	}
	err := i.shared.AddIndexers(missing)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err == nil || i.stopped || m.stopped { // one that ends meanwhile is not asked any more
		return nil
	}
	return fmt.Errorf("index %s: %w", i.status.Resource.GroupResource(), err)
}
