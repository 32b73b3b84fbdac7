package engine

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// Of the objects of one resource that fail, so many are told of at once, and
// then one in a while: an outage hits all of them.
const (
	failureLines    = 3
	failureInterval = time.Minute
)

// failureLog bounds what is logged of failures, for each resource. It is safe for
// concurrent use.
type failureLog struct {
	mu       sync.Mutex
	limiters map[schema.GroupResource]*rate.Limiter // never dropped: rules name few resources
}

// may reports whether a failure is to be told of, and counts it as told then.
func (l *failureLog) may(resource schema.GroupResource, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limiters == nil {
		l.limiters = map[schema.GroupResource]*rate.Limiter{}
	}
	limiter := l.limiters[resource]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Every(failureInterval), failureLines)
		l.limiters[resource] = limiter
	}
	return limiter.AllowN(now, 1)
}

// tellFailure logs what is tried again: not each attempt, nor each object.
func (e *Engine) tellFailure(logger klog.Logger, key Key, err error) {
	// The queue does not know what failed before the object was right for a moment.
	attempt := e.queue.NumRequeues(key) + 1
	if attempt == 1 && e.objects.tellFailure(key) && e.failureLog.may(key.Resource, time.Now()) {
		logger.Error(err, "Sync failed; trying again until it works")
		return
	}
	logger.V(2).Info("Sync failed", "err", err, "attempt", attempt)
}
