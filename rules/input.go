package rules

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Input is all that an evaluation may read.
type Input struct {
	Resource schema.GroupVersionResource
	// Object is the object in the version that Resource names, as the API
	// server's JSON decodes: whole numbers are int64. It is never modified.
	Object map[string]any
	// NamespaceObject is the Namespace that the object is in, whole. Nil for
	// cluster-scoped objects, and where no rule needs it.
	NamespaceObject map[string]any
	// Lookups answers what the rules look up. Nil: nothing can be.
	Lookups Lookups
	// Schema is that of the object's kind. Nil: it is not known, and rules that
	// apply a configuration make no decision.
	Schema Schema
	// Now is the time of the evaluation.
	Now time.Time
	// ReplicasPath is where the resource keeps what its scale subresource calls
	// spec.replicas. Nil: it has none, or it is not known.
	ReplicasPath []string
	// HasStatus says that the resource has a status subresource, so that the
	// server drops what is written to status elsewhere. False: it has none, or
	// it is not known.
	HasStatus bool
	// Tainted says that Object holds what a rule that reads Secrets has made of
	// it in this decision: what any rule tells of it is not to be shown.
	Tainted bool
	// Explain asks for verdicts of all rules, not only of those that change
	// the object or fail.
	Explain bool
	// Trace asks for Explain, and for how each rule came to its verdict. It
	// changes no verdict; it evaluates everything several times.
	Trace bool
}

// Schema merges partial objects into objects of one kind.
type Schema interface {
	// Merge returns the object with the configuration merged in, lists by the
	// keys of their elements; see gvr/openapi. It modifies neither.
	Merge(object, config map[string]any) (map[string]any, error)
}
