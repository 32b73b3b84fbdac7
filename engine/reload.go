package engine

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// SetRules puts other rules in force, before Run or at any time while it runs.
// problems are what is wrong with the rules that are left out or kept in an old
// version, for readiness detail. It returns how the rules differ from those
// before; an error means that those before stay in force.
//
// Informers of resources that both need keep running. Those that are new, and
// new indexes, are made ready first: no rule meets a cache that cannot answer
// it, though it may be parked until that has synced. Objects that changed rules
// are about, or were, are evaluated again, and what is remembered of changed
// rules is forgotten. A decision that was made by the rules before is not
// written any more, unless its request is on its way.
func (e *Engine) SetRules(set *rules.Set, problems []*rules.Problem) (rules.Changes, error) {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	before := e.policy.Load()
	changes := set.ChangesFrom(before.rules)
	next := before.next(set, problems, changes)
	next.counters = e.metrics.countersOf(set)
	if err := e.replace(before, next, changes); err != nil {
		e.metrics.forgetRules(before.rules)
		return rules.Changes{}, fmt.Errorf("put the rules in force: %w", err)
	}
	e.metrics.forgetRules(set)
	e.recent.forgetRules(set)
	e.metrics.loadedAnew(set, problems)
	return changes, nil
}

// replace puts a policy in force.
func (e *Engine) replace(before, next *policy, changes rules.Changes) error {
	e.coming.Store(next)
	defer e.coming.Store(nil)
	e.informers.Use(union(watched(before.rules), watched(next.rules)))
	if err := e.informers.Adapt(); err != nil {
		e.informers.Use(watched(before.rules))
		return err
	}
	e.contentions.follow(next) // first: it knows all rules that can write
	e.policy.Store(next)
	// All that an event handler had decided on by the rules before is in the
	// caches by now. Objects that no rule is about any more are forgotten when
	// their turn comes.
	for _, resource := range affected(before.rules, next.rules, changes) {
		e.enqueueAll(resource)
	}
	e.informers.Use(watched(next.rules))
	e.schemas.soon()
	e.advise()
	return nil
}

// affected are the resources that changed rules are about, or were.
func affected(before, next *rules.Set, changes rules.Changes) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	for _, name := range slices.Concat(changes.Changed, changes.Removed) {
		out = union(out, before.Get(name).Resources)
	}
	for _, name := range slices.Concat(changes.Changed, changes.Added) {
		out = union(out, next.Get(name).Resources)
	}
	return out
}

// union returns what is in a or b, without duplicates if a has none.
func union(a, b []schema.GroupVersionResource) []schema.GroupVersionResource {
	out := slices.Clone(a)
	for _, r := range b {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// KeepRules notes that newer rules cannot be read: those in force stay, and
// readyz says why until SetRules is called.
func (e *Engine) KeepRules(reason error) {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	kept := *e.policy.Load()
	kept.unread = reason.Error()
	e.policy.Store(&kept)
	e.metrics.notLoaded()
}

// startInforming begins with the informers that the rules need.
func (e *Engine) startInforming() {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	e.informers.Use(watched(e.rules()))
}

// errOutdated is why a decision is dropped whose rules are not in force any more.
var errOutdated = &againError{reason: "the rules have changed"}

// outdated reports whether the rules of a decision are not in force any more.
func (d *decision) outdated() bool { return d.policy.generation != d.Engine.policy.Load().generation }
