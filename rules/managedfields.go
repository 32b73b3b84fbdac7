package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// ReadsManagedFields reports whether the rules can read who owns the fields of a
// resource's objects: their CEL, or operations that copy or test. That is often
// half of an object, and a cache leaves it out where nobody reads it; where
// somebody does, it must not look absent.
func (s *Set) ReadsManagedFields(resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(s.rules, func(r *Rule) bool { return r.ReadsManagedFields(resource) })
}

// ReadsManagedFields is the same of one rule: in its objects, in their
// Namespaces or in what it looks up.
func (r *Rule) ReadsManagedFields(resource schema.GroupVersionResource) bool {
	return slices.Contains(r.Resources, resource) && r.readsManagedFields() ||
		resource == namespaces && managedFieldsIn(r.namespaceReads) ||
		slices.ContainsFunc(r.Lookups, func(l *Lookup) bool { return l.Resource == resource && managedFieldsIn(l.reads) })
}

func (r *Rule) readsManagedFields() bool {
	return managedFieldsIn(r.objectReads) || slices.ContainsFunc(r.patchReads, func(p reading) bool {
		return managedFieldsIn(p.fields) || managedFieldsIn(p.tested)
	})
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func managedFieldsIn(reads *fieldset.Set) bool {
	metadata := reads.Field("metadata")
	return metadata.HasKeys() || metadata.Field("managedFields") != nil
}
