package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// Key is what the queue carries: one object, whatever the version it is read
// in, so that rules on two versions of a resource never write side by side.
type Key struct {
	Resource        schema.GroupResource
	Namespace, Name string
}

// String is resource.group namespace/name.
func (k Key) String() string {
	return k.Resource.String() + " " + cache.ObjectName{Namespace: k.Namespace, Name: k.Name}.String()
}

// staleWait is how soon an object is looked at again at first whose cached version
// is known to be old. The watch event that ends the wait usually comes first.
const staleWait = 100 * time.Millisecond

// unknownWait is how soon an object is looked at again for which something
// that a rule needs to know was not known. An event usually comes first.
const unknownWait = time.Second

// runWorker handles keys until the queue is shut down.
func (e *Engine) runWorker(ctx context.Context) {
	for !e.abandoned.Load() && e.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem handles one key: the only place that decides when a key
// is seen again.
func (e *Engine) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := e.queue.Get()
	if shutdown {
		return false
	}
	defer e.queue.Done(key)
	if ctx.Err() != nil {
		return false // the time to finish is over
	}
	logger := klog.FromContext(ctx).WithValues("resource", key.Resource, "object", klog.KRef(key.Namespace, key.Name))
	began := e.pending.mark(key)

	next, err := e.syncRecovered(klog.NewContext(ctx, logger), key)
	var again *againError
	switch {
	case err == nil:
		e.queue.Forget(key)
		if next > 0 {
			e.queue.AddAfter(key, next)
		}
		if e.pending != nil && !e.objects.unseen(key) {
			e.pending.settle(key, began)
		}
	case errors.As(err, &again):
		e.queue.AddAfter(key, again.after)
	case ctx.Err() != nil: // it failed because of that
	default:
		e.tellFailure(logger, key, err)
		e.queue.AddRateLimited(key)
	}
	return true
}

// againError asks for another look after a time: neither a success nor a
// failure.
type againError struct {
	after  time.Duration
	reason string
}

func (e *againError) Error() string { return fmt.Sprintf("again in %v: %s", e.after, e.reason) }

// syncRecovered makes of a panic an error of this object.
func (e *Engine) syncRecovered(ctx context.Context, key Key) (next time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = e.panicked(klog.FromContext(ctx), key.Resource, p)
		}
	}()
	return e.sync(ctx, key)
}

// view is an object as one informer has it.
type view struct {
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured // the fields that are kept of it; read-only
}

// sync brings one object in line with the rules, in each version that rules
// read it in. It returns when the object is due again even if nothing changes
// (0: never). An error is one that trying again may mend.
func (e *Engine) sync(ctx context.Context, key Key) (next time.Duration, err error) {
	e.syncs.Add(1)
	since := e.arrivals.take(key)
	e.objects.begin(key) // before the object is read
	defer e.objects.end(key)
	defer func() {
		if err != nil {
			e.arrivals.again(key, since)
		}
	}()
	p := e.policy.Load()
	survey, views := e.look(p, key)
	if len(views) == 0 {
		e.objects.forget(key)
		e.dependents.forget(key)
		e.contentions.gone(key)
		return 0, nil
	}
	state := e.objects.get(key, views[0].object.GetUID())
	for _, v := range views {
		if state.behind(v.object.GetResourceVersion(), e.informers.LastSyncVersion(v.resource, key.Namespace), time.Now()) {
			return 0, &againError{state.lookAgain(time.Now()), "the cache does not hold the newest version yet"}
		}
	}
	state.follow(p)
	state.caughtUp(views[0].object.GetResourceVersion())
	d := &decision{
		Engine: e, policy: p, key: key, state: state, now: time.Now(), since: since, lookups: &lookups{Engine: e, object: key},
		known: e.contentions.knows(key, views[0].object.GetUID()), survey: survey,
	}
	defer func() {
		e.objects.keep(key, d.state)
		if p.tracked {
			e.dependents.set(key, d.lookups.queries)
		}
	}()
	for _, v := range views {
		if err := d.decide(ctx, v); err != nil {
			return 0, err
		}
		if d.wrote || d.gone {
			break // the watch brings what the rest is decided on
		}
	}
	d.forgiveFailures()
	if d.wrote || d.recheck.IsZero() {
		return 0, nil
	}
	return max(time.Until(d.recheck), time.Millisecond), nil
}

// forgiveFailures forgets the object's failures after a write, or when it has
// been quiet for long enough; until then it is looked at again. An object that
// is right for a moment does not begin anew.
func (d *decision) forgiveFailures() {
	if d.state == nil {
		return
	}
	if quiet := d.state.quietAt(); d.state.delays > 0 && !d.wrote && time.Now().Before(quiet) {
		d.recheckAt(quiet)
		return
	}
	d.state.delays, d.state.told = 0, false
}

// look returns an object as the informers have it, with what is known of resources at
// that moment.
func (e *Engine) look(p *policy, key Key) (*resourceSurvey, []view) {
	for {
		survey := e.survey(p)
		if views := e.views(p.rules, key); e.informers.Epoch() == survey.epoch {
			return survey, views
		}
	}
}

// views returns an object as the informers have it, in the order of versions;
// none if it is gone, or part of the engine's own work. An informer that has an older state
// of it than another one is passed over: its event is still to come.
func (e *Engine) views(set *rules.Set, key Key) []view {
	var out []view
	for _, resource := range set.Versions(key.Resource) {
		object, ok := e.informers.Get(resource, key.Namespace, key.Name)
		switch {
		case !ok || e.own(key, object):
		case len(out) > 0 && older(object.GetResourceVersion(), out[0].object.GetResourceVersion()):
		case len(out) > 0 && older(out[0].object.GetResourceVersion(), object.GetResourceVersion()):
			out = []view{{resource, object}}
		default:
			out = append(out, view{resource, object})
		}
	}
	return out
}

// decide runs the rules on one view and carries the decision out.
func (d *decision) decide(ctx context.Context, v view) error {
	info, ok := d.survey.infos[v.resource]
	if !ok {
		return nil // gone, or not known for now; what comes back, or is known again, is enqueued anew
	}
	all, _ := d.about(v, info)
	if d.state.splitting() {
		return d.writeOneByOne(ctx, all)
	}
	return d.writeTogether(ctx, all)
}

// about makes the decision one about a view, and returns the rules that can run
// on it. It reports false if the object's Namespace should be in the cache and is
// not yet: the rules that read it are not among them.
func (d *decision) about(v view, info gvr.Info) (all []*rules.Rule, found bool) {
	d.view, d.replicasPath, d.hasStatus, d.counted = v, info.ReplicasPath, info.HasStatus, false
	// Asked once: a rule that reads the Namespace runs only if it was there to
	// be found. One that is not in the cache yet enqueues its objects when it
	// comes.
	ns, _ := d.informers.Availability(namespaces)
	if known, ok := d.opts.ReadNamespaces[d.key.Namespace]; ok && info.Namespaced {
		d.namespace = known
		return d.rulesFor(v.resource, info, gvr.Available), true
	}
	if found = d.findNamespace(info, ns); !found {
		ns = gvr.Unavailable
	}
	return d.rulesFor(v.resource, info, ns), found
}

// decision is what is to become of one object.
type decision struct {
	*Engine
	view
	policy       *policy // the one in force when it began
	key          Key
	now          time.Time
	since        time.Time // when the event came that it is about
	replicasPath []string
	hasStatus    bool
	namespace    map[string]any // its Namespace; nil where no rule reads it
	lookups      *lookups
	survey       *resourceSurvey // of when the object was read
	runnable     *runnable       // the rules that can run on it; nil: there is no index of them
	counted      bool            // what rules make of this view has been counted
	sent         bool            // the last request went out
	preview      bool            // verdicts of all rules are wanted, and the server is only asked
	recheck      time.Time       // when it is due again; zero: never
	state        *objectState    // nil as long as there is nothing to remember
	known        bool            // rules have written to it lately
	noted        []*rules.Rule   // those whose write has been remembered
	gone         bool            // it is not there any more
	wrote        bool            // something was accepted: the object is another one now
}

func (d *decision) evaluate(rs []*rules.Rule, object map[string]any) rules.Result {
	return d.concluded(rules.Evaluate(rs, d.input(object)))
}

// concluded notes when an object has to be looked at again because of a result.
func (d *decision) concluded(result rules.Result) rules.Result {
	d.recheckAt(result.Recheck)
	if slices.ContainsFunc(result.Verdicts, func(v rules.Verdict) bool { return errors.Is(v.Err, expression.ErrDeadline) }) {
		d.remember().late = true
	}
	return result
}

func (d *decision) input(object map[string]any) rules.Input {
	return rules.Input{
		Resource: d.resource, Object: object, ReplicasPath: d.replicasPath, HasStatus: d.hasStatus,
		NamespaceObject: d.namespace, Lookups: d.lookups, Now: d.now, Schema: d.schemas.get(d.resource), Explain: d.preview,
	}
}

// recheckAt notes when the object is due again; the earliest time wins.
func (d *decision) recheckAt(at time.Time) {
	if d.recheck.IsZero() || !at.IsZero() && at.Before(d.recheck) {
		d.recheck = at
	}
}

// findNamespace looks up the object's Namespace; it reports false if that
// should be in the cache and is not yet.
func (d *decision) findNamespace(info gvr.Info, available gvr.Availability) bool {
	d.namespace = nil
	if !info.Namespaced || available != gvr.Available {
		return true
	}
	ns, ok := d.informers.Get(namespaces, "", d.key.Namespace)
	if ok {
		d.namespace = ns.Object
	}
	return ok
}
