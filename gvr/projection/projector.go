package projection

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
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
type Projector struct{ fields Fields }

// New returns a Projector.
func New(fields Fields) *Projector { return &Projector{fields} }

// Fields are what it was made for.
func (p *Projector) Fields() Fields { return p.fields }

// Serializer is what a REST client decodes lists and watch events with. What it
// makes of an object is good for a reflector, which wants to know its metadata, and
// for Transform: nothing else is in it.
func (p *Projector) Serializer() runtime.NegotiatedSerializer {
	return dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
}

// Transform makes an *Object of what Serializer has decoded, or of a whole object.
// It is an informer's cache.TransformFunc.
func (p *Projector) Transform(obj any) (any, error) {
	switch obj := obj.(type) {
	case *Object, cache.DeletedFinalStateUnknown:
		return obj, nil
	case *unstructured.Unstructured:
		return Of(obj, p.fields)
	}
	return nil, fmt.Errorf("reduce an object: %T is none", obj)
}
