package lint

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds is what is known of resources, read once for all rules of a run: it is
// dear to decode a schema.
type kinds struct {
	known Known
	seen  map[schema.GroupVersionResource]*kind
}

// kind is a resource, as far as it is known.
type kind struct {
	Resource
	known bool
	shape *shape // nil: there is no schema
}

func newKinds(known Known) *kinds {
	return &kinds{known: known, seen: map[schema.GroupVersionResource]*kind{}}
}

// of is what is known of a resource; never nil.
func (k *kinds) of(resource schema.GroupVersionResource) *kind {
	if seen := k.seen[resource]; seen != nil {
		return seen
	}
	out := &kind{}
	if out.Resource, out.known = k.known.Resource(context.Background(), resource); out.Schema != nil {
		// A schema that cannot be decoded is one that is not known: commands
		// that need it say so.
		out.shape, _ = rootShape(out.Schema)
	}
	k.seen[resource] = out
	return out
}
