package rules

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Shield knows which rules of a set may handle what once was data of a Secret,
// and where they put it. Nothing that such a rule computes is to be shown, nor what
// stands where it writes: by then it is a value like any other. It is immutable.
//
// A rule is shielded if it reads data of Secrets, and if it reads what a shielded
// one writes: it may copy that on. Who looks up objects that a shielded rule
// writes to counts as reading all of them.
type Shield struct {
	rules  map[*Rule]bool
	writes map[schema.GroupResource][]*Write
	untold map[*Rule]bool // whose message may hold what shielded rules have written
}

// NewShield finds out about the rules of a set.
func NewShield(set *Set) *Shield {
	s := &Shield{rules: map[*Rule]bool{}, writes: map[schema.GroupResource][]*Write{}, untold: map[*Rule]bool{}}
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
	for _, r := range set.All() {
		s.untold[r] = s.tells(r)
	}
	return s
}

func (s *Shield) include(r *Rule) {
	s.rules[r] = true
	for _, resource := range r.Resources {
		s.writes[resource.GroupResource()] = append(s.writes[resource.GroupResource()], r.Writes()...)
	}
}

// reached reports whether a rule reads what a shielded one writes.
func (s *Shield) reached(r *Rule) bool {
	reads := r.Reads()
	for i := range r.Patches() {
		used, _ := r.PatchReads(i)
		reads = reads.Union(used)
	}
	for _, resource := range r.Resources {
		if slices.ContainsFunc(s.Writes(resource.GroupResource()), func(w *Write) bool { return w.Touches(reads) }) {
			return true
		}
	}
	return slices.ContainsFunc(r.Lookups, func(l *Lookup) bool { return len(s.Writes(l.Resource.GroupResource())) > 0 })
}

// tells reports whether the message of a rule is computed from what a shielded one
// writes.
func (s *Shield) tells(r *Rule) bool {
	reads := r.eventReads()
	for _, resource := range r.Resources {
		if slices.ContainsFunc(s.Writes(resource.GroupResource()), func(w *Write) bool { return w.Touches(reads.Paths(objectName)) }) {
			return true
		}
	}
	return slices.ContainsFunc(r.Lookups, func(l *Lookup) bool {
		found := reads.Paths(lookupPrefix + l.Name)
		return slices.ContainsFunc(s.Writes(l.Resource.GroupResource()), func(w *Write) bool { return w.Touches(found) })
	})
}

// Covers reports whether what a rule computes may come from a Secret.
func (s *Shield) Covers(r *Rule) bool { return s.rules[r] }

// Writes are the places where shielded rules write in objects of a resource.
func (s *Shield) Writes(resource schema.GroupResource) []*Write { return s.writes[resource] }

// Fields names what a rule changes; where that may be secret, by its text.
func (s *Shield) Fields(v Verdict) []string {
	if !s.rules[v.Rule] {
		return v.Change.Fields()
	}
	return v.Rule.writtenFields()
}

// Message is what a rule says of its change: the text without values that stands for
// a missing one, if values may come from a Secret. Load refuses messages that read
// a Secret's data where it stands; this is about copies that other rules have made.
func (s *Shield) Message(v Verdict) string {
	if s.untold[v.Rule] {
		return v.Rule.DefaultMessage()
	}
	return v.Event.Message
}

// Error is why a rule failed on an object: an error of an expression may quote what
// it reads.
func (s *Shield) Error(r *Rule, err error) string {
	var failed *EvaluationError
	if s.rules[r] && errors.As(err, &failed) {
		hidden := *failed
		hidden.Secret = true
		return hidden.Error()
	}
	return err.Error()
}
