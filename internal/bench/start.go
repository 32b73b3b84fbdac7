package main

import (
	"context"
	"errors"
)

// heapWithoutObjects is what each reader takes before there is anything to read.
func (s *suite) heapWithoutObjects(ctx context.Context) error {
	return s.rounds(ctx, s.readers(), func(ctx context.Context, c contender) (err error) {
		p, err := s.start(c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		if _, err := p.settle(ctx); err != nil {
			return err
		}
		heap, err := p.heap(ctx)
		s.add(bareHeap, c.name, toMegabytes(heap))
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
