package main

import (
	"context"
	"errors"
	"time"
)

// idleFor is how long a contender is watched doing nothing.
const idleFor = time.Second

// churn is what an update costs that matters to nobody: status heartbeats at a
// steady pace.
func (s *suite) churn(ctx context.Context) error {
	contenders := []contender{s.ours(), s.typedJSON(), s.typedProtobuf(), {name: plainDynamic, program: "dynamic"}}
	return s.rounds(ctx, contenders, func(ctx context.Context, c contender) error {
		cost, err := s.costOf(ctx, c, s.plane.heartbeat)
		s.add(irrelevant, c.name, toMicroseconds(cost.perEvent))
		return err
	})
}

// eventCost is what a contender needs for updates.
type eventCost struct {
	settled
	perEvent time.Duration // processor time, less what it needs with nothing to do
	peak     float64       // bytes
}

// costOf makes updates at the pace of the plan, and returns what they cost a
// contender.
func (s *suite) costOf(ctx context.Context, c contender, write func(ctx context.Context, i, n int) error) (cost eventCost, err error) {
	p, err := s.start(c)
	if err != nil {
		return cost, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if cost.settled, err = p.settle(ctx); err != nil {
		return cost, err
	}
	idle, err := p.idleRate(ctx, idleFor)
	if err != nil {
		return cost, err
	}
	before, err := p.cpu()
	if err != nil {
		return cost, err
	}
	took, err := s.steadily(ctx, s.events, write)
	if err != nil {
		return cost, err
	}
	after, more, err := p.rest(ctx)
	if err != nil {
		return cost, err
	}
	cost.perEvent = (after - before - time.Duration(float64(idle)*(took+more).Seconds())) / time.Duration(s.events)
	cost.peak, err = p.peak()
	return cost, err
}

// rest waits until the process is idle, and returns its processor time by then, and
// how long that took.
func (p *process) rest(ctx context.Context) (cpu, took time.Duration, err error) {
	begin := time.Now()
	if _, err := p.idle(ctx); err != nil {
		return 0, 0, err
	}
	took = time.Since(begin)
	cpu, err = p.cpu()
	return cpu, took, err
}
