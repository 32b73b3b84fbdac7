package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// What Once returns besides nil: it could not do all that the rules say.
var (
	// ErrUnreachable: the cluster could not be reached, or did not allow what
	// the rules need.
	ErrUnreachable = errors.New("the cluster could not be reached or refused")
	// ErrForbidden is the case of ErrUnreachable in which permissions to list or
	// watch are missing.
	ErrForbidden = fmt.Errorf("%w", ErrUnreachable)
	// ErrParked: rules could not run, because what they name is not there.
	ErrParked = errors.New("rules did nothing")
)

// Shortfall is an error that lists what could not be done; it wraps one of the
// above.
type Shortfall struct {
	kind  error
	Lines []string // one for each resource, or rule on a resource
}

func (s *Shortfall) Error() string {
	return fmt.Sprintf("%v:\n  %s", s.kind, strings.Join(s.Lines, "\n  "))
}

// Unwrap returns ErrParked, ErrForbidden or ErrUnreachable.
func (s *Shortfall) Unwrap() error { return s.kind }

// onceGrace is how long the end of Once may take.
const onceGrace = 2 * time.Second

// reachTimeout is how long Once waits for a first answer of the cluster.
const reachTimeout = 30 * time.Second

// tellAfter is how long Once waits for that before it tells.
const tellAfter = 2 * time.Second

// Reached reports whether the cluster has said what it serves.
func (e *Engine) Reached() bool { return e.informers.Discovered() }

// unreached is the error of a cluster that was waited for in vain.
func (e *Engine) unreached(waited time.Duration) error {
	reason, refused := e.informers.DiscoveryFailure()
	switch {
	case refused:
		return fmt.Errorf("%w: discovery: %s", ErrUnreachable, reason)
	case reason == "":
		reason = "there was no answer"
	}
	return fmt.Errorf("%w: discovery did not succeed in %v: %s", ErrUnreachable, waited, reason)
}

// Once evaluates every object once, writes what is wrong, sees the writes in
// its cache, and returns. The error says what could not be done; everything
// else has been.
func (e *Engine) Once(ctx context.Context) (Summary, error) {
	e.pending = newPending()
	e.opts.ShutdownGrace = onceGrace // what was not settled in time is not waited for again
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- e.Run(running) }()

	err := e.settled(running, done)
	if err == nil {
		err = e.shortfall()
	}
	stop()
	if runErr := <-done; err == nil {
		err = runErr
	}
	return e.tally.summary(), err
}

// settled waits until all that rules need is there or known not to be, and
// every object has been looked at since.
func (e *Engine) settled(ctx context.Context, done chan error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	reach, tell := time.After(reachTimeout), time.After(tellAfter)
	again := false
	for {
		select {
		case <-reach:
			if !e.informers.Discovered() {
				return e.unreached(reachTimeout)
			}
		case <-tell:
			if !e.informers.Discovered() {
				reason, _ := e.informers.DiscoveryFailure()
				klog.FromContext(ctx).Info("Waiting for the cluster", "reason", reason, "atMost", reachTimeout)
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: not done in time: %s", ErrUnreachable, cmp.Or(e.unfinished(), e.pending.left()))
		case err := <-done:
			done <- err
			if err == nil && ctx.Err() != nil { // both are ready: it ended because of that
				return fmt.Errorf("%w: not done in time: %s", ErrUnreachable, cmp.Or(e.unfinished(), e.pending.left()))
			}
			return err
		case <-tick.C:
		}
		if _, refused := e.informers.DiscoveryFailure(); refused {
			return e.unreached(0)
		}
		switch {
		case e.unfinished() != "" || !e.pending.idle():
		case !again:
			// Objects may have been looked at before what their rules look up
			// was there. Now it is.
			again = true
			for _, resource := range e.rules().Resources() {
				e.enqueueAll(resource)
			}
		default:
			return nil
		}
	}
}

// unfinished says what is still on its way; empty: nothing.
func (e *Engine) unfinished() string {
	if !e.informers.Discovered() {
		if reason, _ := e.informers.DiscoveryFailure(); reason != "" {
			return "discovery has not succeeded: " + reason
		}
		return "discovery has not succeeded"
	}
	for _, s := range e.informers.Status() {
		if s.State == gvr.Syncing || s.State == gvr.Failing {
			return strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", rules.ResourceName(s.Resource), s.State, s.Reason), ": ")
		}
		if e.informers.Rereads(s.Resource) {
			return rules.ResourceName(s.Resource) + " is read again, with more fields"
		}
	}
	for _, resource := range e.needSchemas() {
		if _, served := e.informers.Info(resource); served && !e.schemas.asked(resource) {
			return "the schema of " + rules.ResourceName(resource) + " has not been read"
		}
	}
	return ""
}

// shortfall says what could not be done for want of a permission or of a
// resource; nil: nothing. refused are lines about what the cluster has refused.
func (e *Engine) shortfall(refused ...string) error {
	var absent []string
	kind := ErrUnreachable
	for _, s := range e.informers.Status() {
		if len(e.rules().For(s.Resource)) == 0 {
			continue // what that means is told with the rules that need it
		}
		line := fmt.Sprintf("%s: %s%s", rules.ResourceName(s.Resource), s.Reason, e.consequence(s))
		switch s.State {
		case gvr.Forbidden:
			if info, served := e.informers.Info(s.Resource); served && !info.Namespaced && len(e.opts.Namespaces) > 0 {
				absent = append(absent, line) // not asked for
				continue
			}
			kind = ErrForbidden
			refused = append(refused, fmt.Sprintf("%s: may not %s%s", rules.ResourceName(s.Resource), s.Reason, e.consequence(s)))
		case gvr.Waiting:
			absent = append(absent, line)
		}
	}
	unfit := e.unfitRules()
	absent = append(absent, unfit...)
	parked := slices.DeleteFunc(e.parkedRules(), func(line string) bool { return slices.Contains(unfit, line) })
	if len(e.opts.Namespaces) > 0 && len(refused) == 0 && len(e.permissions.list()) == 0 && !e.denied() {
		absent = append(absent, parked...)
	} else {
		refused = append(refused, parked...)
	}
	if e.denied() || len(e.permissions.list()) > 0 {
		kind = ErrForbidden
	}
	switch {
	case len(refused) > 0:
		return &Shortfall{kind, append(refused, absent...)}
	case len(absent) > 0:
		return &Shortfall{ErrParked, absent}
	}
	return nil
}

// denied reports whether a permission is missing to read what is looked up.
func (e *Engine) denied() bool {
	return slices.ContainsFunc(e.informers.Status(), func(s gvr.Status) bool {
		info, served := e.informers.Info(s.Resource)
		return s.State == gvr.Forbidden && s.Resource != namespaces && served && (info.Namespaced || len(e.opts.Namespaces) == 0)
	})
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

// left tells how much is not settled.
func (p *pending) left() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return objectCount(len(p.keys)) + " not settled yet"
}

func (p *pending) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.keys) == 0
}
