package gvr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// informer is one informer for one resource and scope, from its start to its stop; it is never started again.
// Manager.mu guards the fields below it.
type informer struct {
	shared cache.SharedIndexInformer
	// delivered is done when the handler has been given the whole first list,
	// which is later than the store has it. Nil without a handler.
	delivered     cache.DoneChecker
	cancel        context.CancelFunc
	managedFields bool // whether its objects keep theirs

	stopped bool // what comes in after this is not news any more
	health  health
	status  Status
}

// newInformer makes an informer; runLocked starts it.
func (m *Manager) newInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) (*informer, error) {
	i := &informer{
		health: health{resource: gvr.GroupResource(), namespace: namespace},
		status: Status{Resource: gvr, Namespace: namespace},
	}
	report := func(verb string, err error) { m.observed(i, verb, err) }
	client = &attempts{Interface: client, backoff: attemptBackoff, report: report}
	i.shared = dynamicinformer.NewFilteredDynamicInformer(client, gvr, namespace, m.options.Resync, m.indexers(gvr), nil).Informer()
	transform := stripManagedFields
	if i.managedFields = m.wantsManagedFields(gvr); i.managedFields {
		transform = keepAll
	}
	if err := prepare(i.shared, transform, report); err != nil {
		return nil, err
	}
	if m.options.Handler == nil {
		return i, nil
	}
	if handler := m.options.Handler(gvr); handler != nil {
		quiet := logr.Discard()
		registration, err := i.shared.AddEventHandlerWithOptions(handler, cache.HandlerOptions{Logger: &quiet})
		if err != nil {
			return nil, fmt.Errorf("add handler: %w", err)
		}
		i.delivered = registration.HasSyncedChecker()
	}
	return i, nil
}

// indexers are copied: what the option returned is not modified.
func (m *Manager) indexers(gvr schema.GroupVersionResource) cache.Indexers {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if m.options.Indexers != nil {
		maps.Copy(indexers, m.options.Indexers(gvr))
	}
	return indexers
}

// prepare sets what must be set before an informer starts.
func prepare(shared cache.SharedIndexInformer, transform cache.TransformFunc, report func(string, error)) error {
	if err := shared.SetTransform(transform); err != nil {
		return fmt.Errorf("set transform: %w", err)
	}
	// Failed requests are reported by attempts and do not come here, unless the reflector has to list anew. The
	// handler takes the place of client-go's own, which logs server messages at each failure.
	err := shared.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil && !errors.Is(err, io.EOF) {
			report("watch", err)
		}
	})
	if err != nil {
		return fmt.Errorf("set watch error handler: %w", err)
	}
	return nil
}

// stripManagedFields drops what is often half of an object.
func stripManagedFields(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
	}
	return obj, nil
}

func keepAll(obj any) (any, error) { return obj, nil }

func (m *Manager) runLocked(i *informer) {
	ctx, cancel := context.WithCancel(m.ctx)
	i.cancel = cancel
	m.goroutines.Go(func() { i.shared.RunWithContext(silent(ctx)) })
	m.goroutines.Go(func() {
		for _, synced := range []cache.DoneChecker{i.shared.HasSyncedChecker(), i.delivered} {
			if synced == nil {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-synced.Done():
			}
		}
		m.update(i, func(h *health) { h.synced = true })
	})
}

// silent switches client-go's logging off: it logs errors with the server's message, at a rate of its own.
func silent(ctx context.Context) context.Context {
	return klog.NewContext(ctx, logr.Discard())
}

// observed takes the result of one request of an informer.
func (m *Manager) observed(i *informer, verb string, err error) {
	if apierrors.IsNotFound(err) {
		m.lookAtDiscovery() // gone?
	}
	m.update(i, func(h *health) { h.observe(verb, err) })
}

func (m *Manager) update(i *informer, change func(*health)) {
	m.mu.Lock()
	if !i.stopped && !m.stopped {
		change(&i.health)
		state, reason := i.health.state()
		m.changeLocked(&i.status, state, reason)
	}
	m.mu.Unlock()
	m.announce()
}

// health makes a State out of what an informer goes through. It is not safe for concurrent use.
type health struct {
	resource  schema.GroupResource
	namespace string

	synced   bool
	problem  *problem
	failures map[string]int // in a row, by verb
}

type problem struct {
	verb   string
	state  State
	reason string
}

// reportAfter is how many failures in a row are a problem. One or two are normal: a CRD that is not quite there yet,
// an API server that restarts, a resource version that has expired.
const reportAfter = 3

func (h *health) observe(verb string, err error) {
	if err == nil {
		// A list that works says nothing about the watch that follows it; a watch that works says it all.
		delete(h.failures, verb)
		if verb == "watch" {
			clear(h.failures)
		}
		if h.problem != nil && (verb == "watch" || verb == h.problem.verb) {
			h.problem = nil
		}
		return
	}
	if h.failures == nil {
		h.failures = map[string]int{}
	}
	h.failures[verb]++
	if apierrors.IsForbidden(err) {
		h.problem = &problem{verb, Forbidden, fmt.Sprintf("%s %s %s", verb, h.resource, scopeName(h.namespace))}
	} else if h.failures[verb] >= reportAfter || h.problem != nil || errors.Is(err, errWatchEnds) {
		h.problem = &problem{verb, Failing, fmt.Sprintf("%s %s: %s", verb, h.resource, describe(err))}
	}
}

func (h *health) state() (State, string) {
	switch {
	case h.problem != nil:
		return h.problem.state, h.problem.reason
	case h.synced:
		return Synced, ""
	default:
		return Syncing, ""
	}
}

func scopeName(namespace string) string {
	if namespace == "" {
		return "at cluster scope"
	}
	return fmt.Sprintf("in namespace %q", namespace)
}
