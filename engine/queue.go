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

// backgroundShare bounds how much live changes are preferred: of so many keys that
// are handed out, one is of the background if there is one.
const backgroundShare = 8

// priority is whether somebody waits for a key.
type priority int

const (
	// background is that of an initial list, a reload or a resync: most of these
	// objects are right already.
	background priority = iota
	// live is that of all else: changes, and what is tried again.
	live
)

// newQueue makes the workqueue. No resource starves the others in it: they take
// turns, at most half of the workers are on one of them at a time, and the
// retries of one do not count towards the rate of another's. Live keys come before
// those of the background, which has its share nevertheless. m takes its metrics;
// nil: nobody does.
func newQueue(workers int, m workqueue.MetricsProvider) *objectQueue {
	keys := newFairQueue(max(workers/2, 1))
	slots := &slotQueue{
		TypedInterface: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Name: queueName, MetricsProvider: m, Queue: keys}),
		keys:           keys,
		again:          map[Key]priority{},
	}
	return &objectQueue{slots: slots, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
			&resourceRateLimiter{limiters: map[schema.GroupResource]*rate.Limiter{}}),
		workqueue.TypedRateLimitingQueueConfig[Key]{
			Name: queueName,
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
				Name: queueName, MetricsProvider: m, Queue: slots,
			}),
		})}
}

// objectQueue is the engine's workqueue: see newQueue.
type objectQueue struct {
	workqueue.TypedRateLimitingInterface[Key] // whose adds are live, the delayed ones too
	slots                                     *slotQueue
}

// AddBackground adds a key that nobody waits for: of an initial list, a reload or
// a resync. Keys of live changes come first. A key that is added both ways before
// it is handed out, in whatever order, is live.
func (q *objectQueue) AddBackground(key Key) { q.slots.add(key, background) }

// slotQueue is the workqueue over a fairQueue: it gives the slot back that a key
// has while it is worked on, and tells the fairQueue the priority of what the
// workqueue gives it, which knows of none.
//
// No wake-up is lost, although a slot that becomes free wakes nobody. A key that
// becomes available does so because it was added, which wakes one worker, or
// because a slot was given back: by a worker that calls Get next. So there are
// never more keys available than workers on their way to Get, unless none waits.
// A key that moves up is available, or not, as it was before. The same holds while
// the queue drains. Workers whose Get finds only keys of full resources leave, but
// a full resource has workers, and each takes what is left of it before it leaves.
type slotQueue struct {
	workqueue.TypedInterface[Key]
	keys *fairQueue

	mu sync.Mutex // held during each add and Done; no other lock is held when it is taken
	// again has the keys that were added while they are worked on, which the
	// workqueue remembers and hands to the fairQueue only when they are done.
	again map[Key]priority
}

// Add adds a live key.
func (q *slotQueue) Add(key Key) { q.add(key, live) }

func (q *slotQueue) add(key Key, p priority) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keys.adding, q.keys.reached = p, false
	q.TypedInterface.Add(key)
	if !q.keys.reached && !q.ShuttingDown() {
		q.again[key] = max(q.again[key], p)
	}
}

// Done must be called once for each Get.
func (q *slotQueue) Done(key Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keys.adding = q.again[key]
	delete(q.again, key)
	q.keys.release(key.Resource)
	q.TypedInterface.Done(key)
}

// Len is how many keys wait, those of full resources included.
func (q *slotQueue) Len() int { return q.keys.waiting() }

// fairQueue is the storage of a workqueue: two FIFOs for each resource, of live
// keys and of those of the background. Resources with live keys take turns; so do
// those that have none, whenever there are no live keys, and for the background's
// share when there are. A resource with both gives the background its share of
// its own turns. A resource whose slots are all taken is passed over.
//
// All operations take constant time, on average. It is safe for concurrent use:
// the workqueue calls it under a lock of its own, but for release.
type fairQueue struct {
	slots int // of each resource

	// Of the call of Push or Touch that comes next, both under the lock of the
	// slotQueue: the priority of its key; whether there was a call.
	adding  priority
	reached bool

	mu    sync.Mutex
	lanes map[schema.GroupResource]*lane // never dropped: rules name few resources
	// The available lanes, those that have a key and a free slot, in their turn:
	// with live keys, and without.
	live, background turns
	passedOver       int // keys handed out while a lane waited in background
	keys             int // in all lanes
}

func newFairQueue(slots int) *fairQueue {
	return &fairQueue{slots: slots, lanes: map[schema.GroupResource]*lane{}}
}

// Touch implements workqueue.Queue: a key that is added again keeps its place,
// unless it was in the background and somebody waits for it now.
func (q *fairQueue) Touch(key Key) {
	q.reached = true
	if q.adding != live {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.lanes[key.Resource]; l.background.remove(key) {
		l.live = append(l.live, key)
		q.queueUp(l)
	}
}

// Push implements workqueue.Queue.
func (q *fairQueue) Push(key Key) {
	q.reached = true
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key.Resource]
	if l == nil {
		l = &lane{}
		q.lanes[key.Resource] = l
	}
	if q.adding == live {
		l.live = append(l.live, key)
	} else {
		l.background.push(key)
	}
	q.keys++
	q.queueUp(l)
}

// Len implements workqueue.Queue, which only asks whether Pop has something to
// hand out: it is how many resources do.
func (q *fairQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.live.len + q.background.len
}

// Pop implements workqueue.Queue: it takes a key and a slot. It must not be
// called when Len is 0.
func (q *fairQueue) Pop() Key {
	q.mu.Lock()
	defer q.mu.Unlock()
	from := &q.live
	switch {
	case q.background.len == 0:
	case q.live.len == 0, q.passedOver == backgroundShare-1:
		from = &q.background
		q.passedOver = 0
	default:
		q.passedOver++
	}
	l := from.first
	from.remove(l)
	key := l.pop()
	q.keys--
	l.taken++
	q.queueUp(l)
	return key
}

// release gives a slot back.
func (q *fairQueue) release(resource schema.GroupResource) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[resource]
	l.taken--
	q.queueUp(l)
}

// queueUp gives a lane its turn, the last one, among those that it has come to
// belong to. Among those that it belongs to already, it keeps its turn.
func (q *fairQueue) queueUp(l *lane) {
	var to *turns
	switch {
	case l.taken >= q.slots:
	case len(l.live) > 0:
		to = &q.live
	case l.background.len > 0:
		to = &q.background
	}
	if l.in == to {
		return
	}
	if l.in != nil {
		l.in.remove(l)
	}
	if to != nil {
		to.push(l)
	}
}

func (q *fairQueue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.keys
}

// lane is one resource in a fairQueue.
type lane struct {
	live       []Key
	background backlog
	passedOver int // live keys handed out while others waited in background
	taken      int // slots

	in         *turns // nil: not available
	prev, next *lane  // in the same turns
}

// pop takes a key; there must be one.
func (l *lane) pop() Key {
	if l.background.len > 0 {
		if len(l.live) == 0 || l.passedOver == backgroundShare-1 {
			l.passedOver = 0
			return l.background.pop()
		}
		l.passedOver++
	}
	key := l.live[0]
	l.live[0] = Key{} // the array lives on
	l.live = l.live[1:]
	return key
}

// turns is lanes in their turn.
type turns struct {
	first, last *lane
	len         int
}

func (t *turns) push(l *lane) {
	l.in, l.prev = t, t.last
	if t.last == nil {
		t.first = l
	} else {
		t.last.next = l
	}
	t.last = l
	t.len++
}

func (t *turns) remove(l *lane) {
	if l.prev == nil {
		t.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		t.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.in, l.prev, l.next = nil, nil, nil
	t.len--
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
