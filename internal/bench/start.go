package main

import (
	"context"
	"errors"
)

// heapWithoutObjects is what each reader takes before there is anything to read.
func (s *suite) heapWithoutObjects(ctx context.Context) error {
	return s.heapBefore(ctx, bareHeap, s.few(), s.readers())
}

// heapBefore notes what contenders take before there is anything to read.
func (s *suite) heapBefore(ctx context.Context, bare measure, rounds int, contenders []contender) error {
	return s.takeTurns(ctx, rounds, contenders, func(ctx context.Context, c contender) error {
		_, err := s.whileIdle(ctx, c, func(ctx context.Context, p *process) error {
			heap, err := p.heap(ctx)
			s.add(bare, c.name, toMegabytes(heap))
			return err
		})
		return err
	})
}

// startToFirstFix is how long it takes from the start of the process until the
// only object is right.
func (s *suite) startToFirstFix(ctx context.Context) error {
	return s.rounds(ctx, []contender{s.ours(), s.typedJSON(), s.typedProtobuf()}, func(ctx context.Context, c contender) (err error) {
		if err := s.plane.drift(ctx, 0); err != nil {
			return err
		}
		o, err := observe(ctx, s.plane.AdminConfig())
		if err != nil {
			return err
		}
		defer o.stop()
		p, err := s.start(c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		fix, err := o.next(ctx)
		if err != nil {
			return err
		}
		s.add(firstFix, c.name, fix.at.Sub(p.started).Seconds())
		return nil
	})
}
