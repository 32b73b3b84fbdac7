package main

import (
	"context"
	"fmt"
	"time"
)

// A process is idle when it computes for less than idleShare of a time of
// idleTime.
const (
	idleTime  = 600 * time.Millisecond
	idleShare = 0.02
	poll      = 50 * time.Millisecond
)

// settled is what a contender has needed until it had nothing more to do.
type settled struct {
	ready time.Duration // since its start
	cpu   time.Duration // over all cores, its start included
}

// settle waits until a contender is ready, and then idle: that it has read the
// objects does not mean that it has looked at them.
func (p *process) settle(ctx context.Context) (settled, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var s settled
	for {
		if _, err := p.get(ctx, "/readyz"); err == nil {
			break
		} else if err := p.pause(ctx); err != nil {
			return s, fmt.Errorf("wait until %s is ready: %w", p.name, err)
		}
	}
	s.ready = time.Since(p.started)
	var err error
	s.cpu, err = p.idle(ctx)
	return s, err
}

// idle waits until the process is, and returns the processor time that it has
// needed by then.
func (p *process) idle(ctx context.Context) (time.Duration, error) {
	for {
		before, err := p.cpu()
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		for time.Since(begin) < idleTime {
			if err := p.pause(ctx); err != nil {
				return 0, fmt.Errorf("wait until %s is idle: %w", p.name, err)
			}
		}
		after, err := p.cpu()
		if err != nil {
			return 0, err
		}
		if after-before < time.Duration(float64(time.Since(begin))*idleShare) {
			return before, nil
		}
	}
}

// pause waits a little, unless the process has ended.
func (p *process) pause(ctx context.Context) error {
	select {
	case <-p.done:
		return p.failed()
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(poll):
		return nil
	}
}

// idleRate is how much the process computes in a second with nothing to do.
func (p *process) idleRate(ctx context.Context, during time.Duration) (time.Duration, error) {
	before, err := p.cpu()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for time.Since(begin) < during {
		if err := p.pause(ctx); err != nil {
			return 0, err
		}
	}
	after, err := p.cpu()
	return time.Duration(float64(after-before) / time.Since(begin).Seconds()), err
}
