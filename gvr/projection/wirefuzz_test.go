package projection

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/rectifier-dev/rectifier/internal/deployments"
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
		checkDamaged(t, kinds[int(kind)%len(kinds)], data, New(fuzzedFields(set)))
	})
}

// TestUnracedDamagedProtobuf is FuzzProtobuf for much damage of one kind: some bits are others,
// or some bytes are missing.
func TestUnracedDamagedProtobuf(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	r := rand.New(rand.NewSource(6))
	kinds := builtinTypes()
	for range rounds {
		gvk := kinds[r.Intn(len(kinds))]
		data := encode(t, runtime.ContentTypeProtobuf, gvk.GroupVersion(), filler{r}.object(scheme.Scheme.AllKnownTypes()[gvk], "a"))
		for range 1 + r.Intn(3) {
			at := r.Intn(len(data))
			if r.Intn(4) > 0 {
				data[at] ^= 1 << r.Intn(8)
			} else {
				data = slices.Delete(data, at, min(len(data), at+1+r.Intn(3)))
			}
		}
		fields := everything()
		if r.Intn(2) == 0 {
			set := make([]byte, r.Intn(20))
			_, _ = r.Read(set)
			fields = fuzzedFields(set)
		}
		checkDamaged(t, gvk, data, New(fields))
	}
}

// checkDamaged holds that what is read of protobuf is what the Go type makes of it, or an
// error.
func checkDamaged(t *testing.T, gvk schema.GroupVersionKind, data []byte, p *Projector) {
	t.Helper()
	s, err := p.BuiltinSerializer(gvk, func(error) {})
	if err != nil {
		return
	}
	d, err := runtime.NewClientNegotiator(s, gvk.GroupVersion()).Decoder(runtime.ContentTypeProtobuf, nil)
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
		typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil || kind.Kind == "Status" { // what is skipped may be damaged
			continue
		}
		var text bytes.Buffer
		if err := encoder(t, runtime.ContentTypeJSON, gvk.GroupVersion()).Encode(typed, &text); err != nil {
			continue
		}
		var wanted runtime.Object
		if into != nil {
			wanted = &unstructured.UnstructuredList{}
		}
		want, _, err := decoder(t, standardSerializer).Decode(text.Bytes(), nil, wanted)
		if err != nil {
			t.Fatal(err)
		}
		expected := projectAll(t, p, want)
		if again := encode(t, runtime.ContentTypeProtobuf, gvk.GroupVersion(), typed); !bytes.Equal(again, data) {
			expected, result = withoutZeros(expected), withoutZeros(result)
		}
		if diff := compare(expected, result); diff != "" {
			t.Fatalf("%s %s of %s %x (-want +got):\n%s", gvk.Kind, p.fields.Set, text.String(), data, diff)
		}
	}
}

// withoutZeros leaves out of maps what is zero: whether a field that no server leaves out
// is there as zero does not matter.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			switch value := withoutZeros(value).(type) {
			case nil:
			case map[string]any:
				if len(value) > 0 {
					out[key] = value
				}
			default:
				if !reflect.ValueOf(value).IsZero() {
					out[key] = value
				}
			}
		}
		return out
	case []any:
		out := []any{}
		for _, value := range v {
			out = append(out, withoutZeros(value))
		}
		return out
	}
	return v
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

// wireStream is a stream of events: of objects, a bookmark and an error.
func wireStream(t testing.TB) []byte {
	gv := deploymentsVersion
	var stream []byte
	for _, e := range []struct {
		eventType string
		object    runtime.Object
	}{
		{"ADDED", deployments.Make(1, deployments.Large)},
		{"BOOKMARK", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}},
		{"MODIFIED", deployments.Make(2, deployments.Small)},
		{"DELETED", deployments.Make(3, deployments.Small)},
		{"ERROR", &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired}},
	} {
		stream = append(stream, wireEventOf(t, e.eventType, encode(t, runtime.ContentTypeProtobuf, gv, e.object))...)
	}
	return stream
}

// FuzzProtobufStream holds that a stream of events is understood as client-go does,
// however it is divided and wherever it ends.
func FuzzProtobufStream(f *testing.F) {
	stream := wireStream(f)
	for _, sizes := range [][]byte{nil, {0}, {1}, {9, 0, 200}} {
		f.Add(stream, sizes)
		f.Add(stream[:len(stream)-7], sizes)
		f.Add(stream[:len(wireEventOf(f, "ADDED", nil))+1], sizes)
	}
	f.Add([]byte{0, 0, 0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, stream, sizes []byte) {
		p := New(everything())
		serializer, err := p.BuiltinSerializer(deploymentsVersion.WithKind("Deployment"), func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		standard := wireWatchDecoder(t, scheme.Codecs.WithoutConversion(), &pieces{data: stream, sizes: sizes})
		ours := wireWatchDecoder(t, serializer, &pieces{data: stream, sizes: sizes})
		for range len(stream) + 1 {
			wantType, want, wantErr := standard.Decode()
			gotType, got, gotErr := ours.Decode()
			if errors.Is(gotErr, errTooLong) {
				return
			}
			if gotErr != nil { // of what the Go type may understand; but a stream ends alike
				if wantErr != nil && hasEnded(wantErr) != hasEnded(gotErr) {
					t.Fatalf("%v instead of %v", gotErr, wantErr)
				}
				return
			}
			if wantErr != nil {
				return // of what is skipped
			}
			if wantType != gotType {
				t.Fatalf("%s instead of %s", gotType, wantType)
			}
			if want, ok := want.(*metav1.Status); ok {
				want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				continue
			}
			whole := decodeWhole(t, encode(t, runtime.ContentTypeJSON, deploymentsVersion, want))
			if diff := compare(withoutZeros(projectAll(t, p, whole)), withoutZeros(projected(t, p, got))); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

func hasEnded(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// All of a stream is understood.
func TestProtobufEvents(t *testing.T) {
	p := New(builtin())
	serializer, err := p.BuiltinSerializer(deploymentsVersion.WithKind("Deployment"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for _, sizes := range [][]byte{nil, {0}, {1}, {9, 0, 200}} {
		d := wireWatchDecoder(t, serializer, &pieces{data: wireStream(t), sizes: sizes})
		var got []string
		for {
			eventType, object, err := d.Decode()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(eventType))
			if _, scanned := object.(*unstructured.Unstructured); scanned == (eventType == "ERROR") {
				t.Errorf("%s: %T", eventType, object)
			}
		}
		if diff := cmp.Diff([]string{"ADDED", "BOOKMARK", "MODIFIED", "DELETED", "ERROR"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
