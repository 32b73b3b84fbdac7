package patch

import (
	"encoding/json"
	"os"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// deployment returns a Deployment of about 3.5 KB, as an API server stores it
// (without managedFields).
func deployment(t testing.TB) map[string]any {
	t.Helper()
	b, err := os.ReadFile("testdata/deployment.json")
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(b))
}

const (
	benchMerge = `{"metadata":{"annotations":{"example.io/fixed":"true","example.io/owner":"team-7@example.com"}},"spec":{"replicas":5,"paused":null}}`
	benchNoop  = `{"metadata":{"annotations":{"example.io/owner":"team-7@example.com"}},"spec":{"replicas":3,"paused":null}}`
	benchOps   = `[{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":5},
		{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"registry.example.com/app:v2"}]`
)

// The sinks keep the compiler from dropping what is measured.
var (
	sinkMap   map[string]any
	sinkOps   []Op
	sinkBytes []byte
)

func BenchmarkShrink(b *testing.B) {
	live := deployment(b)
	for name, s := range map[string]string{"change": benchMerge, "noop": benchNoop} {
		b.Run(name, func(b *testing.B) {
			merge := object(b, s)
			b.ReportAllocs()
			for b.Loop() {
				sinkMap = Shrink(live, merge)
			}
		})
	}
}

func BenchmarkApplyMerge(b *testing.B) {
	live, merge := deployment(b), object(b, benchMerge)
	b.ReportAllocs()
	for b.Loop() {
		sinkMap = ApplyMerge(live, merge)
	}
}

func BenchmarkMergeBody(b *testing.B) {
	left := Shrink(deployment(b), object(b, benchMerge))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if sinkBytes, err = MergeBody(left, "0f5e2c1a-6f1b-4a7e-9a55-1f0e3a9d0007", "184467"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMergeToOps(b *testing.B) {
	live, merge := deployment(b), object(b, benchMerge)
	b.ReportAllocs()
	for b.Loop() {
		sinkOps = MergeToOps(live, merge)
	}
}

func BenchmarkApplyOps(b *testing.B) {
	live, list := deployment(b), ops(b, benchOps)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if sinkMap, err = ApplyOps(live, list); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpsBody(b *testing.B) {
	list := ops(b, benchOps)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if sinkBytes, err = OpsBody(list, "0f5e2c1a-6f1b-4a7e-9a55-1f0e3a9d0007", "184467"); err != nil {
			b.Fatal(err)
		}
	}
}

// What docs/adr/0002 compares with: the same through bytes.
func BenchmarkOnBytes(b *testing.B) {
	live, merge, list := deployment(b), object(b, benchMerge), opsText(b, ops(b, benchOps))
	after := ApplyMerge(live, merge)
	mustJSON := func(v any) []byte {
		out, err := json.Marshal(v)
		if err != nil {
			b.Fatal(err)
		}
		return out
	}
	b.Run("diff", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if sinkBytes, err = jsonpatch.CreateMergePatch(mustJSON(live), mustJSON(after)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ops", func(b *testing.B) {
		p, err := jsonpatch.DecodePatch([]byte(list))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			out, err := p.Apply(mustJSON(live))
			if err != nil {
				b.Fatal(err)
			}
			if err := json.Unmarshal(out, &sinkMap); err != nil {
				b.Fatal(err)
			}
		}
	})
}
