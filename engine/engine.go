package engine

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
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

// What failed and may work later is tried again after a time that grows, for
// each object, between these; all objects together within a rate.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Minute
	retryQPS   = 50
	retryBurst = 500
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
	// MayWrite is asked before each write; an error keeps it back. Nil: always.
	MayWrite func() error
	// Registerer takes the engine's metrics. Nil: none are exported.
	Registerer prometheus.Registerer
}

// Engine runs rules against a cluster. Make it with New; it runs once.
type Engine struct {
	opts       Options
	policy     atomic.Pointer[policy] // the rules in force
	informers  *gvr.Manager
	writer     dynamic.Interface
	access     accessReviewer
	queue      workqueue.TypedRateLimitingInterface[Key]
	objects    objectTable
	dependents dependents
	schemas    *schemaCache
	rate       flowcontrol.RateLimiter // of writes
	failing    sync.Map                // resources whose informers fail at the moment
	recorder   *recorder
	parked     parkedWrites
	metrics    *metrics
	pending    *pending // with Once only
	tally      tally
	syncs      atomic.Int64 // objects looked at
}

// New prepares an engine; it does not contact the cluster.
func New(opts Options) (*Engine, error) {
	opts = withDefaults(opts)
	e := &Engine{
		opts: opts,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedMaxOfRateLimiter(
				workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
				&workqueue.TypedBucketRateLimiter[Key]{Limiter: rate.NewLimiter(retryQPS, retryBurst)}),
			workqueue.TypedRateLimitingQueueConfig[Key]{Name: "rectifier"}),
	}
	e.policy.Store(newPolicy(opts.Rules, opts.Problems))
	e.metrics = newMetrics(opts.Registerer)
	var err error
	if e.informers, err = gvr.New(gvr.Options{
		Config:        unlimited(opts.Config),
		Namespaces:    opts.Namespaces,
		Resync:        opts.Resync,
		Handler:       e.handler,
		Indexers:      e.indexers,
		OnStateChange: e.stateChanged,
	}); err != nil {
		return nil, fmt.Errorf("prepare the informers: %w", err)
	}
	// Writes wait for their rate before the time of a request begins to count.
	writes := unlimited(opts.Config)
	e.rate = flowcontrol.NewFakeAlwaysRateLimiter()
	if opts.QPS > 0 {
		e.rate = flowcontrol.NewTokenBucketRateLimiter(opts.QPS, opts.Burst)
	}
	writes.Wrap(func(rt http.RoundTripper) http.RoundTripper { return retryAfterTransport{rt} })
	if e.writer, err = dynamic.NewForConfig(writes); err != nil {
		return nil, fmt.Errorf("prepare the client for writes: %w", err)
	}
	// Events and access reviews have limits of their own, so that neither
	// keeps a fix waiting.
	side := unlimited(opts.Config)
	side.QPS, side.Burst = eventQPS, eventBurst
	client, err := kubernetes.NewForConfig(side)
	if err != nil {
		return nil, fmt.Errorf("prepare the client for events: %w", err)
	}
	e.schemas = newSchemaCache(openapi.ToClientWithContext(client.Discovery().OpenAPIV3()))
	e.access = accessReviewer{client.AuthorizationV1().SelfSubjectAccessReviews()}
	e.recorder = newRecorder(client.EventsV1(), opts.DryRun)
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
// what is queued within ShutdownGrace, and stops the informers. A cluster that
// cannot be reached is waited for.
func (e *Engine) Run(ctx context.Context) error {
	// Work that has begun outlives ctx: it is drained, not torn.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := e.recorder.start(work); err != nil {
		return fmt.Errorf("start recording events: %w", err)
	}
	e.informers.Use(watched(e.rules()))

	var running sync.WaitGroup
	informing := make(chan error, 1)
	go func() { informing <- e.informers.Run(work) }()
	var background sync.WaitGroup
	background.Go(func() { e.readSchemas(work) })
	for range e.opts.Workers {
		running.Go(func() { e.runWorker(work) })
	}

	<-ctx.Done()
	klog.FromContext(ctx).Info("Shutting down", "grace", e.opts.ShutdownGrace)
	deadline := time.AfterFunc(e.opts.ShutdownGrace, func() {
		stop()
		e.queue.ShutDown()
	})
	defer deadline.Stop()
	e.queue.ShutDownWithDrain()
	running.Wait()
	e.recorder.drain(work)
	stop()
	background.Wait()
	return <-informing
}

// rulesFor returns the rules for a resource that can run now: the others are
// parked. ns is how far Namespaces are known.
func (d *decision) rulesFor(resource schema.GroupVersionResource, info gvr.Info, ns gvr.Availability) []*rules.Rule {
	all := d.rules.For(resource)
	canNot := func(r *rules.Rule) bool { return d.parkedReason(r, info, ns) != "" }
	if !slices.ContainsFunc(all, canNot) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), canNot)
}
