package engine

import (
	"maps"
	"sync"
	"time"
)

// driftBuckets go from a fix that meets no obstacle to one that has waited for
// an outage.
var driftBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// arrivals knows since when keys have been waiting to be looked at, for the time
// from drift to fix.
//
// That time begins with the first event since the object was last looked at with
// success, whatever its decision: an event that needed no fix, or whose change is
// held, ends there. What is tried again (a conflict, an API server that does not
// take it now, a cache that is behind) keeps its time. Where no event brought the
// drift, but time or the end of a hold, it begins with the object's turn.
//
// Only keys in the queue, or on their way back into it, take memory: the map is
// replaced when most of what was in it has gone, because maps do not shrink, and
// there are very many keys once, when a large cluster is first listed. It is safe
// for concurrent use; the zero value is ready.
type arrivals struct {
	mu   sync.Mutex
	at   map[Key]time.Time
	most int // that at has held
}

const (
	// smallArrivals is how many keys a map may have held that is not replaced.
	smallArrivals = 1024
	// arrivalsLeft is the part of them, 1 of so many, that is moved to a new one:
	// so few that on average a key costs no more by that.
	arrivalsLeft = 8
)

// note notes an event.
func (a *arrivals) note(key Key) { a.begin(key, time.Now()) }

// again notes that a key is tried again which has waited since then.
func (a *arrivals) again(key Key, since time.Time) { a.begin(key, since) }

func (a *arrivals) begin(key Key, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == nil {
		a.at = map[Key]time.Time{}
	}
	if was, ok := a.at[key]; !ok || at.Before(was) {
		a.at[key] = at
		a.most = max(a.most, len(a.at))
	}
}

// take begins to look at a key: it returns since when that has been waiting.
// Events that come from now on are others.
func (a *arrivals) take(key Key) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.at[key]
	if !ok {
		return time.Now()
	}
	delete(a.at, key)
	if left := len(a.at); a.most > smallArrivals && left <= a.most/arrivalsLeft {
		smaller := make(map[Key]time.Time, left)
		maps.Copy(smaller, a.at)
		a.at, a.most = smaller, left
	}
	return at
}

// len is how many keys are waiting.
func (a *arrivals) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

// countDrift counts how long an object was wrong until a request was accepted.
func (d *decision) countDrift() {
	d.metrics.drift.WithLabelValues(d.key.Resource.String()).Observe(time.Since(d.since).Seconds())
}
