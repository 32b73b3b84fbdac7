package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// policy is the rules in force. It is replaced as a whole, and never modified:
// a decision goes by one policy from its begin to its end.
type policy struct {
	rules    *rules.Set
	problems []*rules.Problem
	unread   string // why newer rules cannot be read, empty: they can
	loaded   time.Time
	lookups  map[schema.GroupVersionResource][]*rules.Lookup
	// namespaced are the resources that rules are about which read Namespaces.
	namespaced []schema.GroupVersionResource
	needs      *needs // what it takes of objects
	// generation counts the policies with other rules. since has, for each rule,
	// the one that brought its present version.
	generation uint64
	counters   countersByRule // nil: nothing is counted
	since      map[string]uint64
	// tracked says that what objects depend on is kept: rules look something up,
	// or did before.
	tracked bool
}

func newPolicy(set *rules.Set, problems []*rules.Problem) *policy {
	p := &policy{
		rules: set, problems: problems, loaded: time.Now(),
		lookups: map[schema.GroupVersionResource][]*rules.Lookup{},
		since:   map[string]uint64{},
		tracked: len(set.Lookups()) > 0,
		needs:   newNeeds(set),
	}
	for _, r := range set.All() {
		p.since[r.Name] = 0
	}
	for _, resource := range set.Resources() {
		if slices.ContainsFunc(set.For(resource), func(r *rules.Rule) bool { return r.NeedsNamespace || r.OptOut }) {
			p.namespaced = append(p.namespaced, resource)
		}
	}
	for _, l := range set.Lookups() {
		p.lookups[l.Resource] = append(p.lookups[l.Resource], l)
	}
	return p
}

// next makes the policy that follows on this one.
func (p *policy) next(set *rules.Set, problems []*rules.Problem, changes rules.Changes) *policy {
	next := newPolicy(set, problems)
	next.tracked = next.tracked || p.tracked
	next.generation = p.generation
	if !changes.None() {
		next.generation++
	}
	for _, r := range set.All() {
		next.since[r.Name] = p.since[r.Name]
	}
	for _, name := range slices.Concat(changes.Added, changes.Changed) {
		next.since[name] = next.generation
	}
	return next
}

// changedSince reports whether a rule is another one than it was under the
// policy of a generation, or is not there any more.
func (p *policy) changedSince(rule string, generation uint64) bool {
	since, ok := p.since[rule]
	return !ok || since > generation
}

// report tells readyz about the rules.
func (p *policy) report(line func(mark, format string, args ...any)) {
	mark := "+"
	if len(p.rules.All()) == 0 {
		mark = "!" // it was told to do nothing: is that meant?
	}
	line(mark, "rules: %d loaded, %d invalid", len(p.rules.All()), rules.CountInvalid(p.problems))
	if p.unread != "" {
		line("!", "rules: not loaded anew: %s; those that were loaded before stay in force", p.unread)
	}
	for _, p := range p.problems {
		if p.Kept {
			line("!", "rule not loaded anew: %s", p.Error())
		} else {
			line("!", "rule left out: %s", p.Error())
		}
	}
}

// rules are the rules in force at this moment.
func (e *Engine) rules() *rules.Set { return e.policy.Load().rules }

// served are the policies that informers have to serve: the one in force and,
// while it is being prepared, the one that comes.
func (e *Engine) served() []*policy {
	coming := e.coming.Load() // first: it may come into force in between
	inForce := e.policy.Load()
	if coming == nil || coming == inForce {
		return []*policy{inForce}
	}
	return []*policy{inForce, coming}
}
