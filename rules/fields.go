package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// Fields returns which fields of the objects of a resource the rules need, as
// objects that they are about, as Namespaces of those, and as what they look up:
// evaluated on objects reduced to these, they give what they give on whole ones.
// replicasPath is Input.ReplicasPath of the resource; nil: it has none, or it is
// not known.
//
// What identifies an object comes on top of that: apiVersion, kind, and in
// metadata name, namespace, uid and resourceVersion. Input.Trace and
// Change.Paths are for people, and show what there is.
func (s *Set) Fields(resource schema.GroupVersionResource, replicasPath []string) *fieldset.Set {
	var all []*fieldset.Set
	for _, r := range s.rules {
		all = r.appendFields(all, resource, replicasPath)
	}
	return fieldset.Empty().Union(all...)
}

// Fields is the same of one rule; empty if it has nothing to do with the resource.
func (r *Rule) Fields(resource schema.GroupVersionResource, replicasPath []string) *fieldset.Set {
	return fieldset.Empty().Union(r.appendFields(nil, resource, replicasPath)...)
}

// appendFields adds the sets whose union Fields is.
func (r *Rule) appendFields(all []*fieldset.Set, resource schema.GroupVersionResource, replicasPath []string) []*fieldset.Set {
	if slices.Contains(r.Resources, resource) {
		all = append(all, r.needs)
		// Without a path, a patch of scale fails before it looks at anything.
		if replicasPath != nil && slices.ContainsFunc(r.patches, func(p patchTemplate) bool { return p.subresource == scale }) {
			all = append(all, fieldset.Of(replicasPath...))
		}
	}
	if resource.GroupResource() == namespaces.GroupResource() {
		all = append(all, namespaceReads([]*Rule{r}))
	}
	for _, l := range r.Lookups {
		if l.Resource == resource {
			all = append(all, l.fields())
		}
	}
	return all
}

// objectFields returns what evaluation needs of an object that the rule is about,
// but for the replica count that patches of scale set.
//
// It is sound because it keeps this through all evaluation: the object, and the
// working copy after each patch, look the same through the set whether they are
// reduced or not. What a patch puts somewhere is computed from what CEL reads, or is
// copied, and so the same on both. What decides whether it is a change, and how that
// is written down, is what stands in its place: all that is at or below it, since
// another patch may have put something else there in between. On the way to it,
// presence and kind tell whether there is a map; a list is needed whole, and Write
// ends there. The merge of a configuration goes where the configuration goes, and
// looks at nothing beside it.
func (r *Rule) objectFields() *fieldset.Set {
	all := []*fieldset.Set{r.conditionReads, r.objectReads}
	for _, w := range r.writes {
		switch {
		case w.Subresource == scale: // a path of the Scale
		case w.ensures && len(w.Path) == 0: // the object is a map
		case w.ensures:
			// For evaluation presence would do. What is replaced if it is no map is kept
			// for people, who are told what was there.
			all = append(all, fieldset.Keys(w.Path...), fieldset.WholeIfList(w.Path...))
		default:
			all = append(all, w.Fields())
		}
	}
	for i, p := range r.patches {
		if p.subresource != scale {
			all = append(all, r.patchReads[i].fields, r.patchReads[i].tested)
		}
	}
	return fieldset.Empty().Union(all...)
}

// fields returns what is needed of the objects that are looked up: what CEL reads
// of them, and what finds them.
func (l *Lookup) fields() *fieldset.Set {
	all := []*fieldset.Set{l.reads}
	if l.Namespaced {
		all = append(all, fieldset.Of("metadata", "namespace"))
	}
	for _, path := range l.Where {
		all = append(all, fieldset.Of(strings.Split(path, ".")...))
	}
	if l.selector != nil {
		all = append(all, labelSet)
	}
	return fieldset.Empty().Union(all...)
}

// labelFields returns the labels that a selector looks at.
func labelFields(s labels.Selector) *fieldset.Set {
	var all []*fieldset.Set
	required, _ := s.Requirements()
	for _, label := range required {
		all = append(all, fieldset.Of("metadata", "labels", label.Key()))
	}
	return fieldset.Empty().Union(all...)
}

// optOutFields are the annotations by which an object or a Namespace opts out.
var optOutFields = fieldset.Of("metadata", "annotations", SkipAnnotation).Union(fieldset.Of("metadata", "annotations", SkipUntilAnnotation))
