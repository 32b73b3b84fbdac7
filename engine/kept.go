package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/rules"
)

// Kept tells which fields of objects an Engine with a set of rules keeps, but for
// Options.FullObjects. It is safe for concurrent use.
type Kept struct{ needs *needs }

// NewKept returns the Kept of a set.
func NewKept(set *rules.Set) Kept { return Kept{newNeeds(set)} }

// Resources are those of whose objects something is kept for a rule: what it is
// about, what it looks up, and Namespaces where it asks for them; in that order.
func (k Kept) Resources(r *rules.Rule) []schema.GroupVersionResource {
	out := slices.Clone(r.Resources)
	add := func(resource schema.GroupVersionResource) {
		if !slices.Contains(out, resource) {
			out = append(out, resource)
		}
	}
	for _, l := range r.Lookups {
		add(l.Resource)
	}
	if r.NeedsNamespace || r.OptOut {
		add(namespaces)
	}
	return out
}

// Fields is what is kept of a resource's objects for a rule of the set, beside who the
// object is. replicasPath is where the resource has its replicas; nil: it has none, or
// it is not known.
func (k Kept) Fields(r *rules.Rule, resource schema.GroupVersionResource, replicasPath []string) projection.Fields {
	return k.needs.byRule(r, resource, replicasPath)
}
