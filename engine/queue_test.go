package engine

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

func keyOf(resource string, i int) Key {
	return Key{Resource: schema.GroupResource{Resource: resource}, Name: fmt.Sprintf("%s-%d", resource, i)}
}

// take gets a key; the test fails if there is none.
func take(t *testing.T, q workqueue.TypedInterface[Key]) Key {
	t.Helper()
	got := make(chan Key, 1)
	go func() {
		key, _ := q.Get()
		got <- key
	}()
	select {
	case key := <-got:
		return key
	case <-time.After(10 * time.Second):
		t.Fatal("the queue hands out nothing")
		return Key{}
	}
}

func TestAQuietResourceDoesNotWaitBehindABusyOne(t *testing.T) {
	q := newQueue(8, nil)
	defer q.ShutDown()
	const busy = 20000
	for i := range busy {
		q.Add(keyOf("busy", i))
	}
	for i := range 100 { // the order within a resource is that of the adds
		if key := take(t, q); key != keyOf("busy", i) {
			t.Fatalf("the %dth key is %v", i, key)
		} else {
			q.Done(key)
		}
	}
	for i := range 3 {
		q.Add(keyOf("quiet", i))
	}
	var turns string
	for range 6 {
		key := take(t, q)
		turns += key.Resource.Resource[:1]
		q.Done(key)
	}
	if turns != "bqbqbq" {
		t.Errorf("the resources take turns like this: %s", turns)
	}
	if got := q.Len(); got != busy-103 {
		t.Errorf("Len is %d, not %d", got, busy-103)
	}
}

// A resource whose workers all hang has at most half of them.
func TestABusyResourceHasHalfOfTheWorkers(t *testing.T) {
	for workers, slots := range map[int]int{1: 1, 2: 1, 3: 1, 8: 4, 9: 4} {
		q := newQueue(workers, nil)
		for i := range 20 {
			q.Add(keyOf("busy", i))
			q.Add(keyOf("quiet", i))
		}
		var held []Key
		for len(held) < slots {
			if key := take(t, q); key.Resource.Resource == "busy" {
				held = append(held, key)
			} else {
				q.Done(key)
			}
		}
		for q.Len() > 20-slots {
			key := take(t, q)
			if key.Resource.Resource == "busy" {
				t.Fatalf("%d of %d workers are on one resource", slots+1, workers)
			}
			q.Done(key)
		}
		q.Done(held[0]) // one slot more, one key more
		if key := take(t, q); key != keyOf("busy", slots) {
			t.Errorf("after a slot was given back, %v is handed out", key)
		}
		q.ShutDown()
	}
}

// crew is workers that keep count of what they do.
type crew struct {
	sync.WaitGroup
	mu       sync.Mutex
	working  map[Key]bool
	on, most map[schema.GroupResource]int
	done     atomic.Int64
	fault    atomic.Pointer[string]
}

// start has workers handle keys until the queue is shut down.
func (c *crew) start(q workqueue.TypedInterface[Key], workers int, handle func(Key)) {
	c.working, c.on, c.most = map[Key]bool{}, map[schema.GroupResource]int{}, map[schema.GroupResource]int{}
	for range workers {
		c.Go(func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				c.begin(key)
				handle(key)
				c.end(key)
				q.Done(key)
				c.done.Add(1)
			}
		})
	}
}

func (c *crew) begin(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.working[key] {
		s := fmt.Sprintf("%v is worked on twice", key)
		c.fault.Store(&s)
	}
	c.working[key] = true
	c.on[key.Resource]++
	c.most[key.Resource] = max(c.most[key.Resource], c.on[key.Resource])
}

func (c *crew) end(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.working, key)
	c.on[key.Resource]--
}

func (c *crew) check(t *testing.T, slots int) {
	t.Helper()
	if fault := c.fault.Load(); fault != nil {
		t.Error(*fault)
	}
	for resource, most := range c.most {
		if most > slots {
			t.Errorf("%d workers were on %s at a time, of at most %d", most, resource, slots)
		}
	}
}

// No wake-up is lost: whatever is added is worked on, by many workers on few
// slots, while keys are added from all sides and during the work on them.
func TestEveryKeyIsWorkedOn(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 16, 64} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			t.Parallel()
			q := newQueue(workers, nil)
			var c crew
			var versions, seen [8][50]atomic.Int64
			c.start(q, workers, func(key Key) {
				var r, i int
				_, _ = fmt.Sscanf(key.Name, "r%d-%d", &r, &i)
				seen[r][i].Store(versions[r][i].Load())
				if rand.IntN(4) == 0 {
					time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
				}
			})
			var adding sync.WaitGroup
			for range 4 {
				adding.Go(func() {
					for range 2000 {
						r, i := rand.IntN(len(versions)), rand.IntN(len(versions[0]))
						versions[r][i].Add(1)
						if key := keyOf(fmt.Sprintf("r%d", r), i); rand.IntN(3) == 0 {
							q.Add(key)
						} else {
							q.AddBackground(key)
						}
						if rand.IntN(50) == 0 {
							time.Sleep(time.Millisecond) // the workers run out of keys now and then
						}
					}
				})
			}
			adding.Wait()
			testcluster.Eventually(t, 30*time.Second, func() error {
				for r := range versions {
					for i := range versions[r] {
						if want, got := versions[r][i].Load(), seen[r][i].Load(); got != want {
							return fmt.Errorf("r%d-%d was worked on at version %d, not %d; %d keys wait", r, i, got, want, q.Len())
						}
					}
				}
				return nil
			})
			q.ShutDownWithDrain()
			c.Wait()
			c.check(t, max(workers/2, 1))
			checkNothingIsKept(t, q)
		})
	}
}

// What waits behind the slots of a resource is drained too, although the queue
// looks empty to the other workers, which leave.
func TestAFullResourceIsDrained(t *testing.T) {
	for _, workers := range []int{1, 2, 8, 32} {
		q := newQueue(workers, nil)
		const keys = 500
		for i := range keys / 2 {
			q.Add(keyOf("busy", 2*i))
			q.AddBackground(keyOf("busy", 2*i+1))
		}
		q.Add(keyOf("quiet", 0))
		release, slots := make(chan struct{}), max(workers/2, 1)
		var c crew
		c.start(q, workers, func(key Key) {
			<-release
			if key == keyOf("quiet", 0) {
				time.Sleep(time.Millisecond)
			}
		})
		testcluster.Eventually(t, 10*time.Second, func() error {
			if waiting := q.Len(); waiting > keys+1-slots {
				return fmt.Errorf("%d keys wait", waiting)
			}
			return nil
		})
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			q.ShutDownWithDrain()
		}()
		testcluster.Eventually(t, 10*time.Second, func() error {
			if !q.ShuttingDown() {
				return fmt.Errorf("it is not shutting down")
			}
			return nil
		})
		close(release)
		c.Wait()
		<-drained
		if got := c.done.Load(); got != keys+1 {
			t.Errorf("%d workers drained %d of %d keys", workers, got, keys+1)
		}
		c.check(t, slots)
	}
}

// RTY-08: a key that changes while it is worked on is handed out again, once,
// to one worker.
func TestAKeyThatChangesWhileItIsWorkedOn(t *testing.T) {
	q := newQueue(8, nil)
	defer q.ShutDown()
	key := keyOf("r", 0)
	q.Add(key)
	for range 3 {
		if got := take(t, q); got != key {
			t.Fatalf("%v is handed out", got)
		}
		q.Add(key)
		q.Add(key)
		if q.Len() != 0 {
			t.Fatal("a key is queued that is worked on")
		}
		q.Done(key)
		if q.Len() != 1 {
			t.Fatalf("%d keys are queued, not the one that has changed", q.Len())
		}
	}
	take(t, q)
	q.Done(key)
	if q.Len() != 0 {
		t.Error("a key is queued that has not changed")
	}
}

// Thousands of failures on one resource do not put a retry on another one off.
func TestRetriesOfOneResourceDoNotDelayAnothers(t *testing.T) {
	r := &resourceRateLimiter{limiters: map[schema.GroupResource]*rate.Limiter{}}
	for i := range 5000 {
		r.When(keyOf("failing", i))
	}
	if wait := r.When(keyOf("failing", 0)); wait < 10*time.Second {
		t.Errorf("the retry of the failing resource comes after %v: there is no limit", wait)
	}
	if wait := r.When(keyOf("other", 0)); wait != 0 {
		t.Errorf("the first retry of another resource comes after %v", wait)
	}
}

func BenchmarkQueue(b *testing.B) {
	q := newQueue(8, nil)
	defer q.ShutDown()
	for r := range 100 {
		for i := range 1000 {
			q.Add(keyOf(fmt.Sprintf("r%d", r), i))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		key, _ := q.Get()
		q.Done(key)
		q.Add(key)
	}
}
