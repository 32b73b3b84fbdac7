package projection

import (
	"bytes"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kjson "sigs.k8s.io/json"
)

// eventDecoder decodes watch events, without their objects. Events that are not
// written as the server does are for the standard Serializer in it.
type eventDecoder struct{ runtime.Serializer }

// Decode implements runtime.Decoder. The object of the event is part of data: it is
// good until data is overwritten, which is when the next event is read. That the
// event ends behind the object is for the decoder of the object to see: to it, what
// follows is part of the object.
func (d eventDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if ok && event != nil {
		if eventType, object := splitEvent(data); object != nil {
			event.Type, event.Object.Raw = string(eventType), object
			return event, eventKind, nil
		}
	}
	return d.Serializer.Decode(data, defaults, into)
}

var eventKind = &schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}

var eventTypes = []watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error}

// splitEvent returns type and object of an event that is written as
// {"type":"ADDED","object":{…}}, or no object.
func splitEvent(data []byte) (watch.EventType, []byte) {
	data = bytes.TrimRight(data, " \t\r\n")
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
	if !ok || !bytes.HasSuffix(rest, []byte("}}")) {
		return "", nil
	}
	for _, t := range eventTypes {
		if len(rest) > len(t) && string(rest[:len(t)]) == string(t) {
			object, ok := bytes.CutPrefix(rest[len(t):], []byte(`","object":`))
			if !ok {
				return "", nil
			}
			return t, object[:len(object)-1]
		}
	}
	return "", nil
}

// restOfEvent returns the object of an event that has more members than type and
// object: data is what is written behind "object":, without the last bracket. It
// returns nil if it is no such event, or one of which the type is not certain.
func restOfEvent(data []byte) []byte {
	var event map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(slices.Concat([]byte(`{"object":`), data, []byte("}")), &event); err != nil {
		return nil
	}
	for name := range event {
		if name == "type" || looksLikeType([]byte(name)) {
			return nil
		}
	}
	return event["object"]
}
