package engine

import (
	"fmt"
	"testing"
)

// What one key costs, from the add to Done, of 100,000 that are added and then
// worked on: live ones, those of an initial list, and some live ones among those.
func BenchmarkQueueOf100000(b *testing.B) {
	for _, resources := range []int{1, 20} {
		keys := make([]Key, 100_000)
		for i := range keys {
			keys[i] = keyOf(fmt.Sprintf("r%d", i%resources), i)
			keys[i].Namespace = fmt.Sprintf("namespace-%d", i%100)
		}
		for _, c := range []struct {
			name string
			live func(i int) bool
		}{
			{"live", func(int) bool { return true }},
			{"background", func(int) bool { return false }},
			{"both", func(i int) bool { return i%8 == 0 }},
		} {
			b.Run(fmt.Sprintf("%s/resources=%d", c.name, resources), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					q := newQueue(8, nil)
					for i, key := range keys {
						if c.live(i) {
							q.Add(key)
						} else {
							q.AddBackground(key)
						}
					}
					for range keys {
						key, _ := q.Get()
						q.Done(key)
					}
					q.ShutDown()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/key")
			})
		}
	}
}
