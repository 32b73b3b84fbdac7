package gvr

import (
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
)

// listing is a store that counts how often its keys are listed.
type listing struct {
	cache.Store
	lists int // count's lock guards it
}

func (l *listing) ListKeys() []string {
	l.lists++
	return l.Store.ListKeys()
}

// A large store is not counted for each who asks; a small one is, so that its
// number is never an old one.
func TestLargeStoresAreCountedNowAndThen(t *testing.T) {
	began := time.Now()
	for _, tc := range []struct{ objects, wantLists int }{
		{0, 1000},
		{1, 1000},
		{1000, 101},
		{100_000, 2}, // in a little more than a second
	} {
		var c count
		store := &listing{Store: storeOf(t, tc.objects)}
		for i := range 1000 { // one each millisecond, and many at once
			if got := c.of(store, began.Add(time.Duration(i)*1010*time.Microsecond)); got != tc.objects {
				t.Fatalf("%d of %d objects", got, tc.objects)
			}
		}
		if store.lists > tc.wantLists || store.lists < tc.wantLists-10 {
			t.Errorf("%d objects were counted %d times in a second, not %d", tc.objects, store.lists, tc.wantLists)
		}
	}
}

// Of many who ask at once, one counts.
func TestOneCounts(t *testing.T) {
	var c count
	store, now := &listing{Store: storeOf(t, 1000)}, time.Now()
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() { c.of(store, now) })
	}
	wait.Wait()
	if store.lists != 1 {
		t.Errorf("they were counted %d times", store.lists)
	}
	if err := store.Delete(store.List()[0]); err != nil {
		t.Fatal(err)
	}
	if got := c.of(store, now.Add(1000*countHolds)); got != 999 {
		t.Errorf("the number stays %d", got)
	}
}

func BenchmarkListKeys(b *testing.B) {
	store := &listing{Store: storeOf(b, 100_000)}
	b.ReportAllocs()
	for b.Loop() {
		store.ListKeys()
	}
}
