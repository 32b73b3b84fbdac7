package engine

import (
	"fmt"
	"runtime"
	"testing"
)

// Probes, and whoever reaches their port, may ask for the verdict as often as they
// like: it takes no more memory the more there is in the cache, or to be told.
func TestTheVerdictIsCheap(t *testing.T) {
	f := newFixture(t)
	for i := range 500 { // their keys, listed, are 8 kB
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	var idle []string
	for i := range 50 { // each has a line
		idle = append(idle, rule(fmt.Sprint("idle-", i), "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [kube-system]}\npatch: {merge: {data: {a: b}}}"))
	}
	f.startAs(f.everything(), Options{ExcludeNamespaces: []string{"kube-*"}}, idle...)
	f.wantReadyz(soon, "v1/configmaps: synced", "[!] rule idle-49: it does nothing", "\nready\n")
	const times = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if !f.engine.Ready() {
			t.Fatal("it is not ready")
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 1000 {
		t.Errorf("each time it takes %d bytes", each)
	}
}
