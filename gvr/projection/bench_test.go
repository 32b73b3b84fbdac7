package projection

import (
	"bytes"
	"io"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

var benchmarkSizes = []struct {
	name string
	size deployments.Size
}{{"3.5KB", deployments.Small}, {"16KB", deployments.Large}}

// repeated is a stream of the same event for ever.
type repeated struct {
	event []byte
	rest  []byte
}

func (r *repeated) Read(out []byte) (int, error) {
	if len(r.rest) == 0 {
		r.rest = r.event
	}
	n := copy(out, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// BenchmarkWatchEvent is the whole way of an event from the bytes of the connection
// to what the store keeps.
func BenchmarkWatchEvent(b *testing.B) {
	for _, s := range benchmarkSizes {
		event := eventOf("MODIFIED", deployments.JSON(7, s.size))
		ours := func(b *testing.B, fields Fields) {
			p := New(fields)
			d := watchDecoder(b, p.Serializer(), &repeated{event: event})
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
		}
		b.Run(s.name+"/builtin", func(b *testing.B) { ours(b, builtin()) })
		b.Run(s.name+"/whole", func(b *testing.B) { ours(b, Whole()) })
		b.Run(s.name+"/everything", func(b *testing.B) { ours(b, everything()) })
		b.Run(s.name+"/dynamic", func(b *testing.B) { standardEvents(b, standardSerializer, &repeated{event: event}, len(event)) })
		b.Run(s.name+"/typed-json", func(b *testing.B) {
			standardEvents(b, scheme.Codecs.WithoutConversion(), &repeated{event: event}, len(event))
		})
	}
}

func standardEvents(b *testing.B, s runtime.NegotiatedSerializer, stream io.Reader, size int) {
	d := watchDecoder(b, s, stream)
	b.ReportAllocs()
	defer reportCPU(b)()
	b.SetBytes(int64(size))
	for b.Loop() {
		if _, _, err := d.Decode(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkObject is without the event around the object.
func BenchmarkObject(b *testing.B) {
	for _, s := range benchmarkSizes {
		data := deployments.JSON(7, s.size)
		b.Run(s.name+"/builtin", func(b *testing.B) {
			p := New(builtin())
			d := objectDecoder{projector: p}
			b.ReportAllocs()
			defer reportCPU(b)()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if d.object(data) == nil {
					b.Fatal("unusual")
				}
			}
		})
		b.Run(s.name+"/typed-protobuf", func(b *testing.B) {
			info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
			var encoded bytes.Buffer
			if err := info.Serializer.Encode(deployments.Make(7, s.size), &encoded); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			defer reportCPU(b)()
			for b.Loop() {
				if _, _, err := info.Serializer.Decode(encoded.Bytes(), nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUnstructured(b *testing.B) {
	data := deployments.JSON(7, deployments.Small)
	for name, fields := range map[string]Fields{"builtin": builtin(), "whole": Whole()} {
		o := decode(b, New(fields), data)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			defer reportCPU(b)()
			for b.Loop() {
				o.Unstructured()
			}
		})
		b.Run(name+"/sigs.k8s.io-json", func(b *testing.B) {
			text := []byte(o.text())
			b.ReportAllocs()
			defer reportCPU(b)()
			for b.Loop() {
				var u unstructured.Unstructured
				if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &u.Object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSame(b *testing.B) {
	for name, fields := range map[string]Fields{"builtin": builtin(), "whole": Whole()} {
		p := New(fields)
		before, after := decode(b, p, deployments.JSON(7, deployments.Small)), decode(b, p, deployments.JSON(7, deployments.Small))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			defer reportCPU(b)()
			for b.Loop() {
				if !before.Same(after) {
					b.Fatal("not the same")
				}
			}
		})
	}
}

// reportCPU adds the CPU time of the process per operation: on a machine that does
// other things besides, it says more than the time that has passed.
func reportCPU(b *testing.B) (done func()) {
	before := cpuTime(b)
	return func() { b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op") }
}

func cpuTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
