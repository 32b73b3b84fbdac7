package projection

import (
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// kept is what identifies an object.
var kept = fieldset.Of("apiVersion").Union(
	fieldset.Of("kind"),
	fieldset.Of("metadata", "name"),
	fieldset.Of("metadata", "namespace"),
	fieldset.Of("metadata", "uid"),
	fieldset.Of("metadata", "resourceVersion"),
	fieldset.Of("metadata", "deletionTimestamp"),
)

// Projector reduces the objects of one resource to some fields. It is safe for
// concurrent use.
type Projector struct {
	fields   Fields
	plan     *plan
	metadata *plan                    // in plan
	last     atomic.Pointer[typeMeta] // of the object that was scanned last, to find it sooner
}

// New returns a Projector.
func New(fields Fields) *Projector {
	p := &Projector{fields: fields, plan: compile(fields.Set.Union(kept))}
	p.metadata, _ = p.plan.field([]byte("metadata"))
	return p
}

// Fields are what it was made for.
func (p *Projector) Fields() Fields { return p.fields }

// Transform makes an *Object of what Serializer has decoded, or of a whole object.
// It is an informer's cache.TransformFunc, and idempotent as that has to be.
func (p *Projector) Transform(obj any) (any, error) {
	switch obj := obj.(type) {
	case *Object, cache.DeletedFinalStateUnknown:
		return obj, nil
	case *unstructured.Unstructured:
		if o, ok := obj.Object[envelopeKey].(*Object); ok {
			return o, nil
		}
		return Of(obj, p.fields)
	}
	return nil, fmt.Errorf("reduce an object: %T is none", obj)
}
