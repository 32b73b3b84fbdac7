package projection

import (
	"runtime"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// What objects take in an indexer, and that Bytes tells it.
func TestMemory(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fields Fields
		count  int
		bound  int
	}{
		{"builtin", builtin(), 6_000, 450},
		{"identity", Fields{}, 5_000, 300},
		{"whole", Whole(), 2_000, 4000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New(tt.fields)
			indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			before := heap()
			told := 0
			for i := range tt.count {
				o := objectDecoder{projector: p}.object(deployments.JSON(i, deployments.Small))
				told += o.Bytes()
				if err := indexer.Add(o); err != nil {
					t.Fatal(err)
				}
			}
			taken, told := (heap()-before)/tt.count, told/tt.count
			t.Logf("%d bytes an object, told %d", taken, told)
			if taken > tt.bound {
				t.Errorf("an object takes %d bytes, more than %d", taken, tt.bound)
			}
			if told < taken*85/100 || told > taken*115/100 {
				t.Errorf("Bytes tells %d, but an object takes %d", told, taken)
			}
			runtime.KeepAlive(indexer)
		})
	}
}

func heap() int {
	runtime.GC()
	runtime.GC() // what pools hold is freed by the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
