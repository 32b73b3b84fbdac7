package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// fixWatcher prints the Events that Rectifier writes on objects, as
// `kubectl get events --watch` would: each new one, and each repetition.
type fixWatcher struct {
	out    *screen
	watch  watch.Interface
	done   chan struct{}
	mu     sync.Mutex
	zero   time.Time
	before map[string][]time.Time // when an object was disturbed: what is not fixed yet
	warned []string               // the titles of objects that got a Warning, in that order
}

func watchFixes(ctx context.Context, c *cluster, out *screen) (*fixWatcher, error) {
	w, err := c.kubernetes.EventsV1().Events(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch Events: %w", err)
	}
	f := &fixWatcher{out: out, watch: w, done: make(chan struct{}), before: map[string][]time.Time{}}
	go f.run()
	return f, nil
}

// start sets the clock to zero.
func (f *fixWatcher) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.zero = time.Now()
}

// elapsed is the time since start, as it is printed.
func (f *fixWatcher) elapsed(t time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%7.3f s", t.Sub(f.zero).Seconds())
}

// disturbed notes when somebody changed an object.
func (f *fixWatcher) disturbed(title string, t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[title] = append(f.before[title], t)
}

// took is how long after its disturbance an object was fixed; empty: it was not
// disturbed.
func (f *fixWatcher) took(title string, t time.Time) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	waiting := f.before[title]
	if len(waiting) == 0 || t.Before(waiting[0]) {
		return ""
	}
	f.before[title] = waiting[1:]
	return fmt.Sprintf("after %d ms", t.Sub(waiting[0]).Milliseconds())
}

// untold counts the disturbances of which no repair has been told.
func (f *fixWatcher) untold() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, waiting := range f.before {
		n += len(waiting)
	}
	return n
}

func (f *fixWatcher) run() {
	defer close(f.done)
	for e := range f.watch.ResultChan() {
		event, ok := e.Object.(*eventsv1.Event)
		switch {
		case !ok:
		case e.Type == watch.Added:
			f.print(event, event.EventTime.Time)
		case e.Type == watch.Modified && event.Series != nil:
			// The same was done once more: that is counted on the first Event.
			f.print(event, event.Series.LastObservedTime.Time)
		}
	}
}

func (f *fixWatcher) print(e *eventsv1.Event, at time.Time) {
	title := strings.ToLower(e.Regarding.Kind) + "/" + e.Regarding.Name
	mark := f.out.good("✓")
	note := e.Note
	if e.Type == corev1.EventTypeWarning {
		mark = f.out.warn("!")
		f.mu.Lock()
		f.warned = append(f.warned, title)
		f.mu.Unlock()
	} else if took := f.took(title, at); took != "" {
		note += " " + f.out.dim(took)
	}
	f.out.line("  %s %s %-20s  %-17s %s", f.elapsed(at), mark, title, e.Reason, note)
}

// warnings are the objects that got a Warning so far.
func (f *fixWatcher) warnings() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.warned)
}

func (f *fixWatcher) stop() {
	f.watch.Stop()
	<-f.done
}
