package projection

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// Serializer is what a REST client decodes lists and watch events with. What it
// makes of an object is good for a reflector, which wants to know its metadata, and
// for the Transform of the same Projector: nothing else is in it, and it cannot be
// copied deeply. It speaks JSON only, so the client has to ask for that;
// BuiltinSerializer speaks protobuf too.
//
// What the scanner does not understand is decoded by the dynamic client's own
// decoder, as a whole: Status and Table, bookmarks, objects without a name or with an
// identity that is no plain string, metadata that comes twice, malformed input.
func (p *Projector) Serializer() runtime.NegotiatedSerializer { return p.serializer(false) }

// AnswerSerializer is like Serializer, but a single object that is decoded into an
// Unstructured, as the answer to a write is, becomes an ordinary one that holds the
// fields (as Object.Unstructured). A Scale holds its spec, its finalizers and the times
// in its managedFields. A Status is whole.
func (p *Projector) AnswerSerializer() runtime.NegotiatedSerializer { return p.serializer(true) }

// scaleKind is what the scale subresource of every resource has.
var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// scales reduces Scales, whatever the resource.
var scales = New(Fields{
	Set: fieldset.Of("spec").Union(
		fieldset.Of("metadata", "finalizers"),
		fieldset.Of("metadata", "managedFields", fieldset.Elem, "time")),
	ManagedFields: true,
})

// negotiated is the dynamic client's, for JSON, with our decoders.
type negotiated struct {
	runtime.NegotiatedSerializer
	mediaTypes []runtime.SerializerInfo
}

func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo { return n.mediaTypes }

func (p *Projector) serializer(answers bool) runtime.NegotiatedSerializer {
	standard := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	info, ok := runtime.SerializerInfoForMediaType(standard.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		panic("projection: the dynamic client does not speak JSON")
	}
	stream := *info.StreamSerializer
	stream.Serializer = eventDecoder{stream.Serializer}
	stream.Framer = framer{stream.Framer}
	info.StreamSerializer = &stream
	info.Serializer = objectDecoder{Serializer: info.Serializer, projector: p, answers: answers}
	return negotiated{standard, []runtime.SerializerInfo{info}}
}

// objectDecoder decodes the object of an event, a list or an answer. It encodes as
// the standard Serializer in it.
type objectDecoder struct {
	runtime.Serializer
	projector *Projector
	answers   bool
}

// Decode implements runtime.Decoder. What it returns shares no memory with data.
func (d objectDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	switch into := into.(type) {
	case nil:
		if o := d.object(data); o != nil {
			return &unstructured.Unstructured{Object: o.envelope()}, o.kind.copyGVK(), nil
		}
	case *unstructured.Unstructured:
		o := d.object(data)
		switch {
		case o == nil:
		case !d.answers:
			into.Object = o.envelope()
			return into, o.kind.copyGVK(), nil
		case o.kind.gvk == scaleKind:
			if o = (objectDecoder{projector: scales}).object(data); o != nil {
				into.Object = o.Unstructured().Object
				return into, o.kind.copyGVK(), nil
			}
		case !o.kind.whole:
			into.Object = o.Unstructured().Object
			return into, o.kind.copyGVK(), nil
		}
	case *unstructured.UnstructuredList:
		if kind := d.projector.decodeList(data, into); kind != nil {
			return into, kind.copyGVK(), nil
		}
	}
	o, kind, err := d.Serializer.Decode(data, defaults, into)
	if err != nil && into == nil && defaults == nil { // it may be of an event
		if object := restOfEvent(data); object != nil {
			return d.Serializer.Decode(object, nil, nil)
		}
	}
	return o, kind, err
}

// object returns the object that data is, or nil if it is unusual.
func (d objectDecoder) object(data []byte) *Object {
	s := newScanner(data)
	defer s.free()
	id, end := d.projector.scanObject(s, space(data, 0))
	if end < 0 || space(data, end) != len(data) {
		return nil
	}
	return d.projector.objectOf(id, s.out)
}

// objectOf returns the object that was scanned, or nil if its type is unusual.
func (p *Projector) objectOf(id identity, text []byte) *Object {
	if len(id.name) == 0 || len(id.apiVersion) == 0 || len(id.kind) == 0 {
		return nil
	}
	kind := p.typeOf(id.apiVersion, id.kind)
	if kind.standard {
		return nil
	}
	return makeObject(kind, id, text)
}

func (t *typeMeta) copyGVK() *schema.GroupVersionKind { return new(t.gvk) }
