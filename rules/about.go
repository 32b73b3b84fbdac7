package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// About returns the same rules as if they named only those of their resources for
// which about says yes, without the rules that then name none: for a look at a part
// of what there is. The set itself stays as it is.
func (s *Set) About(about func(schema.GroupVersionResource) bool) *Set {
	var out []*Rule
	for _, r := range s.rules {
		narrowed := *r
		narrowed.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(gvr schema.GroupVersionResource) bool { return !about(gvr) })
		if len(narrowed.Resources) > 0 {
			out = append(out, &narrowed)
		}
	}
	return newSet(out)
}
