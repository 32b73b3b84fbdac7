package gvr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// Adapt brings running informers in line with what Options.Indexers and Options.Fields say now. An index that is wanted
// and not there is added, without a request; one that is not wanted any more stays until its informer ends, as client-go
// cannot drop it. Where fields are wanted that were left out, the objects have to be read again, by a second informer
// that keeps those too: the first one serves until the store of the second has synced. Holds says how far that is. All
// other informers keep running, those too whose objects have more than is wanted.
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

// readMore starts successors of informers whose objects lack fields, and returns all that run.
func (m *Manager) readMore() (running []*informer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, r := range m.resources {
		if err := m.readMoreLocked(r); err != nil {
			errs = append(errs, err)
		}
		for _, i := range r.informers {
			for ; i != nil; i = i.successor {
				running = append(running, i)
			}
		}
	}
	return running, errors.Join(errs...)
}

// readMoreLocked starts successors of those informers of a resource whose objects lack fields that are wanted. One that
// is filling its store and would lack them too is replaced.
func (m *Manager) readMoreLocked(r *resource) error {
	if len(r.informers) == 0 {
		return nil
	}
	wanted := m.wantedLocked(r)
	var errs []error
	for _, i := range r.informers {
		fields := i.fields
		if i.successor != nil {
			fields = i.successor.fields
		}
		if fields.Covers(wanted) {
			continue
		}
		if err := m.succeedLocked(i, fields.Union(wanted)); err != nil {
			errs = append(errs, fmt.Errorf("read %s with more fields: %w", r.gvr.GroupResource(), err))
		}
	}
	return errors.Join(errs...)
}

// wantedLocked is what is to be kept of a resource's objects.
func (m *Manager) wantedLocked(r *resource) projection.Fields {
	if m.options.Fields == nil {
		return projection.Whole()
	}
	return m.options.Fields(r.gvr, r.lastInfo)
}

// succeedLocked starts the successor of an informer, in place of one that does not serve yet. What becomes of it is not
// told before it serves: if it cannot read the objects, the one before goes on.
func (m *Manager) succeedLocked(old *informer, fields projection.Fields) error {
	projector := projection.New(fields)
	client, err := m.options.NewClient(old.status.Resource, projector)
	if err != nil {
		return fmt.Errorf("create its client: %w", err)
	}
	next, err := m.newInformer(client, projector, old.status.Resource, old.status.Namespace)
	if err != nil {
		return fmt.Errorf("create its informer: %w", err)
	}
	if replaced := old.successor; replaced != nil {
		replaced.stopped = true
		replaced.cancel()
	}
	next.unseen, next.served = true, make(chan struct{})
	old.successor = next
	m.runLocked(next, func(ctx context.Context) { m.takeOver(ctx, old, next) })
	return nil
}

// takeOver has a successor serve whose store has synced. Its handler is given all of its objects, and the one before,
// which runs on until then, the deletions that neither of them has seen.
func (m *Manager) takeOver(ctx context.Context, old, next *informer) {
	defer close(next.served)
	if !next.reaches(ctx, old.shared.GetStore().LastStoreSyncResourceVersion()) {
		return
	}
	m.mu.Lock()
	if next.stopped || m.stopped {
		m.mu.Unlock()
		return
	}
	gvr, namespace := next.status.Resource, next.status.Namespace
	m.resources[gvr].informers[namespace] = next
	m.epoch.Add(1)
	old.stopped, old.successor, next.unseen = true, nil, false
	next.health.synced = true
	next.status = old.status
	state, reason := next.health.state()
	m.changeLocked(&next.status, state, reason)
	m.mu.Unlock()

	if next.addHandler() == nil { // it fails if the informer has been stopped
		done(ctx, next.delivered)
	}
	if old.served != nil { // it is a successor itself, and may not have done with the one before
		select {
		case <-ctx.Done():
		case <-old.served:
		}
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

// catchUp bounds how long a successor is waited for whose server is behind: versions of some servers do not compare.
const catchUp = 30 * time.Second

// reaches waits until a store is not older than a version: one of several API servers may have answered the list that
// is behind the one that the informer before watches. It is false if ctx ends first.
func (i *informer) reaches(ctx context.Context, version string) bool {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, catchUp, true, func(context.Context) (bool, error) {
		c, err := resourceversion.CompareResourceVersion(i.shared.GetStore().LastStoreSyncResourceVersion(), version)
		return err != nil || c >= 0, nil
	})
	return err == nil || ctx.Err() == nil
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
