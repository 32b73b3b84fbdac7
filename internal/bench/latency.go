package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// latency is how long after a drift the fix comes, both as the observer sees them,
// when nothing else is going on.
func (s *suite) latency(ctx context.Context) error {
	return s.rounds(ctx, []contender{s.ours(), s.typedJSON(), s.typedProtobuf()}, func(ctx context.Context, c contender) (err error) {
		p, err := s.start(c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		if _, err := p.settle(ctx); err != nil {
			return err
		}
		o, err := observe(ctx, s.plane.AdminConfig())
		if err != nil {
			return err
		}
		defer o.stop()
		times, err := s.driftsAlone(ctx, o)
		if err != nil {
			return err
		}
		slices.Sort(times)
		s.add(driftToFix50, c.name, quantile(times, 0.5))
		s.add(driftToFix99, c.name, quantile(times, 0.99))
		return nil
	})
}

// driftsAlone makes one object after the other wrong, and returns how many
// milliseconds each was.
func (s *suite) driftsAlone(ctx context.Context, o *observer) ([]float64, error) {
	var times []float64
	for i := range s.alone {
		failed := make(chan error, 1)
		go func() { failed <- s.plane.drift(ctx, i) }()
		both, err := o.take(ctx, 2)
		if err := errors.Join(err, <-failed); err != nil {
			return nil, err
		}
		if want := namespaceOf(i) + "/" + nameOf(i); both[0].name != want || both[1].name != want {
			return nil, fmt.Errorf("%s was made wrong, and %s and %s have changed", want, both[0].name, both[1].name)
		}
		times = append(times, toMilliseconds(both[1].at.Sub(both[0].at)))
		time.Sleep(pauseOfDrifts)
	}
	return times, nil
}

// pauseOfDrifts is the time between a fix and the next drift.
const pauseOfDrifts = 10 * time.Millisecond
