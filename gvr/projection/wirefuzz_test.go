package projection

import (
	"bytes"
	"io"
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// FuzzProtobuf holds that damaged protobuf is an error, or what the Go type makes of it,
// for an object and for a list.
func FuzzProtobuf(f *testing.F) {
	kinds := builtinTypes()
	r := rand.New(rand.NewSource(5))
	for i, gvk := range kinds {
		object := filler{r}.object(scheme.Scheme.AllKnownTypes()[gvk], "a")
		data := encode(f, runtime.ContentTypeProtobuf, gvk.GroupVersion(), object)
		f.Add(uint16(i), data, []byte{0, 0x70})
		f.Add(uint16(i), data, []byte{byte(i), 0xb3, 0xb4, 0x10, 0x80, 0xb6, 0x50, 0x31, 0x80, 0xb6, 0x20, 0x80, 0xb9, 0x80, 0x10})
		if i%8 == 0 {
			damaged := bytes.Clone(data)
			damaged[r.Intn(len(damaged))] ^= 1 << r.Intn(8)
			f.Add(uint16(i), damaged, []byte{0, 0x70})
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, data, set []byte) {
		gvk := kinds[int(kind)%len(kinds)]
		p := New(fuzzedFields(set))
		s, err := p.BuiltinSerializer(gvk, func(error) {})
		if err != nil {
			return
		}
		negotiator := runtime.NewClientNegotiator(s, gvk.GroupVersion())
		d, err := negotiator.Decoder(runtime.ContentTypeProtobuf, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, into := range []runtime.Object{nil, &unstructured.UnstructuredList{}} {
			input := bytes.Clone(data)
			got, _, err := d.Decode(input, nil, into)
			clear(input) // nothing may share memory with it
			if err != nil {
				continue
			}
			result := projected(t, p, got) // it can be parsed
			typed, wantKind, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
			if err != nil { // of what is skipped
				continue
			}
			if wantKind.Kind == "Status" {
				continue
			}
			text := encode(t, runtime.ContentTypeJSON, gvk.GroupVersion(), typed)
			var wanted runtime.Object
			if into != nil {
				wanted = &unstructured.UnstructuredList{}
			}
			want, _, err := decoder(t, standardSerializer).Decode(text, nil, wanted)
			if err != nil {
				t.Fatal(err)
			}
			if diff := compare(projectAll(t, p, want), result); diff != "" {
				t.Fatalf("%s %s of %s (-want +got):\n%s", gvk.Kind, p.fields.Set, text, diff)
			}
		}
	})
}

// wireWatchDecoder returns what a REST client decodes the events of a stream with.
func wireWatchDecoder(t testing.TB, s runtime.NegotiatedSerializer, stream io.Reader) *restwatch.Decoder {
	t.Helper()
	d, serializer, framer, err := runtime.NewClientNegotiator(s, deploymentsVersion).StreamDecoder(runtime.ContentTypeProtobuf, nil)
	if err != nil {
		t.Fatal(err)
	}
	return restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(stream)), serializer), d)
}
