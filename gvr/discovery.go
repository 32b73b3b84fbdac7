package gvr

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const (
	discoveryTimeout = 15 * time.Second
	// lookAgainAfter is the wait before discovery confirms that something is gone, and between two looks that were
	// asked for.
	lookAgainAfter = time.Second
)

// discover looks at discovery, again and again, until ctx ends.
func (m *Manager) discover(ctx context.Context) {
	retry := m.discoveryBackoff()
	for ctx.Err() == nil {
		next := m.options.DiscoveryInterval
		snapshot, err := m.lookOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			next = retry.Step()
		} else {
			retry = m.discoveryBackoff()
			if snapshot.doubtful() {
				next = min(next, lookAgainAfter)
			}
		}
		m.discoveredOnce(snapshot, err)

		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-m.lookNow:
			sleep(ctx, min(next, lookAgainAfter))
		}
		timer.Stop()
	}
}

// discoveryBackoff tries more often than the interval at first, since everything waits for the first answer.
func (m *Manager) discoveryBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: m.options.DiscoveryInterval}
}

// lookAtDiscovery asks for a look before the next one is due. It never blocks.
func (m *Manager) lookAtDiscovery() {
	select {
	case m.lookNow <- struct{}{}:
	default:
	}
}

// lookOnce asks the server what it serves. Groups that could not be asked are no error.
func (m *Manager) lookOnce(ctx context.Context) (*snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	// The package function, not the client's method: that one does everything twice if a group has failed.
	_, lists, err := discovery.ServerGroupsAndResourcesWithContext(silent(ctx), m.discovery)
	failed := map[schema.GroupVersion]bool{}
	if groups, partial := discovery.GroupDiscoveryFailedErrorGroups(err); partial {
		for gv := range groups {
			failed[gv] = true
		}
	} else if err != nil {
		return nil, err
	}
	m.mu.RLock()
	previous := m.world.discovered
	m.mu.RUnlock()
	return newSnapshot(lists, failed, previous), nil
}

// discoveredOnce takes the result of one look. What was known before stays valid if it has failed.
func (m *Manager) discoveredOnce(s *snapshot, err error) {
	m.mu.Lock()
	reason := ""
	if err != nil {
		reason = describe(err)
	}
	if reason != m.world.discoveryError {
		m.logger.V(1).Info("Discovery changed state", "reason", reason)
	}
	m.world.discoveryError = reason
	m.world.discoveryRefused = apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
	if err == nil {
		if failed := s.failedNames(); m.world.discovered.failedNames() != failed {
			m.logger.V(1).Info("API groups that can not be discovered", "groups", failed)
		}
		m.world.discovered = s
		maps.DeleteFunc(m.world.deleted, func(_ schema.GroupResource, at time.Time) bool {
			return time.Since(at) > deletedGrace
		})
	}
	m.reconcileLocked()
	m.mu.Unlock()
	m.announce()
}

// DiscoveryFailure says why discovery has not succeeded so far, in words that are fit for logs, and whether the server
// refuses who asks, which waiting will hardly change. It is empty once discovery has succeeded, and before it has failed.
func (m *Manager) DiscoveryFailure() (reason string, refused bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.world.discovered != nil {
		return "", false
	}
	return m.world.discoveryError, m.world.discoveryRefused
}

func (s *snapshot) failedNames() string {
	if s == nil {
		return ""
	}
	var names []string
	for _, gv := range slices.SortedFunc(maps.Keys(s.failed), func(a, b schema.GroupVersion) int {
		return strings.Compare(a.String(), b.String())
	}) {
		names = append(names, gv.String())
	}
	return strings.Join(names, ", ")
}

// crdBackoff is slow: where reading CRDs is forbidden, that is normally on purpose.
var crdBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.3, Steps: 8, Cap: time.Minute}

// watchCRDs starts the informer for CRDs. Where it may not list them it keeps trying, quietly.
func (m *Manager) watchCRDs(ctx context.Context) error {
	client, err := m.clients.forResource(crdResource, nil)
	if err != nil {
		return err
	}
	health := &health{resource: crdResource.GroupResource()} // guarded by mu
	update := func(change func()) {
		m.mu.Lock()
		change()
		state, reason := health.state()
		if live := state == Synced; live != m.world.crdsLive {
			m.world.crdsLive = live
			m.logger.V(1).Info("The watch of CRDs changed state", "state", state, "reason", reason)
			m.reconcileLocked()
		}
		m.mu.Unlock()
		m.announce()
	}
	report := func(verb string, err error) { update(func() { health.observe(verb, err) }) }
	shared := dynamicinformer.NewFilteredDynamicInformer(
		&attempts{Interface: client, backoff: crdBackoff, report: report},
		crdResource, "", 0, cache.Indexers{}, nil).Informer()
	if err := prepare(shared, pruneCRD, report); err != nil {
		return err
	}
	registration, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    m.crdChanged,
		UpdateFunc: func(_, obj any) { m.crdChanged(obj) },
		DeleteFunc: m.crdDeleted,
	})
	if err != nil {
		return err
	}
	m.goroutines.Go(func() { shared.RunWithContext(silent(ctx)) })
	m.goroutines.Go(func() {
		select {
		case <-ctx.Done():
		case <-registration.HasSyncedChecker().Done(): // all of them are in world.crds
			update(func() { health.synced = true })
		}
	})
	return nil
}

func (m *Manager) crdChanged(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	definition, err := parseCRD(u.Object)
	if err != nil {
		return // the API server would not have admitted it
	}
	m.crdEvent(func() {
		m.world.crds[definition.resource] = definition
		delete(m.world.deleted, definition.resource)
	})
}

func (m *Manager) crdDeleted(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	definition, err := parseCRD(u.Object)
	if err != nil {
		return
	}
	m.crdEvent(func() {
		delete(m.world.crds, definition.resource)
		m.world.deleted[definition.resource] = time.Now()
	})
}

// crdEvent applies one event. During the first list nothing follows from it yet.
func (m *Manager) crdEvent(change func()) {
	m.mu.Lock()
	change()
	m.epoch.Add(1)
	live := m.world.crdsLive
	if live {
		m.reconcileLocked()
	}
	m.mu.Unlock()
	m.announce()
	if live {
		m.lookAtDiscovery()
	}
}
