package projection

import (
	"bytes"
	"encoding/hex"
	"math/bits"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Object is an object as a store keeps it: who it is, and the text of what is
// wanted of it. It is immutable and safe for concurrent use.
type Object struct {
	kind      *typeMeta
	namespace *string
	// data is all that it has of its own, in one piece: the text, the name, the
	// resourceVersion, and the uid if it is no UUID in canonical form.
	data                         string
	textEnd, nameEnd, versionEnd uint32 // where they end in data
	hasUUID                      bool
	uuid                         [16]byte
}

// makeObject returns an Object of what was scanned. It writes behind the text.
func makeObject(kind *typeMeta, id identity, text []byte) *Object {
	o := &Object{kind: kind, namespace: namespaces.get(id.namespace)}
	o.hasUUID = parseUUID(&o.uuid, id.uid)
	o.textEnd = uint32(len(text))
	data := append(text, id.name...)
	o.nameEnd = uint32(len(data))
	data = append(data, id.resourceVersion...)
	o.versionEnd = uint32(len(data))
	if !o.hasUUID {
		data = append(data, id.uid...)
	}
	o.data = string(data)
	return o
}

// parseUUID reads a UUID as Kubernetes writes it.
func parseUUID(out *[16]byte, s []byte) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	n := 0
	for i := 0; i < len(s); i += 2 {
		if s[i] == '-' {
			i++
		}
		high, low := hexDigits[s[i]], hexDigits[s[i+1]]
		if high|low > 0xf {
			return false
		}
		out[n] = high<<4 | low
		n++
	}
	return true
}

// hexDigits are the values of the lower-case digits; of others, more than 15.
var hexDigits = func() (values [256]byte) {
	for i := range values {
		values[i] = byte(bytes.IndexByte([]byte("0123456789abcdef"), byte(i)))
	}
	return values
}()

func (o *Object) Namespace() string       { return *o.namespace }
func (o *Object) Name() string            { return o.data[o.textEnd:o.nameEnd] }
func (o *Object) ResourceVersion() string { return o.data[o.nameEnd:o.versionEnd] }

func (o *Object) UID() types.UID {
	if !o.hasUUID {
		return types.UID(o.data[o.versionEnd:])
	}
	var b [36]byte
	hex.Encode(b[:], o.uuid[:4])
	hex.Encode(b[9:], o.uuid[4:6])
	hex.Encode(b[14:], o.uuid[6:8])
	hex.Encode(b[19:], o.uuid[8:10])
	hex.Encode(b[24:], o.uuid[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return types.UID(b[:])
}

// text is JSON of the rest: the projected object without its identity. Metadata of
// which nothing else is kept is not in it.
func (o *Object) text() string { return o.data[:o.textEnd] }

// Same reports whether two states of one object differ in nothing that is kept of
// them, but for their resourceVersion. What the server writes in another order, or
// with other escapes, is not the same.
func (o *Object) Same(other *Object) bool {
	return o.uuid == other.uuid && o.text() == other.text() && o.kind.equal(other.kind) &&
		o.data[o.versionEnd:] == other.data[other.versionEnd:] // a uid that is no UUID
}

// What an Object takes in memory besides its data: itself, and the entries of a
// cache.Indexer (key and value) and of its index by namespace (the key again), in
// maps that are about half full.
const (
	objectBytes = 64
	storeBytes  = (16+16+1)*2 + (16+8+1)*2
)

// Bytes is about what the object takes in memory where it is kept in a cache.Indexer
// with the index by namespace: the object and its text, the indexer's key, and the
// entries in the maps of indexer and index. What objects share (kind, namespace) is
// not counted.
func (o *Object) Bytes() int {
	key := len(*o.namespace) + len("/") + len(o.Name())
	return objectBytes + storeBytes + allocated(len(o.data)) + allocated(key)
}

// allocated is about what Go allocates for a string.
func allocated(n int) int {
	step := 8
	switch {
	case n > 256:
		step = 1 << (bits.Len(uint(n-1)) - 4) // eight sizes between powers of two
	case n > 32:
		step = 16
	}
	return (n + step - 1) / step * step
}

// Unstructured returns the object as the fields that are kept of it, parsed anew:
// it is the caller's. Its strings may share memory with the Object.
func (o *Object) Unstructured() *unstructured.Unstructured {
	object := parse(o.text())
	if o.kind.apiVersion != "" {
		object["apiVersion"] = o.kind.anyAPIVersion
	}
	if o.kind.kind != "" {
		object["kind"] = o.kind.anyKind
	}
	o.addMetadata(object)
	return &unstructured.Unstructured{Object: object}
}

func (o *Object) addMetadata(object map[string]any) {
	metadata, ok := object["metadata"].(map[string]any)
	set := func(key, value string) {
		if value == "" {
			return
		}
		if !ok {
			metadata, ok = map[string]any{}, true
			object["metadata"] = metadata
		}
		metadata[key] = value
	}
	set("name", o.Name())
	set("namespace", o.Namespace())
	set("uid", string(o.UID()))
	set("resourceVersion", o.ResourceVersion())
}

// envelopeKey is where an envelope has its Object.
const envelopeKey = "\x00rectifier.dev/object"

// envelope is what a reflector must have of an object, until Transform takes the
// Object out.
func (o *Object) envelope() map[string]any {
	metadata := map[string]any{"name": o.Name(), "resourceVersion": o.ResourceVersion()}
	if *o.namespace != "" {
		metadata["namespace"] = *o.namespace
	}
	return map[string]any{
		"apiVersion": o.kind.anyAPIVersion, "kind": o.kind.anyKind, "metadata": metadata, envelopeKey: o,
	}
}

// GetObjectMeta implements metav1.ObjectMetaAccessor: informers and their stores
// ask for namespace, name and resourceVersion, and for nothing else.
func (o *Object) GetObjectMeta() metav1.Object { return (*objectMeta)(o) }
