package main

import (
	"context"
	"fmt"
)

// loads are those of churn: a pace that a server keeps easily, the fastest that
// this machine can write, and updates that come faster than anybody can write them.
func (s *suite) loads(write func(ctx context.Context, i, n int) error) []load {
	return []load{
		s.steady(write),
		{name: "as fast as kube-apiserver takes them", count: s.fast, write: write},
		{name: fmt.Sprintf("%s at once", thousands(s.burst)), count: s.burst, burst: true, write: write},
	}
}

// Measures of updates that matter to nobody.
func irrelevant(load string) measure {
	return measure{"CPU per irrelevant update (status), " + load, microseconds}
}

func reached(load string) measure {
	return measure{"updates a second (status), " + load, perSecond}
}

// churn is what an update costs that matters to nobody, at several paces.
func (s *suite) churn(ctx context.Context) error {
	contenders := []contender{s.ours(), s.typedJSON(), s.typedProtobuf(), s.dynamic(deploymentsResource)}
	return s.rounds(ctx, contenders, func(ctx context.Context, c contender) error {
		_, err := s.whileIdle(ctx, c, s.churnOf)
		return err
	})
}

// churnOf measures all loads at a process that is idle.
func (s *suite) churnOf(ctx context.Context, p *process) error {
	idle, err := p.idleRate(ctx, idleFor)
	if err != nil {
		return err
	}
	for _, l := range s.loads(s.plane.heartbeat) {
		cost, err := s.updates(ctx, p, idle, l)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		s.add(irrelevant(l.name), p.name, toMicroseconds(cost.contender))
		if l.pace == 0 && !l.burst {
			s.add(reached(l.name), p.name, cost.rate)
		}
	}
	return nil
}
