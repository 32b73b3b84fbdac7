package projection

import (
	"bytes"
	"encoding/binary"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// wireEventOf is an event as the server sends it, with its length in front.
func wireEventOf(t testing.TB, eventType string, object []byte) []byte {
	t.Helper()
	event := &metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: object}}
	data, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

func deploymentFields() map[string]Fields {
	return map[string]Fields{"builtin": builtin(), "whole": Whole(), "everything": everything()}
}

// BenchmarkProtobufEvent is BenchmarkWatchEvent for protobuf.
func BenchmarkProtobufEvent(b *testing.B) {
	for _, s := range benchmarkSizes {
		event := wireEventOf(b, "MODIFIED", encode(b, runtime.ContentTypeProtobuf, deploymentsVersion, deployments.Make(7, s.size)))
		for name, fields := range deploymentFields() {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				p := New(fields)
				serializer, err := p.BuiltinSerializer(deploymentsVersion.WithKind("Deployment"), nil)
				if err != nil {
					b.Fatal(err)
				}
				d := wireWatchDecoder(b, serializer, &repeated{event: event})
				b.ReportAllocs()
				defer reportCPU(b)()
				b.SetBytes(int64(len(event)))
				for b.Loop() {
					_, o, err := d.Decode()
					if err != nil {
						b.Fatal(err)
					}
					if _, err := p.Transform(o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(s.name+"/typed", func(b *testing.B) {
			d := wireWatchDecoder(b, scheme.Codecs.WithoutConversion(), &repeated{event: event})
			b.ReportAllocs()
			defer reportCPU(b)()
			b.SetBytes(int64(len(event)))
			for b.Loop() {
				if _, _, err := d.Decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkList is a list of 100, in both encodings.
func BenchmarkList(b *testing.B) {
	list := &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for i := range 100 {
		list.Items = append(list.Items, *deployments.Make(i, deployments.Small))
	}
	p := New(builtin())
	serializer, err := p.BuiltinSerializer(deploymentsVersion.WithKind("Deployment"), nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, contentType := range map[string]string{"json": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf} {
		data := encode(b, contentType, deploymentsVersion, list)
		d, err := runtime.NewClientNegotiator(serializer, deploymentsVersion).Decoder(contentType, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			defer reportCPU(b)()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				var into unstructured.UnstructuredList
				if _, _, err := d.Decode(bytes.Clone(data), nil, &into); err != nil || len(into.Items) != 100 {
					b.Fatal(err)
				}
			}
		})
	}
}
