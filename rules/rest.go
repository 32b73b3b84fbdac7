package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// Rests reports whether it is proved that the rule comes to a fixed point,
// whatever the object: a second evaluation on its result changes nothing. False
// says nothing: most rules that are not proved to rest do so nevertheless.
//
// The proof: no value that a patch writes depends on a field that the rule
// writes, nor on the time; so a second evaluation writes the same values. To
// merge the same values once more changes nothing, and neither does it to set
// them by operations that do not meet. What the condition reads does not
// matter: it can only keep the second evaluation from happening.
func (r *Rule) Rests() bool {
	kinds := map[PatchKind]bool{}
	for i, w := range r.writes {
		kinds[w.Kind] = true
		if w.Kind == KindJSON && !w.settles(r.writes[:i]) {
			return false
		}
	}
	if kinds[KindJSON] && len(r.patches) > 1 || r.findsItself() {
		return false
	}
	for i := range r.patches {
		reads, now := r.PatchReads(i)
		if now || slices.ContainsFunc(r.writes, func(w *Write) bool { return w.changes(reads) }) {
			return false
		}
	}
	return true
}

// changes reports whether a write can be noticed by one who reads these fields
// of the object.
func (w *Write) changes(reads *fieldset.Set) bool {
	if w.Subresource == scale {
		return !reads.Field("spec").IsEmpty() // all that a CRD may call its replicas
	}
	return w.Touches(reads) || w.Makes(reads)
}

// settles reports whether an operation sets or removes one value, apart from
// those of the operations before it.
func (w *Write) settles(before []*Write) bool {
	if !w.Exact || !slices.Contains([]string{"add", "remove", "replace"}, w.op) {
		return false
	}
	return !slices.ContainsFunc(before, w.Overlaps)
}

// findsItself reports whether the rule may look up what it changes.
func (r *Rule) findsItself() bool {
	return slices.ContainsFunc(r.Lookups, func(l *Lookup) bool {
		return slices.ContainsFunc(r.Resources, func(mine schema.GroupVersionResource) bool { return mine.GroupResource() == l.Resource.GroupResource() })
	})
}
