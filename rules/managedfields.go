package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules/fieldset"
)

// ReadsManagedFields reports whether CEL of the rules can read who owns the
// fields of a resource's objects. That is often half of an object, and a cache
// leaves it out where nobody reads it; where somebody does, it must not look
// absent.
func (s *Set) ReadsManagedFields(resource schema.GroupVersionResource) bool {
	if slices.ContainsFunc(s.For(resource), func(r *Rule) bool { return managedFieldsIn(r.objectReads) }) {
		return true
	}
	if resource == namespaces && managedFieldsIn(s.namespace) {
		return true
	}
	return slices.ContainsFunc(s.lookups, func(l *Lookup) bool { return l.Resource == resource && managedFieldsIn(l.reads) })
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func managedFieldsIn(reads *fieldset.Set) bool {
	metadata := reads.Field("metadata")
	return metadata.HasKeys() || metadata.Field("managedFields") != nil
}
