package gvr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// Options configure a Manager. Only Config is required.
type Options struct {
	// Config is for discovery, for the watch of CRDs and, unless NewClient is set, for the informers. Its rate limit
	// and its timeout are not used: reads have their own.
	Config *rest.Config
	// Namespaces limits the informers to these namespaces, one informer for each. Empty means the whole cluster, and
	// one cluster-wide informer per resource. Where it is set, nothing is listed or watched beyond: cluster-scoped
	// resources are parked, and CRDs are not watched, so that only discovery tells of them.
	Namespaces []string
	// Resync is how often each informer repeats all of its objects to its handler. 0 means never.
	Resync time.Duration
	// DiscoveryInterval is the time between two looks at what the cluster serves. 0 means 10 s.
	DiscoveryInterval time.Duration
	// NewClient makes the client that lists and watches one resource. It is called each time an informer of that is
	// started; it must neither do requests nor call the Manager. A client may decode with the Projector's Serializer,
	// or decode whole objects, which are then reduced. Nil means a dynamic client over Config that does the first, with
	// one HTTP connection for all, and that reads protobuf of built-in resources.
	NewClient func(schema.GroupVersionResource, *projection.Projector) (dynamic.Interface, error)
	// DecodeWhole has the clients that are made without NewClient decode objects as client-go does, from JSON, whatever is
	// kept of them. It takes several times the work.
	DecodeWhole bool
	// Handler makes the handler for the events of one resource, whose objects are *projection.Object. It is called once
	// for each informer, and must not call the Manager; the handler itself may. Nil, or a nil handler, means no events. client-go calls a handler from one
	// goroutine per informer: with several Namespaces, handlers of the same resource run side by side.
	Handler func(schema.GroupVersionResource) cache.ResourceEventHandler
	// Indexers gives the indexes of one resource's stores, for ByIndex. It is called like Handler, and by Adapt. Their
	// functions get a *projection.Object. All stores have the index by namespace besides. Nil, or a nil result, means no
	// others.
	Indexers func(schema.GroupVersionResource) cache.Indexers
	// Fields says what is kept of the objects of one resource, at least, by what was last known of that. It is called
	// like Handler, by Adapt, and when the Info of a running resource changes. Nil means projection.Whole.
	Fields func(schema.GroupVersionResource, Info) projection.Fields
	// OnStateChange is called after a State or a Reason has changed, one call at a time, in order, Objects not set. It
	// should return quickly, and may call the Manager. Resources that are no longer in use are not announced. May be nil.
	OnStateChange func(Status)
	// OnRenewal is called, like OnStateChange and never beside it, after something else about a resource in use has
	// changed that only the Manager can see: its Info, or that this is known again, while informers run; or which fields
	// it Holds. May be nil.
	OnRenewal func(schema.GroupVersionResource)
}

// Manager keeps the informers. See the package comment.
type Manager struct {
	options    Options
	namespaces []string // scopes: [""], or Options.Namespaces
	clients    *clients
	discovery  discovery.AggregatedDiscoveryInterfaceWithContext
	// lookNow asks for a look at discovery before the next one is due.
	lookNow chan struct{}
	epoch   atomic.Uint64 // see Epoch; it grows under mu
	// goroutines are all informers and loops. It grows under mu and only while running.
	goroutines sync.WaitGroup
	adapting   sync.Mutex // serialises Adapt; before mu

	mu        sync.RWMutex
	ctx       context.Context // of Run; nil before
	stopped   bool
	logger    klog.Logger
	world     world
	resources map[schema.GroupVersionResource]*resource
	// pending are state changes to be announced; announcing says that a goroutine is at it.
	pending    []Status
	renewed    []schema.GroupVersionResource // to be announced too
	announcing bool
	// logs belongs to the goroutine that announces.
	logs map[schema.GroupVersionResource]*changeLog
}

// notStarted is the reason before Run.
const notStarted = "not started"

// resource is one resource in use. Manager.mu guards it.
type resource struct {
	gvr schema.GroupVersionResource
	// informers by namespace, "" for the whole cluster; empty while the resource is parked.
	informers map[string]*informer
	// uid of the CRD that the informers belong to, "" if unknown.
	uid types.UID
	// info is what was known when that was last looked at. It is empty if nothing was, while the informers run on;
	// lastInfo is what was known last then.
	info, lastInfo Info
	// parked is the status while there are no informers.
	parked Status
}

// New makes a Manager. It does no requests: it succeeds while the API server is away.
func New(options Options) (*Manager, error) {
	if options.Config == nil {
		return nil, errors.New("create resource manager: Options.Config is required")
	}
	if slices.Contains(options.Namespaces, "") {
		return nil, errors.New("create resource manager: empty namespace in Options.Namespaces")
	}
	clients, err := newClients(options.Config)
	if err != nil {
		return nil, fmt.Errorf("create resource manager: %w", err)
	}
	discovery, err := clients.discovery()
	if err != nil {
		return nil, fmt.Errorf("create resource manager: %w", err)
	}
	if options.NewClient == nil {
		options.NewClient = clients.projecting
		if options.DecodeWhole {
			options.NewClient = func(gvr schema.GroupVersionResource, _ *projection.Projector) (dynamic.Interface, error) {
				return clients.forResource(gvr, nil)
			}
		}
	}
	if options.DiscoveryInterval <= 0 {
		options.DiscoveryInterval = 10 * time.Second
	}
	options.Namespaces = slices.Compact(slices.Sorted(slices.Values(options.Namespaces)))
	namespaces := options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	m := &Manager{
		options:    options,
		namespaces: namespaces,
		clients:    clients,
		discovery:  discovery,
		lookNow:    make(chan struct{}, 1),
		logger:     klog.Background(),
		world: world{
			crds:    map[schema.GroupResource]crd{},
			deleted: map[schema.GroupResource]time.Time{},
		},
		resources: map[schema.GroupVersionResource]*resource{},
		logs:      map[schema.GroupVersionResource]*changeLog{},
	}
	clients.refused = m.protobufRefused
	return m, nil
}

// protobufRefused takes note of a resource that has to be read as JSON. It comes from the middle of a request.
func (m *Manager) protobufRefused(gvr schema.GroupVersionResource, err error) {
	m.mu.RLock()
	logger := m.logger
	m.mu.RUnlock()
	logger.Info("Reading a built-in resource as JSON from now on", "resource", gvr.GroupResource(), "version", gvr.Version, "reason", err.Error())
}

// Run discovers resources and runs the informers of those in use until ctx ends and all of them have stopped. It logs
// to the logger of ctx. A Manager runs once: a second call returns an error, otherwise the result is nil.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.ctx != nil {
		m.mu.Unlock()
		return errors.New("run resource manager: it has been run before")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.ctx = ctx
	m.logger = klog.FromContext(ctx)
	m.goroutines.Go(func() { m.discover(ctx) })
	var err error
	if len(m.options.Namespaces) == 0 {
		err = m.watchCRDs(ctx)
	}
	m.reconcileLocked()
	m.mu.Unlock()
	m.announce()
	if err == nil {
		<-ctx.Done()
	}

	cancel()
	m.mu.Lock()
	m.stopped = true
	for _, r := range m.resources {
		m.stopLocked(r)
		r.parked = Status{Resource: r.gvr, State: Waiting, Reason: "stopped", Since: time.Now()}
	}
	m.mu.Unlock()
	m.goroutines.Wait()
	m.clients.http.CloseIdleConnections()
	return err
}

// Use sets which resources are in use; it replaces what was set before. Informers of resources that stay in use keep
// running, the others are started and stopped. It does not block on any request. Before Run it only takes note.
func (m *Manager) Use(gvrs []schema.GroupVersionResource) {
	m.mu.Lock()
	for gvr, r := range m.resources {
		if !slices.Contains(gvrs, gvr) {
			m.stopLocked(r)
			delete(m.resources, gvr)
		}
	}
	for _, gvr := range gvrs {
		if m.resources[gvr] == nil {
			m.resources[gvr] = &resource{
				gvr:    gvr,
				parked: Status{Resource: gvr, State: Waiting, Reason: notStarted, Since: time.Now()},
			}
		}
	}
	m.reconcileLocked()
	m.mu.Unlock()
	m.announce()
}

// reconcileLocked brings the informers in line with the world. It is called after every change of either.
func (m *Manager) reconcileLocked() {
	m.epoch.Add(1)
	if m.ctx == nil || m.stopped {
		return
	}
	now := time.Now()
	for _, r := range m.resources {
		m.reconcileResourceLocked(r, m.world.resolve(r.gvr, now))
	}
}

func (m *Manager) reconcileResourceLocked(r *resource, v verdict) {
	running := len(r.informers) > 0
	switch {
	case v.presence == unknown && running:
		r.info = Info{} // a failed discovery stops nothing
	case v.presence == unknown && m.world.discovered == nil && m.world.discoveryError != "":
		m.parkLocked(r, Failing, v.reason)
	case v.presence != present:
		m.parkLocked(r, Waiting, v.reason)
	case !v.info.Namespaced && len(m.options.Namespaces) > 0:
		m.parkLocked(r, Forbidden, fmt.Sprintf("cluster-scoped, which is not read with --namespace %s",
			strings.Join(m.options.Namespaces, ",")))
	case running && (r.uid == v.uid || r.uid == "" || v.uid == ""):
		if v.uid != "" {
			r.uid = v.uid // CRDs have become readable
		}
		if !reflect.DeepEqual(r.info, v.info) {
			r.info, r.lastInfo = v.info, v.info
			m.renewed = append(m.renewed, r.gvr)
			if err := m.readMoreLocked(r); err != nil {
				// What is wanted in vain is not held: Adapt tries again.
				m.logger.V(1).Info("Reading more of the objects failed", "resource", r.gvr.GroupResource(), "err", err)
			}
		}
	default:
		m.stopLocked(r) // the CRD was replaced: what is in the store belongs to the one before
		r.info, r.lastInfo = v.info, v.info
		m.startLocked(r, v.uid)
	}
}

func (m *Manager) parkLocked(r *resource, state State, reason string) {
	m.stopLocked(r)
	m.changeLocked(&r.parked, state, reason)
}

func (m *Manager) stopLocked(r *resource) {
	m.epoch.Add(1)
	for _, i := range r.informers {
		for ; i != nil; i = i.successor {
			i.stopped = true
			i.cancel()
		}
	}
	if len(r.informers) > 0 {
		// Whatever parks the resource now is news, even if it was parked for the same reason before.
		r.parked = Status{Resource: r.gvr}
	}
	r.informers = nil
	r.uid = ""
}

func (m *Manager) startLocked(r *resource, uid types.UID) {
	projector := projection.New(m.wantedLocked(r))
	client, err := m.options.NewClient(r.gvr, projector)
	if err != nil {
		m.changeLocked(&r.parked, Failing, "its client could not be created")
		m.logger.V(1).Info("Creating a client failed", "resource", r.gvr.GroupResource(), "version", r.gvr.Version, "err", err)
		return
	}
	informers := map[string]*informer{}
	for _, namespace := range m.namespaces {
		i, err := m.newInformer(client, projector, r.gvr, namespace)
		if err == nil {
			err = i.addHandler()
		}
		if err != nil {
			m.changeLocked(&r.parked, Failing, "its informer could not be created")
			return
		}
		informers[namespace] = i
	}
	r.informers, r.uid = informers, uid
	for _, namespace := range slices.Sorted(maps.Keys(informers)) {
		i := informers[namespace]
		m.changeLocked(&i.status, Syncing, "")
		m.runLocked(i, func(ctx context.Context) {
			if done(ctx, i.delivered) {
				m.update(i, func(h *health) { h.synced = true })
			}
		})
	}
}
