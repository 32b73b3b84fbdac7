package gvr

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// countHolds is how long the number of objects in a store counts, for each of them. A store tells it only with a list
// of its keys, some 20 ns and 16 bytes for each. So counting takes 1/500 of the time at most, however often it is asked
// for, and small stores are counted each time.
const countHolds = 10 * time.Microsecond

// count is how many objects a store had a moment ago. It is safe for concurrent use: one counts, the others wait.
type count struct {
	mu      sync.Mutex
	objects int
	until   time.Time
}

func (c *count) of(store cache.Store, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.until) {
		return c.objects
	}
	c.objects = len(store.ListKeys())
	c.until = now.Add(time.Duration(c.objects) * countHolds)
	return c.objects
}
