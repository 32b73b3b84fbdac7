package engine

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// What is done for one object, or for one resource, may panic without harm to
// the others: it is an error of that object, counted and logged. In a loop that
// all objects depend on, a panic ends the process: it is started again, where a
// loop that is gone would be missed by nobody.

// stackInterval is how often the stack of the same panic is logged.
const stackInterval = 10 * time.Minute

// panics remembers which panics have been logged with their stacks. It is safe
// for concurrent use.
type panics struct {
	mu   sync.Mutex
	told map[string]time.Time // by where they come from
}

// news reports whether a panic's stack has not been logged lately.
func (p *panics) news(where string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.told[where]; ok && now.Sub(last) < stackInterval {
		return false
	}
	if p.told == nil {
		p.told = map[string]time.Time{}
	}
	p.told[where] = now
	return true
}

// panicked counts and logs a panic, and makes an error of it. It is called with
// what a deferred function has recovered, from that function.
func (e *Engine) panicked(logger klog.Logger, resource schema.GroupResource, recovered any) error {
	e.metrics.panics.WithLabelValues(resource.String()).Inc()
	where := panicOrigin()
	what := fmt.Sprintf("panicked: %s at %s", describePanic(recovered), where)
	if e.panics.news(where, time.Now()) {
		logger.Error(nil, "Panic", "what", what, "stack", string(debug.Stack()))
	}
	return fmt.Errorf("%s", what)
}

// contain keeps a panic of an event handler from ending the process, with the
// object that it was about. It is to be deferred.
func (e *Engine) contain(resource schema.GroupResource, obj any) {
	if p := recover(); p != nil {
		logger := klog.Background().WithValues("resource", resource)
		if o := unwrap(obj); o != nil {
			logger = logger.WithValues("object", klog.KRef(o.Namespace(), o.Name()))
		}
		_ = e.panicked(logger, resource, p)
	}
}

// describePanic tells of a panic's value what cannot hold an object's content:
// the runtime's own texts name types and indexes.
func describePanic(recovered any) string {
	if err, ok := recovered.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a value of type %T", recovered)
}

// panicOrigin is the function, file and line that panicked.
func panicOrigin() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%s (%s:%d)", frame.Function, frame.File, frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
