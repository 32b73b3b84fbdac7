package engine

import (
	"fmt"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// shield knows which rules of a set may handle what once was data of a Secret,
// and where they put it. Nothing that such a rule computes is shown, nor what
// stands where it writes: by then it is a value like any other.
//
// A rule is shielded if it reads data of Secrets, and if it reads what a shielded
// one writes: it may copy that on. Who looks up objects that a shielded rule
// writes to counts as reading all of them.
type shield struct {
	rules  map[*rules.Rule]bool
	writes map[schema.GroupResource][]*rules.Write
}

func newShield(set *rules.Set) *shield {
	s := &shield{rules: map[*rules.Rule]bool{}, writes: map[schema.GroupResource][]*rules.Write{}}
	for _, r := range set.All() {
		if r.ReadsSecretData() {
			s.include(r)
		}
	}
	for n := -1; n != len(s.rules); { // until no rule is found to copy it on
		n = len(s.rules)
		for _, r := range set.All() {
			if n > 0 && !s.rules[r] && s.reached(r) {
				s.include(r)
			}
		}
	}
	return s
}

func (s *shield) include(r *rules.Rule) {
	s.rules[r] = true
	for _, resource := range r.Resources {
		s.writes[resource.GroupResource()] = append(s.writes[resource.GroupResource()], r.Writes()...)
	}
}

// reached reports whether a rule reads what a shielded one writes.
func (s *shield) reached(r *rules.Rule) bool {
	reads := r.Reads()
	for i := range r.Patches() {
		used, _ := r.PatchReads(i)
		reads = reads.Union(used)
	}
	for _, resource := range r.Resources {
		if slices.ContainsFunc(s.writes[resource.GroupResource()], func(w *rules.Write) bool { return w.Touches(reads) }) {
			return true
		}
	}
	return slices.ContainsFunc(r.Lookups, func(l *rules.Lookup) bool { return len(s.writes[l.Resource.GroupResource()]) > 0 })
}

// fields names what a rule changes; where that may be secret, by its text.
func (s *shield) fields(v rules.Verdict) []string {
	if !s.rules[v.Rule] {
		return v.Change.Fields()
	}
	var out []string
	for _, w := range v.Rule.Writes() {
		out = append(out, w.Field())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// message is what a rule says of its change; empty if it has nothing of its own
// to say. What a shielded rule says may be computed from what it wrote before.
func (s *shield) message(v rules.Verdict) string {
	if s.rules[v.Rule] || v.Event.Message == fmt.Sprintf("changed by rule %s", v.Rule.Name) {
		return ""
	}
	return v.Event.Message
}

// problem is what there is to say of a rule that failed: what went wrong in
// the expressions of a shielded one may be about what they read.
func (s *shield) problem(r *rules.Rule, reason, message string) string {
	if s.rules[r] && reason == "EvaluationFailed" {
		return "it could not be evaluated (it reads what may come from a Secret: what failed is not shown)"
	}
	return message
}

// shieldCache keeps the shield of the rules in force. It is safe for concurrent
// use.
type shieldCache struct {
	last atomic.Pointer[shieldOfSet]
}

type shieldOfSet struct {
	set    *rules.Set
	shield *shield
}

func (c *shieldCache) of(set *rules.Set) *shield {
	if last := c.last.Load(); last != nil && last.set == set {
		return last.shield
	}
	next := &shieldOfSet{set, newShield(set)}
	c.last.Store(next)
	return next.shield
}
