package gvr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// informer is one informer for one resource and scope, from its start to its stop; it is never started again.
// Manager.mu guards the last fields, from stopped on.
type informer struct {
	shared  cache.SharedIndexInformer
	handler cache.ResourceEventHandler // nil: none
	// delivered is done when the handler has been given the whole first list,
	// which is later than the store has it. Nil before addHandler, and without a handler.
	delivered cache.DoneChecker
	cancel    context.CancelFunc
	ended     chan struct{}     // closed when it has ended, and the handler gets nothing more
	fields    projection.Fields // what its objects keep
	count     count             // of the store
	served    chan struct{}     // of a successor: closed when nothing is left to do of its taking over

	stopped bool // what comes in after this is not news any more
	health  health
	status  Status
	// successor fills its store, unseen, and then serves in place of this one; nil: none. See succeedLocked.
	successor *informer
	unseen    bool // it is a successor that does not serve yet
}

// newInformer makes an informer; addHandler gives it its handler, and runLocked starts it.
func (m *Manager) newInformer(client dynamic.Interface, projector *projection.Projector, gvr schema.GroupVersionResource, namespace string) (*informer, error) {
	i := &informer{
		health: health{resource: gvr.GroupResource(), namespace: namespace},
		status: Status{Resource: gvr, Namespace: namespace},
		ended:  make(chan struct{}),
		fields: projector.Fields(),
	}
	report := func(verb string, err error) { m.observed(i, verb, err) }
	client = &attempts{Interface: client, backoff: attemptBackoff, report: report}
	i.shared = dynamicinformer.NewFilteredDynamicInformer(client, gvr, namespace, m.options.Resync, m.indexers(gvr), nil).Informer()
	if err := prepare(i.shared, projector.Transform, report); err != nil {
		return nil, err
	}
	if m.options.Handler != nil {
		i.handler = m.options.Handler(gvr)
	}
	return i, nil
}

// addHandler has the handler given all events, of objects that are in the store already too.
func (i *informer) addHandler() error {
	if i.handler == nil {
		return nil
	}
	quiet := logr.Discard()
	registration, err := i.shared.AddEventHandlerWithOptions(i.handler, cache.HandlerOptions{Logger: &quiet})
	if err != nil {
		return fmt.Errorf("add handler: %w", err)
	}
	i.delivered = registration.HasSyncedChecker()
	return nil
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

// runLocked starts an informer, and calls filled when its store has synced. The context is that of the informer.
func (m *Manager) runLocked(i *informer, filled func(context.Context)) {
	ctx, cancel := context.WithCancel(m.ctx)
	i.cancel = cancel
	m.goroutines.Go(func() {
		defer close(i.ended)
		i.shared.RunWithContext(silent(ctx))
	})
	m.goroutines.Go(func() {
		if done(ctx, i.shared.HasSyncedChecker()) {
			m.mu.Lock()
			m.epoch.Add(1)
			m.mu.Unlock()
			filled(ctx)
		}
	})
}

// done waits for something; nil is nothing. It is false if ctx ends first.
func done(ctx context.Context, what cache.DoneChecker) bool {
	if what == nil {
		return true
	}
	select {
	case <-ctx.Done():
		return false
	case <-what.Done():
		return true
	}
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
		if !i.unseen {
			state, reason := i.health.state()
			m.changeLocked(&i.status, state, reason)
		}
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
