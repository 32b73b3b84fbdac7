package gvr

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Adapt brings running informers in line with what Options.Indexers and Options.ManagedFields say now. An index that is
// wanted and not there is added, without a request; one that is not wanted any more stays until its informer ends, as
// client-go cannot drop it. Where managedFields are wanted that were left out, the informer is started anew: the objects
// have to be read again. All other informers keep running.
func (m *Manager) Adapt() error {
	m.adapting.Lock() // AddIndexers must not run twice at a time: GetIndexers is the store's own map
	defer m.adapting.Unlock()
	var errs []error
	for _, i := range m.readMore() {
		if err := m.addIndexes(i); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// readMore starts informers anew whose objects lack managedFields, and returns all that run.
func (m *Manager) readMore() []*informer {
	defer m.announce()
	m.mu.Lock()
	defer m.mu.Unlock()
	var running []*informer
	for _, r := range m.resources {
		wanted := m.wantsManagedFields(r.gvr)
		for _, i := range r.informers {
			if wanted && !i.managedFields {
				uid := r.uid
				m.stopLocked(r)
				m.startLocked(r, uid)
				break
			}
		}
		for _, i := range r.informers {
			running = append(running, i)
		}
	}
	return running
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
