package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// AcceptProtobuf is the Accept header with which BuiltinSerializer is used.
const AcceptProtobuf = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

// BuiltinSerializer is Serializer for a built-in kind, of which the server may send
// protobuf too: the content type of its answer decides. It returns an error if protobuf
// cannot tell all that is kept of the kind. That the server's JSON leaves out what our
// Go types leave out, no object shows: it is for the caller to know.
//
// It can happen that only an object shows this: a newer server has fields in it that the
// Go type does not know, where all of them are kept. Then refuse is called, and the
// object is an error, as is every other that is not understood: the watch or the list
// ends with it, and whoever repeats it has to ask for JSON.
func (p *Projector) BuiltinSerializer(gvk schema.GroupVersionKind, refuse func(error)) (runtime.NegotiatedSerializer, error) {
	kind, err := p.builtin(gvk)
	if err != nil {
		return nil, fmt.Errorf("read %s from protobuf: %w", gvk.Kind, err)
	}
	s := p.serializer(false).(negotiated)
	typed := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	s.mediaTypes = append(s.mediaTypes, runtime.SerializerInfo{
		MediaType:        runtime.ContentTypeProtobuf,
		MediaTypeType:    "application",
		MediaTypeSubType: "vnd.kubernetes.protobuf",
		Serializer:       wireDecoder{typed, kind, s.mediaTypes[0].Serializer, refuse},
		StreamSerializer: &runtime.StreamSerializerInfo{
			Serializer: wireEventDecoder{protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme), refuse},
			Framer:     wireFramer{protobuf.LengthDelimitedFramer, refuse},
		},
	})
	return s, nil
}

// wireDecoder decodes the object of an event, a list or an error.
type wireDecoder struct {
	runtime.Serializer // of the Go types
	builtin            *builtinKind
	json               runtime.Decoder
	refuse             func(error)
}

// Decode implements runtime.Decoder. What it returns shares no memory with data.
func (d wireDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	e, err := readEnvelope(data)
	if err != nil {
		return nil, nil, d.refused(err)
	}
	k := d.builtin
	list, isList := into.(*unstructured.UnstructuredList)
	switch {
	case string(e.apiVersion) != k.kind.apiVersion:
	case isList && string(e.kind) == k.listKind:
		if err := k.list(e.raw, list); err != nil {
			return nil, nil, d.refused(err)
		}
		return list, typeOf(k.kind.apiVersion, k.listKind).copyGVK(), nil
	case !isList && string(e.kind) == k.kind.kind:
		o, err := k.decode(e.raw)
		if errors.Is(err, errNoName) { // a bookmark
			return d.whole(data, into)
		}
		if err != nil {
			return nil, nil, d.refused(err)
		}
		u, ok := into.(*unstructured.Unstructured)
		if !ok || u == nil {
			u = &unstructured.Unstructured{}
		}
		u.Object = o.envelope()
		return u, k.kind.copyGVK(), nil
	}
	if isStatus := string(e.apiVersion) == "v1" && string(e.kind) == "Status"; !isStatus {
		return nil, nil, d.refused(fmt.Errorf("it is not a %s", k.kind.kind))
	}
	return d.Serializer.Decode(data, defaults, nil)
}

// refused returns the error for what is not understood.
func (d wireDecoder) refused(err error) error {
	err = fmt.Errorf("read %s from protobuf: %w", d.builtin.kind.kind, err)
	d.refuse(err)
	return err
}

// whole decodes an object as the dynamic client would, from its JSON.
func (d wireDecoder) whole(data []byte, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	o, gvk, err := d.Serializer.Decode(data, nil, nil)
	if err != nil {
		return nil, nil, d.refused(errUnusual)
	}
	o.GetObjectKind().SetGroupVersionKind(*gvk)
	text, err := json.Marshal(o)
	if err != nil {
		return nil, nil, d.refused(errUnusual)
	}
	return d.json.Decode(text, nil, into)
}

var errNoName = errors.New("it has no name")

// decode decodes an object, from its message.
func (k *builtinKind) decode(b []byte) (*Object, error) {
	s := newScanner(nil)
	defer s.free()
	id, err := k.scan(s, b)
	switch {
	case err != nil:
		return nil, err
	case len(id.name) == 0:
		return nil, errNoName
	}
	return makeObject(k.kind, id, s.out), nil
}

// list decodes a list: its items as the envelopes of objects, and its metadata.
func (k *builtinKind) list(b []byte, into *unstructured.UnstructuredList) error {
	var meta metav1.ListMeta
	items := []unstructured.Unstructured{}
	err := wireFields(b, func(number uint64, content []byte) error {
		switch number {
		case k.items:
			o, err := k.decode(content)
			if err != nil {
				return err
			}
			items = append(items, unstructured.Unstructured{Object: o.envelope()})
			return nil
		case k.listMeta:
			if meta.Unmarshal(content) != nil {
				return errUnusual
			}
			return nil
		}
		return errUnknown
	})
	if err != nil {
		return err
	}
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return fmt.Errorf("its metadata: %w", err)
	}
	into.Items = items
	into.Object = map[string]any{"apiVersion": k.kind.apiVersion, "kind": k.listKind, "metadata": metadata}
	return nil
}

// envelope is what is around an object in protobuf: a runtime.Unknown. Its fields are
// part of the data.
type envelope struct{ apiVersion, kind, raw []byte }

var envelopePrefix = []byte("k8s\x00")

func readEnvelope(data []byte) (e envelope, err error) {
	b, ok := bytes.CutPrefix(data, envelopePrefix)
	if !ok {
		return e, errUnusual
	}
	hasType := false
	err = wireFields(b, func(number uint64, content []byte) error {
		switch {
		case number == 1 && !hasType:
			hasType = true
			return e.readType(content)
		case number == 2 && e.raw == nil:
			e.raw = content
		case number > 2 && len(content) == 0: // no content type, no content encoding
		default:
			return errUnusual
		}
		return nil
	})
	return e, err
}

// readType reads a runtime.TypeMeta.
func (e *envelope) readType(b []byte) error {
	return wireFields(b, func(number uint64, content []byte) error {
		switch {
		case number == 1 && e.apiVersion == nil:
			e.apiVersion = content
		case number == 2 && e.kind == nil:
			e.kind = content
		default:
			return errUnusual
		}
		return nil
	})
}

// wireEventDecoder decodes watch events, without their objects.
type wireEventDecoder struct {
	runtime.Serializer
	refuse func(error)
}

// Decode implements runtime.Decoder. The object of the event is part of data: it is
// good until the next event is read. Events that are not written as the server does are
// for the standard Serializer; what that does not understand either is refused.
func (d wireEventDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok || event == nil {
		return d.Serializer.Decode(data, defaults, into)
	}
	gvk := eventKind
	eventType, object, err := splitWireEvent(data)
	if err == nil {
		event.Object.Raw = object
	} else if _, gvk, err = d.Serializer.Decode(data, defaults, event); err == nil {
		eventType = []byte(event.Type)
	} else {
		return nil, nil, d.refused(err)
	}
	for _, known := range eventTypes {
		if string(known) == string(eventType) {
			event.Type = string(known)
			return event, gvk, nil
		}
	}
	return nil, nil, d.refused(fmt.Errorf("its type is %q", eventType))
}

func (d wireEventDecoder) refused(err error) error {
	err = fmt.Errorf("read a watch event from protobuf: %w", err)
	d.refuse(err)
	return err
}

// splitWireEvent finds the type and the object of a metav1.WatchEvent. They are part of data.
func splitWireEvent(data []byte) (eventType, object []byte, err error) {
	err = wireFields(data, func(number uint64, content []byte) error {
		switch {
		case number == 1 && eventType == nil:
			eventType = content
			return nil
		case number == 2 && object == nil:
			return wireFields(content, func(number uint64, content []byte) error {
				if number != 1 || object != nil {
					return errUnusual
				}
				object = content
				return nil
			})
		}
		return errUnusual
	})
	return eventType, object, err
}
