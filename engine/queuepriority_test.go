package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// oneWord makes a key of a word: its first letter is the resource.
func oneWord(word string) Key {
	return Key{Resource: schema.GroupResource{Resource: word[:1]}, Name: word}
}

// play does what a script says, word by word: +a1 adds a live key, -a1 one of the
// background, get takes one, ok ends the work on the one that was taken first. It
// gives back the keys that were taken, all that are left included.
func play(t *testing.T, q *objectQueue, script string) string {
	t.Helper()
	var taken, working []string
	get := func() {
		key := take(t, q)
		taken, working = append(taken, key.Name), append(working, key.Name)
	}
	ok := func() {
		q.Done(oneWord(working[0]))
		working = working[1:]
	}
	for word := range strings.FieldsSeq(script) {
		switch {
		case word[0] == '+':
			q.Add(oneWord(word[1:]))
		case word[0] == '-':
			q.AddBackground(oneWord(word[1:]))
		case word == "get":
			get()
		case word == "ok":
			ok()
		}
	}
	for len(working) > 0 || q.Len() > 0 {
		if len(working) > 0 {
			ok()
		} else {
			get()
		}
	}
	checkNothingIsKept(t, q)
	return strings.Join(taken, " ")
}

// checkNothingIsKept fails the test if an empty queue remembers keys.
func checkNothingIsKept(t *testing.T, q *objectQueue) {
	t.Helper()
	if n := len(q.slots.again); n > 0 {
		t.Errorf("the priorities of %d keys are kept that nobody works on", n)
	}
	for resource, l := range q.slots.keys.lanes {
		if b := &l.background; len(l.live) > 0 || b.len > 0 || b.index != nil || b.first != nil || b.last != nil || l.in != nil || l.taken != 0 {
			t.Errorf("the lane of %v has something: %+v", resource, l)
		}
	}
}

func TestLiveKeysComeFirst(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"on one resource", "-a1 -a2 +a3 -a4 +a5", "a3 a5 a1 a2 a4"},
		{"across resources", "-a1 -b1 -a2 +c1 +b2", "c1 b2 a1 b1 a2"},
		{"resources take turns in the background", "-a1 -a2 -a3 -b1 -c1 -b2", "a1 b1 c1 a2 b2 a3"},
		{"resources take turns among live keys", "-a0 +a1 +a2 +a3 +b1 +c1 +b2", "a1 b1 c1 a2 b2 a3 a0"},

		{"queued in the background, added live: it moves up", "-a1 -a2 -a3 +a2", "a2 a1 a3"},
		{"the first one moves up", "-a1 -a2 -a3 +a1 +a3", "a1 a3 a2"},
		{"the last one moves up, behind those that are live", "+b1 -a1 -a2 +a2", "b1 a2 a1"},
		{"the only one moves up", "-b1 -a1 +a1", "a1 b1"},
		{"it moves up once", "-a1 -a2 +a2 +a2 +a2 -a2", "a2 a1"},
		{"queued live, added in the background: it stays", "+a1 +a2 -a1 -a3", "a1 a2 a3"},
		{"twice in the background", "-a1 -a2 -a1", "a1 a2"},

		{"added in the background during the work", "+a1 get -a1 ok +a2 get", "a1 a2 a1"},
		{"added live during the work", "-a1 -a2 get +a1 ok", "a1 a1 a2"},
		{"added both ways during the work", "-a1 -a2 get -a1 +a1 ok", "a1 a1 a2"},
		{"added both ways during the work, live first", "-a1 -a2 get +a1 -a1 ok", "a1 a1 a2"},
		{"what was during the work before does not count", "-a1 -a2 -a3 get +a1 ok get -a1 ok", "a1 a1 a2 a3 a1"},
		{"it moves up after the work too", "+a1 get -a1 ok -a2 +a2 +a1 get ok", "a1 a2 a1"},
		{"other keys during the work", "+a1 get -a2 +a3 -a1 ok", "a1 a3 a2 a1"},
		{"more are worked on", "+a1 +b1 get get +b1 -a1 ok ok -c1", "a1 b1 b1 a1 c1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newQueue(8, nil)
			defer q.ShutDown()
			if diff := cmp.Diff(c.want, play(t, q, c.script)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.script, diff)
			}
		})
	}
}

// What is tried again is waited for, whatever it was at first.
func TestRetriesAreLive(t *testing.T) {
	for name, retry := range map[string]func(q workqueue.TypedRateLimitingInterface[Key], key Key){
		"AddRateLimited":    func(q workqueue.TypedRateLimitingInterface[Key], key Key) { q.AddRateLimited(key) },
		"AddAfter":          func(q workqueue.TypedRateLimitingInterface[Key], key Key) { q.AddAfter(key, time.Millisecond) },
		"AddAfter, at once": func(q workqueue.TypedRateLimitingInterface[Key], key Key) { q.AddAfter(key, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(8, nil)
			defer q.ShutDown()
			for i := range 10 {
				q.AddBackground(keyOf("r", i))
			}
			retry(q, keyOf("r", 10))
			retry(q, keyOf("r", 9))
			testcluster.Eventually(t, 10*time.Second, func() error {
				q.slots.keys.mu.Lock()
				defer q.slots.keys.mu.Unlock()
				if n := len(q.slots.keys.lanes[keyOf("r", 0).Resource].live); n != 2 {
					return fmt.Errorf("%d keys are live", n)
				}
				return nil
			})
		})
	}
}

// The background has its share on resources that always have live keys, and of those
// that have none; also where all workers that may be are busy. Where live keys
// need not wait for a slot, it has no more than that.
func TestTheBackgroundHasItsShare(t *testing.T) {
	const handedOut = 8 * 300
	for live, background := range map[string]string{"a": "a", "b": "a", "ab": "ab", "abc": "abcd", "c": "ab"} {
		for _, workers := range []int{1, 2, 3, 8} {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("live %s, background %s, %d workers, busy %v", live, background, workers, busy), func(t *testing.T) {
					q := newQueue(workers, nil)
					defer q.ShutDown()
					count := handOut(t, q, live, background, handedOut, busy)
					sum := 0
					for r := range strings.SplitSeq(background, "") {
						sum += count[r]
						if least := handedOut / backgroundShare / len(background) / 2; count[r] < least {
							t.Errorf("%d of %d keys were of the background of %s, where at least %d should", count[r], handedOut, r, least)
						}
					}
					if least := handedOut/backgroundShare - 1; sum < least {
						t.Errorf("%d of %d keys were of the background, where at least %d should: %v", sum, handedOut, least, count)
					}
					if most := handedOut * 2 / backgroundShare; !busy && sum > most {
						t.Errorf("%d of %d keys were of the background, where at most %d should: %v", sum, handedOut, most, count)
					}
				})
			}
		}
	}
}

// handOut takes so many keys of a queue where each resource of live always has a
// live key that waits, and each of background one of those. The work on a key
// takes no time, or, if busy, until no other key can be had. It gives back how many
// keys were of the background, by resource.
func handOut(t *testing.T, q *objectQueue, live, background string, handedOut int, busy bool) map[string]int {
	t.Helper()
	for i := range handedOut {
		for r := range strings.SplitSeq(background, "") {
			q.AddBackground(keyOf(r, i))
		}
	}
	count := map[string]int{}
	var working []Key
	for i := range handedOut {
		for r := range strings.SplitSeq(live, "") {
			q.Add(keyOf(r, handedOut+i))
		}
		for q.slots.keys.Len() == 0 || !busy && len(working) > 0 {
			q.Done(working[0])
			working = working[1:]
		}
		key := take(t, q)
		working = append(working, key)
		var n int
		if _, err := fmt.Sscanf(key.Name[2:], "%d", &n); err != nil {
			t.Fatal(err)
		}
		if n < handedOut {
			count[key.Resource.Resource]++
		}
	}
	return count
}

// Live keys overtake an initial list under way, on the same resource and on
// another, and all of it is worked on.
func TestLiveKeysOvertakeAnInitialList(t *testing.T) {
	const workers, initial, changes = 8, 100_000, 300
	q := newQueue(workers, nil)
	for i := range initial {
		q.AddBackground(keyOf("busy", i))
	}
	progress := make(chan struct{}, 2) // a key of the list may be done
	seen := make(chan Key, changes)
	var waited atomic.Pointer[Key]
	var c crew
	c.start(q, workers, func(key Key) {
		if want := waited.Load(); want != nil && *want == key {
			seen <- key
		} else {
			<-progress
		}
	})
	for i := range changes {
		testcluster.Eventually(t, 10*time.Second, func() error {
			if len(progress) > 0 {
				return fmt.Errorf("the list makes no progress")
			}
			return nil
		})
		key := keyOf("busy", initial+i)
		switch i % 3 {
		case 0:
			key = keyOf("busy", initial-1-i) // is queued, and moves up
		case 1:
			key = keyOf("quiet", i)
		}
		waited.Store(&key)
		q.Add(key)
		if key.Resource.Resource == "busy" {
			// All its slots may be taken by the list. One becomes free, and another
			// one if it was given to the background, which has its share.
			progress <- struct{}{}
			progress <- struct{}{}
		}
		select {
		case <-seen:
		case <-time.After(10 * time.Second):
			t.Fatalf("%v, the %dth change, waits behind the list", key, i)
		}
	}
	waited.Store(nil)
	close(progress)
	q.ShutDownWithDrain()
	c.Wait()
	c.check(t, workers/2)
	if want := int64(initial + changes*2/3); c.done.Load() != want {
		t.Errorf("%d keys were worked on, not %d", c.done.Load(), want)
	}
	checkNothingIsKept(t, q)
}

func TestDepthCountsTheBackground(t *testing.T) {
	m := newQueueMetrics()
	q := newQueue(8, m)
	defer q.ShutDown()
	for i := range 5 {
		q.AddBackground(keyOf("a", i))
	}
	q.Add(keyOf("a", 3))
	q.Add(keyOf("b", 0))
	q.Done(take(t, q))
	depth, adds := testutil.ToFloat64(m.depth.WithLabelValues(queueName)), testutil.ToFloat64(m.adds.WithLabelValues(queueName))
	if depth != 5 || adds != 6 || q.Len() != 5 {
		t.Errorf("depth is %v of %v adds, and Len %d; want 5 of 6, and 5", depth, adds, q.Len())
	}
}

// A hash that two keys have costs one of them its way up, and nothing else.
func TestBacklogWithEqualHashes(t *testing.T) {
	var b backlog
	one, two, three := keyOf("r", 1), keyOf("r", 2), keyOf("r", 3)
	for _, key := range []Key{one, two, three} {
		b.push(key)
	}
	b.index[hashKey(two)] = b.index[hashKey(three)]
	if b.remove(two) {
		t.Error("a key was found by the hash of another")
	}
	if !b.remove(three) || b.remove(three) {
		t.Error("a key cannot be taken out once")
	}
	got := []Key{b.pop(), b.pop()}
	if diff := cmp.Diff([]Key{one, two}, got); diff != "" || b.len != 0 || b.first != nil {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
}

// After a shutdown keys are ignored, and nothing is remembered of them.
func TestNothingIsKeptOfKeysThatComeTooLate(t *testing.T) {
	q := newQueue(8, nil)
	q.ShutDown()
	for i := range 100 {
		q.Add(keyOf("r", i))
		q.AddBackground(keyOf("r", i))
	}
	if q.Len() != 0 {
		t.Errorf("%d keys wait", q.Len())
	}
	checkNothingIsKept(t, q)
}

// The queue does what a simple one does that looks at all keys each time.
func TestUnracedTheQueueAgainstAModel(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		workers, resources, names := 1+rnd.IntN(9), 1+rnd.IntN(4), 1+rnd.IntN(30)
		q, m := newQueue(workers, nil), newQueueModel(max(workers/2, 1))
		var working []Key
		for step := range 2000 {
			key := keyOf(string(rune('a'+rnd.IntN(resources))), rnd.IntN(names))
			switch n := rnd.IntN(10); {
			case n < 2:
				q.Add(key)
				m.add(key, live)
			case n < 5:
				q.AddBackground(key)
				m.add(key, background)
			case n < 8 && m.available() && len(working) < workers:
				got, _ := q.Get()
				if want := m.get(); got != want {
					t.Fatalf("seed %d, step %d: %v is handed out, not %v", seed, step, got, want)
				}
				working = append(working, got)
			case len(working) > 0:
				i := rnd.IntN(len(working))
				key := working[i]
				working = append(working[:i], working[i+1:]...)
				q.Done(key)
				m.done(key)
			}
			if q.Len() != m.len() || q.slots.keys.Len() > 0 != m.available() {
				t.Fatalf("seed %d, step %d: %d keys wait, not %d", seed, step, q.Len(), m.len())
			}
		}
		for len(working) > 0 || m.available() {
			for _, key := range working {
				q.Done(key)
				m.done(key)
			}
			working = nil
			if m.available() {
				got, _ := q.Get()
				if want := m.get(); got != want {
					t.Fatalf("seed %d, at the end: %v is handed out, not %v", seed, got, want)
				}
				working = append(working, got)
			}
		}
		q.ShutDown()
		checkNothingIsKept(t, q)
	}
}
