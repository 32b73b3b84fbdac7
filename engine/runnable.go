package engine

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// runnable are the rules for a resource that can run, with their index.
type runnable struct {
	rules    []*rules.Rule
	index    *rules.Index
	counters *bulkCounters
}

// runnables keep which rules can run on resources, so that this is not asked of each
// rule for each event. The zero value is ready for use, and safe for it from many
// goroutines.
//
// What is kept is used only where asking again would give the same. parkedReason is
// what decides; it depends on
//
//   - the rule, what is known of resources and what caches lack: on the survey, which
//     belongs to one policy and is another one in each epoch of the informers;
//   - whether what rules look up is available: on the epoch, which is compared with
//     that of the survey before each use. What was asked is kept only if the epoch is
//     still the same afterwards;
//   - whether the schema of the kind is known, which is asked each time if a rule
//     needs it: once known, it stays so;
//   - how far Namespaces are known, which is a part of the key;
//   - Options, which do not change.
type runnables struct {
	mu       sync.RWMutex
	of       map[runnableOf]keptRunnable
	building sync.Mutex // one index at a time, since others would build the same one
}

type runnableOf struct {
	resource schema.GroupVersionResource
	ns       gvr.Availability
}

type keptRunnable struct {
	*runnable
	policy      *policy
	survey      *resourceSurvey
	needsSchema bool // a rule does
	schemaKnown bool // that of the kind
}

// rulesFor returns the rules for a resource that can run now: the others are
// parked. info is what the survey of the decision says of the resource, if there is
// a survey, and ns is how far Namespaces are known.
func (d *decision) rulesFor(resource schema.GroupVersionResource, info gvr.Info, ns gvr.Availability) []*rules.Rule {
	if d.runnable = d.findRunnable(resource, info, ns); d.runnable != nil {
		return d.runnable.rules
	}
	return d.canRun(resource, info, ns)
}

// canRun asks of each rule whether it can run.
func (d *decision) canRun(resource schema.GroupVersionResource, info gvr.Info, ns gvr.Availability) []*rules.Rule {
	all := d.policy.rules.For(resource)
	canNot := func(r *rules.Rule) bool {
		word, _ := d.parkedReason(r, info, ns, d.survey)
		return word != ""
	}
	first := slices.IndexFunc(all, canNot)
	if first < 0 {
		return all
	}
	rest := slices.DeleteFunc(slices.Clone(all[first+1:]), canNot)
	return slices.Concat(all[:first], rest)
}

// findRunnable returns the rules that can run as they are kept, or keeps them. It is
// nil for what is not of the present: a preview, a policy that has been replaced, an
// epoch that has ended.
func (d *decision) findRunnable(resource schema.GroupVersionResource, info gvr.Info, ns gvr.Availability) *runnable {
	if d.preview || d.survey == nil || d.policy.counters == nil || !d.current() {
		return nil
	}
	of := runnableOf{resource, ns}
	if found := d.kept(of); found != nil {
		return found
	}
	d.runnables.building.Lock()
	defer d.runnables.building.Unlock()
	if found := d.kept(of); found != nil {
		return found
	}
	keep := keptRunnable{policy: d.policy, survey: d.survey, schemaKnown: d.schemas.missing(resource) == ""}
	keep.needsSchema = slices.ContainsFunc(d.policy.rules.For(resource), func(r *rules.Rule) bool { return r.NeedsSchema })
	can := d.canRun(resource, info, ns)
	if !d.current() {
		return nil
	}
	keep.runnable = d.sameRunnable(resource, can)
	if keep.runnable == nil {
		x := rules.NewIndex(can)
		keep.runnable = &runnable{can, x, d.metrics.newBulkCounters(x, d.policy.counters[resource])}
	}
	for _, old := range d.runnables.put(of, keep) {
		d.metrics.retire(old.counters)
	}
	return keep.runnable
}

// current reports whether the decision goes by what is so at this moment.
func (d *decision) current() bool {
	return d.survey.epoch == d.informers.Epoch() && d.policy == d.Engine.policy.Load()
}

func (d *decision) kept(of runnableOf) *runnable {
	d.runnables.mu.RLock()
	k := d.runnables.of[of]
	d.runnables.mu.RUnlock()
	if k.runnable == nil || k.survey != d.survey || k.policy != d.policy {
		return nil
	}
	if k.needsSchema && k.schemaKnown != (d.schemas.missing(of.resource) == "") {
		return nil
	}
	return k.runnable
}

// sameRunnable returns what is kept of just these rules, whatever else has changed
// since; nil if nothing is.
func (d *decision) sameRunnable(resource schema.GroupVersionResource, all []*rules.Rule) *runnable {
	d.runnables.mu.RLock()
	defer d.runnables.mu.RUnlock()
	for of, k := range d.runnables.of {
		if of.resource == resource && k.policy == d.policy && slices.Equal(k.rules, all) {
			return k.runnable
		}
	}
	return nil
}

// put keeps rules in place of those from before, and forgets those of other policies.
// It returns what is of no use any more.
func (r *runnables) put(of runnableOf, keep keptRunnable) []*runnable {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[runnableOf]keptRunnable{}
	}
	before := map[*runnable]bool{}
	for other, k := range r.of {
		before[k.runnable] = true
		if k.policy != keep.policy {
			delete(r.of, other)
		}
	}
	r.of[of] = keep
	for _, k := range r.of {
		delete(before, k.runnable)
	}
	out := make([]*runnable, 0, len(before))
	for k := range before {
		out = append(out, k)
	}
	return out
}
