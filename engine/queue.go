package engine

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
)

// What failed and may work later is tried again after a time that grows, for
// each object, between these; all objects of a resource together within a rate.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Minute
	retryQPS   = 50
	retryBurst = 500
)

// queueName is the queue's in metrics.
const queueName = "rectifier"

// newQueue makes the workqueue. No resource starves the others in it: they take
// turns, at most half of the workers are on one of them at a time, and the
// retries of one do not count towards the rate of another's. m takes its metrics;
// nil: nobody does.
func newQueue(workers int, m workqueue.MetricsProvider) *objectQueue {
	keys := newFairQueue(max(workers/2, 1))
	return &objectQueue{workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
			&resourceRateLimiter{limiters: map[schema.GroupResource]*rate.Limiter{}}),
		workqueue.TypedRateLimitingQueueConfig[Key]{
			Name: queueName,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
				Name: queueName, MetricsProvider: m,
				Queue: &slotQueue{
					TypedInterface: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Name: queueName, MetricsProvider: m, Queue: keys}),
					keys:           keys,
				},
			}),
		})}
}

// objectQueue is the engine's workqueue: see newQueue.
type objectQueue struct {
	workqueue.TypedRateLimitingInterface[Key]
}

// AddBackground adds a key that nobody waits for: of an initial list, a reload or
// a resync. Keys of live changes come first.
func (q *objectQueue) AddBackground(key Key) { q.Add(key) }

// slotQueue is the workqueue over a fairQueue: it gives the slot back that a key
// has while it is worked on.
//
// No wake-up is lost, although a slot that becomes free wakes nobody. A key that
// becomes available does so because it was added, which wakes one worker, or
// because a slot was given back: by a worker that calls Get next. So there are
// never more keys available than workers on their way to Get, unless none waits.
// The same holds while the queue drains. Workers whose Get finds only keys of
// full resources leave, but a full resource has workers, and each takes what is
// left of it before it leaves.
type slotQueue struct {
	workqueue.TypedInterface[Key]
	keys *fairQueue
}

// Done must be called once for each Get.
func (q *slotQueue) Done(key Key) {
	q.keys.release(key.Resource)
	q.TypedInterface.Done(key)
}

// Len is how many keys wait, those of full resources included.
func (q *slotQueue) Len() int { return q.keys.waiting() }

// fairQueue is the storage of a workqueue: a FIFO for each resource, from which
// keys are taken in turn. A resource whose slots are all taken is passed over.
// All operations take constant time. It is safe for concurrent use: the
// workqueue calls it under a lock of its own, but for release.
type fairQueue struct {
	slots int // of each resource

	mu    sync.Mutex
	lanes map[schema.GroupResource]*lane // never dropped: rules name few resources
	// The available lanes, those that have a key and a free slot, in their turn.
	first, last *lane
	available   int
	keys        int // in all lanes
}

// lane is one resource in a fairQueue.
type lane struct {
	keys  []Key
	taken int   // slots
	next  *lane // of the available ones
}

func newFairQueue(slots int) *fairQueue {
	return &fairQueue{slots: slots, lanes: map[schema.GroupResource]*lane{}}
}

// Touch implements workqueue.Queue: a key that is added again keeps its place.
func (q *fairQueue) Touch(Key) {}

// Push implements workqueue.Queue.
func (q *fairQueue) Push(key Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key.Resource]
	if l == nil {
		l = &lane{}
		q.lanes[key.Resource] = l
	}
	l.keys = append(l.keys, key)
	q.keys++
	if len(l.keys) == 1 && l.taken < q.slots {
		q.queueUp(l)
	}
}

// Len implements workqueue.Queue, which only asks whether Pop has something to
// hand out: it is how many resources do.
func (q *fairQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.available
}

// Pop implements workqueue.Queue: it takes a key and a slot. It must not be
// called when Len is 0.
func (q *fairQueue) Pop() Key {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.first
	if q.first = l.next; q.first == nil {
		q.last = nil
	}
	l.next = nil
	q.available--

	key := l.keys[0]
	l.keys[0] = Key{} // the array lives on
	l.keys = l.keys[1:]
	q.keys--
	l.taken++
	if len(l.keys) > 0 && l.taken < q.slots {
		q.queueUp(l)
	}
	return key
}

// release gives a slot back.
func (q *fairQueue) release(resource schema.GroupResource) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[resource]
	l.taken--
	if len(l.keys) > 0 && l.taken == q.slots-1 {
		q.queueUp(l)
	}
}

// queueUp gives a lane that has become available its turn: the last one.
func (q *fairQueue) queueUp(l *lane) {
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
	q.available++
}

func (q *fairQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.keys
}

// resourceRateLimiter bounds the rate of retries, for each resource.
type resourceRateLimiter struct {
	mu       sync.Mutex
	limiters map[schema.GroupResource]*rate.Limiter
}

// When implements workqueue.TypedRateLimiter.
func (r *resourceRateLimiter) When(key Key) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.limiters[key.Resource]
	if l == nil {
		l = rate.NewLimiter(retryQPS, retryBurst)
		r.limiters[key.Resource] = l
	}
	return l.Reserve().Delay()
}

// NumRequeues implements workqueue.TypedRateLimiter: nothing is counted by key.
func (r *resourceRateLimiter) NumRequeues(Key) int { return 0 }

// Forget implements workqueue.TypedRateLimiter.
func (r *resourceRateLimiter) Forget(Key) {}
