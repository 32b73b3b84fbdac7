package rules

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// Fields returns which fields of the objects of a resource the rules need, as
// objects that they are about, as Namespaces of those, and as what they look up:
// evaluated on objects reduced to these, they give what they give on whole ones.
// replicasPath is Input.ReplicasPath of the resource; nil: it has none, or it is
// not known.
func (s *Set) Fields(resource schema.GroupVersionResource, replicasPath []string) *fieldset.Set {
	fields := fieldset.Empty()
	for _, r := range s.rules {
		fields = fields.Union(r.Fields(resource, replicasPath))
	}
	return fields
}

// Fields is the same of one rule; empty if it has nothing to do with the resource.
func (r *Rule) Fields(schema.GroupVersionResource, []string) *fieldset.Set {
	return fieldset.Whole()
}
