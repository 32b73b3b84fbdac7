package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// ErrUnreachable is what Once returns when the cluster could not be reached,
// or did not let the engine read what the rules need.
var ErrUnreachable = errors.New("the cluster could not be reached or refused")

// reachTimeout is how long Once waits for a first answer of the cluster.
const reachTimeout = 30 * time.Second

// Once evaluates every object once, writes what is wrong, sees the writes in
// its cache, and returns. Resources that are not served are passed over; one
// that may not be read, or a ctx that ends before all is done, is
// ErrUnreachable.
func (e *Engine) Once(ctx context.Context) (Summary, error) {
	e.pending = newPending()
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- e.Run(running) }()

	err := e.settled(running, done)
	stop()
	if runErr := <-done; err == nil {
		err = runErr
	}
	return e.tally.summary(), err
}

// settled waits until every resource is synced or parked, and every key is
// settled.
func (e *Engine) settled(ctx context.Context, done chan error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	reach := time.After(reachTimeout)
	for {
		select {
		case <-reach:
			if !e.informers.Discovered() {
				return fmt.Errorf("%w: %s", ErrUnreachable, e.unfinished())
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ErrUnreachable, e.unfinished())
		case err := <-done:
			done <- err
			return err
		case <-tick.C:
		}
		if !e.informers.Discovered() {
			continue
		}
		ready, refused := true, ""
		for _, s := range e.informers.Status() {
			switch s.State {
			case gvr.Syncing, gvr.Failing:
				ready = false
			case gvr.Forbidden:
				refused = fmt.Sprintf("%s: %s", rules.ResourceName(s.Resource), s.Reason)
			}
		}
		if !ready || !e.pending.idle() {
			continue
		}
		if refused != "" {
			return fmt.Errorf("%w: %s", ErrUnreachable, refused)
		}
		return nil
	}
}

func (e *Engine) unfinished() string {
	if !e.informers.Discovered() {
		return "discovery did not succeed in time"
	}
	for _, s := range e.informers.Status() {
		if s.State == gvr.Syncing || s.State == gvr.Failing {
			return fmt.Sprintf("%s is %s: %s", rules.ResourceName(s.Resource), s.State, s.Reason)
		}
	}
	for r, subresources := range e.parked.missing() {
		return fmt.Sprintf("patch %s %q is forbidden", rules.ResourceName(r), subresources)
	}
	return "not everything could be settled in time"
}

// pending knows the keys that are not settled: queued, being worked on,
// waiting for a retry, or for the cache to hold what was written. A nil
// *pending knows nothing and costs nothing: only Once needs it.
type pending struct {
	mu   sync.Mutex
	keys map[Key]int // how often it was enqueued
}

func newPending() *pending { return &pending{keys: map[Key]int{}} }

// begin notes that a key was enqueued.
func (p *pending) begin(key Key) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[key]++
}

// mark is how often a key has been enqueued so far.
func (p *pending) mark(key Key) int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[key]
}

// settle notes that there is nothing more to do for a key, unless it has been
// enqueued since mark.
func (p *pending) settle(key Key, mark int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys[key] == mark {
		delete(p.keys, key)
	}
}

func (p *pending) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.keys) == 0
}
