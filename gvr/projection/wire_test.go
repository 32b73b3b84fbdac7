package projection

import (
	"bytes"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// builtinTypes are all built-in kinds of objects that can be listed.
func builtinTypes() (kinds []schema.GroupVersionKind) {
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		_, isObject := t.FieldByName("ObjectMeta")
		if isObject && scheme.Scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) && strings.HasPrefix(t.PkgPath(), typesPath) {
			kinds = append(kinds, gvk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// encoder returns that of the server for a content type.
func encoder(t testing.TB, contentType string, gv schema.GroupVersion) runtime.Encoder {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	if !ok {
		t.Fatal(contentType)
	}
	return scheme.Codecs.EncoderForVersion(info.Serializer, gv)
}

func encode(t testing.TB, contentType string, gv schema.GroupVersion, o runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := encoder(t, contentType, gv).Encode(o, &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bothEncodings returns what the server sends of an object, which it has read from
// protobuf itself.
func bothEncodings(t testing.TB, gv schema.GroupVersion, o runtime.Object) (wire, text []byte) {
	t.Helper()
	wire = encode(t, runtime.ContentTypeProtobuf, gv, o)
	stored, _, err := scheme.Codecs.UniversalDeserializer().Decode(wire, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return wire, encode(t, runtime.ContentTypeJSON, gv, stored)
}

// wireDecoderOf returns what a REST client decodes protobuf with.
func wireDecoderOf(t testing.TB, p *Projector, gvk schema.GroupVersionKind) runtime.Decoder {
	t.Helper()
	s, err := p.BuiltinSerializer(gvk, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	d, err := runtime.NewClientNegotiator(s, gvk.GroupVersion()).Decoder(runtime.ContentTypeProtobuf, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// randomFields returns fields most of which an object has.
func randomFields(r *rand.Rand, object map[string]any) Fields {
	fields := Fields{ManagedFields: r.Intn(3) == 0}
	if r.Intn(8) == 0 {
		fields.Set = fieldset.Whole()
		return fields
	}
	root := fieldset.NewBuilder()
	for range 1 + r.Intn(5) {
		at := root
		var value any = object
	walk:
		for range 1 + r.Intn(9) {
			switch v := value.(type) {
			case map[string]any:
				if len(v) == 0 {
					break walk
				}
				if r.Intn(10) == 0 {
					at = at.Values()
				}
				keys := slices.Sorted(func(yield func(string) bool) {
					for k := range v {
						if !yield(k) {
							return
						}
					}
				})
				key := keys[r.Intn(len(keys))]
				at, value = at.Field(key), v[key]
			case []any:
				at = at.Items()
				if len(v) == 0 {
					break walk
				}
				value = v[r.Intn(len(v))]
			default:
				break walk
			}
		}
		[]func(*fieldset.Builder){(*fieldset.Builder).Whole, (*fieldset.Builder).Whole, (*fieldset.Builder).Keys, (*fieldset.Builder).Lists, func(*fieldset.Builder) {}}[r.Intn(5)](at)
	}
	fields.Set = root.Set()
	return fields
}

// Of every built-in kind, protobuf gives what JSON gives, whatever is kept.
func TestUnracedProtobufIsReadAsJSON(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	readAsJSON(t, rounds)
}

// The same, a little of it, for the race detector: kinds share what is interned.
func TestProtobufIsReadSideBySide(t *testing.T) { readAsJSON(t, 3) }

func readAsJSON(t *testing.T, rounds int) {
	kinds := builtinTypes()
	if len(kinds) < 100 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	for i, gvk := range kinds {
		t.Run(gvk.GroupVersion().String()+"."+gvk.Kind, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewSource(int64(i)))
			read := 0
			for range rounds {
				read += checkProtobuf(t, r, gvk)
			}
			if read < rounds/3 {
				t.Errorf("only %d of %d field sets were read", read, rounds)
			}
		})
	}
}

// checkProtobuf checks an object and a list of some, and reports how often protobuf
// could tell all that is kept.
func checkProtobuf(t *testing.T, r *rand.Rand, gvk schema.GroupVersionKind) int {
	t.Helper()
	f := filler{r}
	object := f.object(scheme.Scheme.AllKnownTypes()[gvk], "a")
	wire, text := bothEncodings(t, gvk.GroupVersion(), object)
	whole := decodeWhole(t, text)
	p := New(randomFields(r, whole.Object))
	if _, err := p.builtin(gvk); err != nil {
		if gvk.Kind != "StatefulSet" {
			t.Fatalf("%s: %v", p.fields.Set, err)
		}
		return 0
	}
	d := wireDecoderOf(t, p, gvk)
	input := bytes.Clone(wire)
	got, gotKind, err := d.Decode(input, nil, nil)
	clear(input)
	if err != nil {
		t.Fatalf("%s of %s: %v", p.fields.Set, text, err)
	}
	if *gotKind != gvk {
		t.Errorf("kind %s", gotKind)
	}
	if _, ok := got.(*unstructured.Unstructured).Object[envelopeKey]; !ok {
		t.Error("it was not scanned")
	}
	if diff := compare(project(whole, p.fields), projected(t, p, got)); diff != "" {
		t.Fatalf("%s of %s (-want +got):\n%s", p.fields.Set, text, diff)
	}

	list := reflect.New(scheme.Scheme.AllKnownTypes()[gvk.GroupVersion().WithKind(gvk.Kind+"List")])
	list.Elem().FieldByName("ListMeta").Set(reflect.ValueOf(metav1.ListMeta{ResourceVersion: "9", Continue: "c", RemainingItemCount: new(int64(3))}))
	items := list.Elem().FieldByName("Items")
	for _, name := range []string{"a", "b"}[:r.Intn(3)] {
		items.Set(reflect.Append(items, reflect.ValueOf(f.object(items.Type().Elem(), name)).Elem()))
	}
	wire, text = bothEncodings(t, gvk.GroupVersion(), list.Interface().(runtime.Object))
	var want, all unstructured.UnstructuredList
	if _, _, err := decoder(t, standardSerializer).Decode(text, nil, &want); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Decode(wire, nil, &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(projectAll(t, p, &want), projected(t, p, &all)); diff != "" {
		t.Fatalf("list, %s of %s (-want +got):\n%s", p.fields.Set, text, diff)
	}
	return 1
}

// Where the Go type does not tell all that is kept, JSON is read.
func TestWhatProtobufCannotTell(t *testing.T) {
	of := fieldset.Of
	deployments, statefulSets := appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	claims := []string{"spec", "volumeClaimTemplates", fieldset.Elem}
	for name, tt := range map[string]struct {
		kind   schema.GroupVersionKind
		fields Fields
		ok     bool
	}{
		"all":                        {kind: deployments, fields: everything(), ok: true},
		"nothing":                    {kind: deployments, fields: Fields{}, ok: true},
		"annotations of any name":    {kind: deployments, fields: fieldsOf(of("metadata", "annotations", "x")), ok: true},
		"a field of the future":      {kind: deployments, fields: fieldsOf(of("spec", "future")), ok: true},
		"of an element":              {kind: deployments, fields: fieldsOf(of("spec", "template", "spec", "containers", fieldset.Elem, "future")), ok: true},
		"of the object":              {kind: deployments, fields: fieldsOf(of("future")), ok: true},
		"of the metadata":            {kind: deployments, fields: fieldsOf(of("metadata", "future")), ok: true},
		"inline":                     {kind: deployments, fields: fieldsOf(of("spec", "template", "spec", "volumes", fieldset.Elem, "configMap", "name")), ok: true},
		"kind of a custom resource":  {kind: schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Thing"}},
		"no object":                  {kind: metav1.SchemeGroupVersion.WithKind("Status")},
		"apiVersion of a template":   {kind: statefulSets, fields: fieldsOf(of(append(claims, "apiVersion")...))},
		"all of a template":          {kind: statefulSets, fields: fieldsOf(of(claims...))},
		"all with templates":         {kind: statefulSets, fields: Whole()},
		"what else is in a template": {kind: statefulSets, fields: fieldsOf(of(append(claims, "spec")...)), ok: true},
		"nothing of the templates":   {kind: statefulSets, fields: fieldsOf(of("spec", "replicas"), of("spec", "template")), ok: true},
		"apiextensions":              {kind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}},
	} {
		if _, err := New(tt.fields).BuiltinSerializer(tt.kind, nil); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Bookmarks and errors are those that the dynamic client gives.
func TestProtobufBesidesObjects(t *testing.T) {
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	d := wireDecoderOf(t, New(fieldsOf(fieldset.Of("spec", "nodeName"))), gvk)
	for _, o := range []runtime.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}},
		&metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Details: &metav1.StatusDetails{RetryAfterSeconds: 3}},
	} {
		wire, text := bothEncodings(t, corev1.SchemeGroupVersion, o)
		want, wantKind, err := decoder(t, standardSerializer).Decode(text, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, gotKind, err := d.Decode(wire, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{want, wantKind}, []any{got, gotKind}); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
