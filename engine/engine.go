package engine

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// Defaults of Options.
const (
	DefaultWorkers       = 8
	DefaultQPS           = 50
	DefaultBurst         = 100
	DefaultResync        = 10 * time.Hour
	DefaultFieldManager  = "rectifier"
	DefaultShutdownGrace = 20 * time.Second
)

// Options say what an Engine does. Config and Rules are needed; the zero
// values of the others mean the defaults.
type Options struct {
	Config *rest.Config
	Rules  *rules.Set
	// Problems are the rules that are left out, for readiness detail.
	Problems []*rules.Problem
	// Namespaces limits the engine to these: no list or watch goes beyond.
	Namespaces []string

	// ReadNamespaces are Namespaces by their name, as they are: with Namespaces,
	// where no watch is of help, a Preview takes them from here. The maps are not
	// modified.
	ReadNamespaces map[string]map[string]any

	// ExcludeNamespaces are left alone: no rule is about the objects in them, nor
	// about these Namespaces themselves. They are globs, as in a rule's match.
	// Lookups still see what is in them.
	ExcludeNamespaces []string

	Workers int     // objects that are worked on at once
	QPS     float32 // writes a second, over all resources; negative: no limit
	Burst   int
	Resync  time.Duration // how often every object is evaluated anew

	FieldManager  string
	DryRun        bool // evaluate everything, write nothing
	ShutdownGrace time.Duration

	// Contention says when a rule gives way to somebody who keeps setting its
	// change back.
	Contention Contention
	// Lease is what instances agree by on which of them works; the others stand
	// by. The zero value: this one always works.
	Lease types.NamespacedName
	terms electionTerms // other times than the default ones, for tests
	// FullObjects keeps objects whole in memory (managedFields where rules read them),
	// decoded whole, and has every event looked at: to find out whether the projection
	// to what rules read is at fault. It takes several times the memory and the work.
	FullObjects bool
	// Registerer takes the engine's metrics. Nil: none are exported.
	Registerer prometheus.Registerer
}

// Engine runs rules against a cluster. Make it with New; it runs once.
type Engine struct {
	opts       Options
	excluded   rules.Globs            // Options.ExcludeNamespaces
	policy     atomic.Pointer[policy] // the rules in force
	coming     atomic.Pointer[policy] // those that will be, while that is prepared; nil: none
	informers  *gvr.Manager
	writing    *writeClients
	queue      *objectQueue
	arrivals   arrivals
	objects    objectTable
	dependents dependents
	schemas    *schemaCache
	runnables  runnables
	rate       flowcontrol.RateLimiter // of writes
	failing    sync.Map                // informers that have failed and not synced since, by scope
	advised    sync.Map                // lines of advice that have been logged
	given      atomic.Pointer[string]  // advice that is not the engine's own
	recorder   *recorder
	metrics    *metrics
	panics     panics
	election   *election // nil: this instance is alone
	pending    *pending  // with Once only
	tally      tally
	failureLog failureLog
	syncs      atomic.Int64 // objects looked at
	abandoned  atomic.Bool  // the rest of the queue: the time to finish is over
	wasReady   atomic.Bool  // readyz has said so
	readySince readySince
	recent     recentLog

	contentions *contentions
	permissions permissions
	metadata    metadata.Interface // asks who owns fields

	reloading sync.Mutex // serialises changes of policy
}

// New prepares an engine; it does not contact the cluster.
func New(opts Options) (*Engine, error) {
	opts = withDefaults(opts)
	e := &Engine{opts: opts, metrics: newMetrics(opts.Registerer)}
	e.queue = newQueue(opts.Workers, e.metrics.queueProvider(opts.Registerer))
	p := newPolicy(opts.Rules, opts.Problems)
	p.counters = e.metrics.countersOf(opts.Rules)
	e.policy.Store(p)
	e.metrics.loaded(opts.Rules, opts.Problems)
	e.contentions = newContentions(opts.Contention, e.metrics, e.policy.Load())
	var err error
	if e.excluded, err = rules.NewGlobs(opts.ExcludeNamespaces...); err != nil {
		return nil, fmt.Errorf("namespaces to exclude: %w", err)
	}
	if e.informers, err = gvr.New(gvr.Options{
		Config:        unlimited(opts.Config),
		Namespaces:    opts.Namespaces,
		Resync:        opts.Resync,
		Handler:       e.handler,
		Indexers:      e.indexers,
		Fields:        e.keep,
		DecodeWhole:   opts.FullObjects,
		OnStateChange: e.stateChanged,
		OnRenewal:     e.renewed,
	}); err != nil {
		return nil, fmt.Errorf("prepare the informers: %w", err)
	}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(standing{e})
	}
	// Writes wait for their rate before the time of a request begins to count.
	writes := unlimited(opts.Config)
	e.rate = flowcontrol.NewFakeAlwaysRateLimiter()
	if opts.QPS > 0 {
		e.rate = flowcontrol.NewTokenBucketRateLimiter(opts.QPS, opts.Burst)
	}
	writes.Wrap(func(rt http.RoundTripper) http.RoundTripper { return retryAfterTransport{rt} })
	if e.writing, err = newWriteClients(writes); err != nil {
		return nil, fmt.Errorf("prepare the client for writes: %w", err)
	}
	if e.metadata, err = metadata.NewForConfig(writes); err != nil {
		return nil, fmt.Errorf("prepare the client for managedFields: %w", err)
	}
	// Events bound their rate themselves; access reviews and schemas are asked
	// for seldom. So none of them keeps another, or a fix, waiting.
	client, err := kubernetes.NewForConfig(unlimited(opts.Config))
	if err != nil {
		return nil, fmt.Errorf("prepare the client for events: %w", err)
	}
	e.schemas = newSchemaCache(openapi.ToClientWithContext(client.Discovery().OpenAPIV3()))
	e.permissions.reviews = client.AuthorizationV1().SelfSubjectAccessReviews()
	e.recorder = newRecorder(client.EventsV1(), opts.DryRun, e.metrics.unwritten)
	if opts.Lease.Name != "" {
		if e.election, err = newElection(opts.Config, opts.Lease, opts.terms, e.metrics.leader); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func withDefaults(o Options) Options {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.Workers, DefaultWorkers)
	set(&o.Burst, DefaultBurst)
	o.Contention = o.Contention.withDefaults()
	if o.QPS == 0 {
		o.QPS = DefaultQPS
	}
	if o.Resync == 0 {
		o.Resync = DefaultResync
	}
	if o.FieldManager == "" {
		o.FieldManager = DefaultFieldManager
	}
	if o.ShutdownGrace == 0 {
		o.ShutdownGrace = DefaultShutdownGrace
	}
	return o
}

// unlimited makes the config of a client. It lifts client-go's limit of 5 requests a second, which would let
// discovery and the initial lists wait for each other. The API server's
// priority and fairness bounds them.
func unlimited(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.QPS = -1
	// Warnings of the server are logged by default: a line for each request to
	// a deprecated version, and what a webhook writes there can be anything.
	c.WarningHandler = rest.NoWarnings{}
	return c
}

// Run runs the engine until ctx ends. It then takes no more work, finishes
// what is queued within ShutdownGrace, delivers its Events, and stops the
// informers. A cluster that cannot be reached is waited for.
//
// With Options.Lease all of this waits until this instance leads. Until then it
// watches nothing but the lease. If the lease is lost, Run drops what is under
// way and returns ErrLeaseLost; otherwise it releases the lease at the end.
func (e *Engine) Run(ctx context.Context) error {
	if e.election != nil {
		return e.election.run(ctx, e.work)
	}
	e.metrics.leader.Set(1)
	return e.work(ctx, context.WithoutCancel(ctx))
}

// work is Run for as long as this instance leads. When leading ends, nothing is
// finished.
func (e *Engine) work(ctx, leading context.Context) error {
	// Work that has begun outlives ctx: it is drained, not torn.
	work, stop := context.WithCancel(leading)
	defer stop()
	e.recorder.start(leading)
	e.startInforming()

	var running sync.WaitGroup
	informing := make(chan error, 1)
	go func() { informing <- e.informers.Run(work) }()
	var background sync.WaitGroup
	background.Go(func() { e.readSchemas(work) })
	if e.pending == nil { // Once tells what was missing
		background.Go(func() { e.reviewPermissions(work) })
	}
	for range e.opts.Workers {
		running.Go(func() { e.runWorker(work) })
	}

	select {
	case <-ctx.Done():
		klog.FromContext(ctx).Info("Shutting down", "grace", e.opts.ShutdownGrace)
	case <-leading.Done():
	case err := <-informing:
		informing <- err // returned in the end
	}
	e.finish(leading, &running, stop)
	stop()
	background.Wait()
	return <-informing
}
