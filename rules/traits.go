package rules

import "fmt"

// Traits are what a rule may ask of its resource.
type Traits struct {
	Namespaced, HasStatus, HasScale bool
	// ReplicasPath is where spec.replicas of scale is stored; nil: not known.
	ReplicasPath []string
}

// Unfit says why the rule cannot run on a resource with these traits, whatever
// else is known; empty: it can.
func (r *Rule) Unfit(t Traits) string {
	for _, s := range r.Subresources() {
		switch {
		case s == status && !t.HasStatus, s == scale && !t.HasScale:
			return fmt.Sprintf("the resource has no %s subresource", s)
		case s == scale && t.ReplicasPath == nil:
			return ErrReplicasUnknown.Error()
		}
	}
	if r.NamesNamespaces && !t.Namespaced {
		return "it has match.namespaces, but the resource is cluster-scoped"
	}
	return ""
}
