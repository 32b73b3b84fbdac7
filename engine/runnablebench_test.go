package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/rectifier-dev/rectifier/gvr"
)

// BenchmarkDecideOnManyRules is what the engine does with an object that rules find
// nothing to change on: which rules can run, their evaluation, counts and reports.
func BenchmarkDecideOnManyRules(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var all []string
			for i := range n {
				all = append(all, rule(fmt.Sprintf("r%04d", i), onConfigMaps+fmt.Sprintf("condition: \"'opt-%d' in object.metadata.?annotations.orValue({})\"", i)))
			}
			e := offline(b, setOf(b, all...), nil)
			d := decisionOn(b, e, "{metadata: {name: c, annotations: {a: x, b: x}}}")
			d.lookups = &lookups{Engine: e}
			info := gvr.Info{Resource: configmaps, Namespaced: true}
			b.ReportAllocs()
			for b.Loop() {
				d.counted = false
				can := d.rulesFor(configmaps, info, gvr.Available)
				if result, _, err := d.result(context.Background(), can); err != nil || !result.Passed() || len(can) != n {
					b.Fatal(err, len(can))
				}
			}
		})
	}
}
