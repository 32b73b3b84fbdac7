package projection

import "github.com/rectifier-dev/rectifier/internal/fieldset"

// Fields are what is wanted of objects. What identifies an object (apiVersion,
// kind; in metadata name, namespace, uid, resourceVersion and deletionTimestamp) is
// kept in any case.
type Fields struct {
	*fieldset.Set // nil: nothing but the identity
	// ManagedFields says that metadata.managedFields is kept as the Set says.
	// Without, it is dropped, even of a Set that is Whole: it is often half of an
	// object, and hardly anybody reads it.
	ManagedFields bool
}

// Whole is everything, but for managedFields.
func Whole() Fields { return Fields{Set: fieldset.Whole()} }

// Covers reports whether objects with these fields are as good as whole ones for
// whoever wants others.
func (f Fields) Covers(others Fields) bool {
	return (f.ManagedFields || !others.ManagedFields) && f.Set.Covers(others.Set)
}

// Union returns what is in either.
func (f Fields) Union(others Fields) Fields {
	return Fields{Set: f.Set.Union(others.Set), ManagedFields: f.ManagedFields || others.ManagedFields}
}
