package engine

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// lastWrites is how long a write may still take that has begun when the grace
// period is over.
const lastWrites = 2 * time.Second

// finish works off what is queued, within the grace period, and has the Events
// of it delivered. The informers go on until then: their handlers enqueue
// nothing any more, but what is decided late is decided on what is so then, and
// not on what was so when the shutdown began.
//
// When the period is over, the rest of the keys is left to whoever starts next,
// who looks at all objects. Writes that have begun get a moment more. When
// leading ends, nothing is finished.
func (e *Engine) finish(leading context.Context, workers *sync.WaitGroup, stop func()) {
	grace := e.opts.ShutdownGrace
	defer time.AfterFunc(grace, e.abandon).Stop()
	defer time.AfterFunc(grace+lastWrites, stop).Stop()
	defer context.AfterFunc(leading, func() {
		stop()
		e.abandon()
	})()
	e.recorder.hurry()
	e.queue.ShutDownWithDrain()
	workers.Wait()
	e.queue.ShutDown() // ends the goroutine of delayed keys at once
	if left := e.queue.Len(); left > 0 {
		klog.FromContext(leading).Info("Stopping before all that is queued has been looked at; the next start looks at all objects", "keys", left)
	}
	e.recorder.drain(leading)
}

// abandon has the workers take no more keys.
func (e *Engine) abandon() {
	e.abandoned.Store(true)
	e.queue.ShutDown()
}
