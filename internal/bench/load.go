package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// load is a series of updates.
type load struct {
	name  string // as the measures have it
	count int
	pace  int  // updates a second; 0: as fast as the API server takes them
	burst bool // the contender is stopped meanwhile, so that they arrive at once
	write func(ctx context.Context, i, n int) error
}

// steady is a load at the pace of the plan.
func (s *suite) steady(write func(ctx context.Context, i, n int) error) load {
	return load{name: s.steadyName(), count: s.events, pace: s.pace, write: write}
}

func (p plan) steadyName() string { return fmt.Sprintf("%s a second", thousands(p.pace)) }

// idleFor is how long a contender is watched doing nothing.
const idleFor = time.Second

// whileIdle starts a contender, waits until it has nothing to do, and has do
// measure something at it.
func (s *suite) whileIdle(ctx context.Context, c contender, do func(context.Context, *process) error) (needed settled, err error) {
	p, err := s.start(c)
	if err != nil {
		return needed, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if needed, err = p.settle(ctx); err != nil {
		return needed, err
	}
	return needed, do(ctx, p)
}

// updateCost is what one update takes.
type updateCost struct {
	contender time.Duration // processor time, less what it needs with nothing to do
	server    time.Duration // that of kube-apiserver, the write included
	rate      float64       // updates a second, as written
}

// costOf is updates at a process that is idle.
func (s *suite) costOf(ctx context.Context, p *process, l load) (cost updateCost, err error) {
	idle, err := p.idleRate(ctx, idleFor)
	if err != nil {
		return cost, err
	}
	return s.updates(ctx, p, idle, l)
}

// updates makes a load, and returns what each of its updates costs. idle is how
// much the process, or nobody (nil), computes in a second with nothing to do.
func (s *suite) updates(ctx context.Context, p *process, idle time.Duration, l load) (cost updateCost, err error) {
	before, err := p.computed()
	if err != nil {
		return cost, err
	}
	serverBefore, err := s.plane.cpuOf(apiServer)
	if err != nil {
		return cost, err
	}
	begin := time.Now()
	if l.burst {
		err = s.writeInBurst(ctx, p, l)
	} else {
		err = s.writeAll(ctx, l)
	}
	if err != nil {
		return cost, err
	}
	written := time.Since(begin)
	if l.burst {
		begin = time.Now() // it did not run until now
	}
	if err := p.rest(ctx); err != nil {
		return cost, err
	}
	ran := time.Since(begin)
	after, err := p.computed()
	if err != nil {
		return cost, err
	}
	serverAfter, err := s.plane.cpuOf(apiServer)
	if err != nil {
		return cost, err
	}
	each := time.Duration(l.count)
	return updateCost{
		contender: (after - before - time.Duration(float64(idle)*ran.Seconds())) / each,
		server:    (serverAfter - serverBefore) / each,
		rate:      float64(l.count) / written.Seconds(),
	}, nil
}

// writeInBurst stops a process while a load is written, so that all of it waits
// for the process in the buffers of its connection. These do not hold much, and the
// API server ends a watch that does not take what it sends: that is an error, since
// the process would read everything again.
func (s *suite) writeInBurst(ctx context.Context, p *process, l load) error {
	before, err := s.plane.requests(ctx)
	if err != nil {
		return err
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop %s for a while: %w", p.name, err)
	}
	err = s.writeAll(ctx, l)
	after, countErr := s.plane.requests(ctx)
	if err := errors.Join(err, countErr, p.cmd.Process.Signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("write %d updates in a burst: %w", l.count, err)
	}
	if ended := of(since(before, after), "WATCH", deploymentsResource.Resource); ended > 0 {
		return fmt.Errorf("the API server has ended %d watches: %d updates are too many to wait", ended, l.count)
	}
	return nil
}

// computed is the processor time of a process so far, and nobody's is none.
func (p *process) computed() (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	return p.cpu()
}

// rest waits until a process is idle. For nobody it waits as long as for a process
// that already is.
func (p *process) rest(ctx context.Context) error {
	if p != nil {
		_, err := p.idle(ctx)
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleTime):
		return nil
	}
}
