package projection

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/rectifier-dev/rectifier/internal/deployments"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// builtin are the fields of the built-in rule.
func builtin() Fields {
	return Fields{Set: fieldset.Of("metadata", "annotations", deployments.ExpectedReplicas).Union(
		fieldset.Of("metadata", "annotations", "rectifier.dev/skip"),
		fieldset.Of("metadata", "annotations", "rectifier.dev/skip-until"),
		fieldset.Of("spec", "replicas"),
	)}
}

// everything is all, with managedFields: then nothing is skipped.
func everything() Fields { return Fields{Set: fieldset.Whole(), ManagedFields: true} }

var standardSerializer = dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer

// decoder returns what a REST client decodes with.
func decoder(t testing.TB, s runtime.NegotiatedSerializer) runtime.Decoder {
	t.Helper()
	d, err := runtime.NewClientNegotiator(s, deploymentsVersion).Decoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// watchDecoder returns what a REST client decodes the events of a stream with.
func watchDecoder(t testing.TB, s runtime.NegotiatedSerializer, stream io.Reader) *restwatch.Decoder {
	t.Helper()
	d, serializer, framer, err := runtime.NewClientNegotiator(s, deploymentsVersion).StreamDecoder(runtime.ContentTypeJSON, nil)
	if err != nil {
		t.Fatal(err)
	}
	return restwatch.NewDecoder(streaming.NewDecoder(framer.NewFrameReader(io.NopCloser(stream)), serializer), d)
}

var deploymentsVersion = appsv1.SchemeGroupVersion

// decodeWhole is client-go's decoder, as the dynamic client sets it.
func decodeWhole(t testing.TB, data []byte) *unstructured.Unstructured {
	t.Helper()
	o, _, err := decoder(t, standardSerializer).Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return o.(*unstructured.Unstructured)
}

// project is what the package promises of a whole object.
func project(whole *unstructured.Unstructured, fields Fields) map[string]any {
	u := (&unstructured.Unstructured{Object: fields.Set.Union(kept).Project(whole.Object)}).DeepCopy()
	if !fields.ManagedFields {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	}
	return u.Object
}

// decode decodes and transforms an object.
func decode(t testing.TB, p *Projector, data []byte) *Object {
	t.Helper()
	decoded, _, err := decoder(t, p.Serializer()).Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	o, err := p.Transform(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return o.(*Object)
}

func TestObjectsOfDeployments(t *testing.T) {
	for name, fields := range map[string]Fields{"builtin": builtin(), "identity": {}, "whole": Whole(), "everything": everything(),
		"keys":     {Set: fieldset.Keys("metadata", "labels").Union(fieldset.Keys("spec"), fieldset.Keys("metadata"))},
		"elements": {Set: fieldset.Of("spec", "template", "spec", "containers", fieldset.Elem, "image")},
		"presence": {Set: fieldset.Presence("spec", "replicas").Union(fieldset.Presence("status", "conditions"), fieldset.Presence("kind"))},
		"managed":  {Set: fieldset.Of("metadata", "managedFields", fieldset.Elem, "manager"), ManagedFields: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(fields)
			for _, size := range []deployments.Size{deployments.Small, deployments.Large} {
				data := deployments.JSON(3, size)
				whole := decodeWhole(t, data)
				want := project(whole, fields)
				o := decode(t, p, data)
				if diff := cmp.Diff(want, o.Unstructured().Object); diff != "" {
					t.Errorf("decoded (-want +got):\n%s", diff)
				}
				reduced, err := p.Transform(whole)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, reduced.(*Object).Unstructured().Object); diff != "" {
					t.Errorf("reduced (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func eventOf(eventType string, object []byte) []byte {
	return bytes.Join([][]byte{[]byte(`{"type":"`), []byte(eventType), []byte(`","object":`), object, []byte("}\n")}, nil)
}
