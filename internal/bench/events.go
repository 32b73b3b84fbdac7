package main

import "context"

// Measures of fixes that come so slowly that none of their Events is held back.
var (
	fixCPUWithEvents = measure{"CPU per fix, 10 a second, one after the other", microseconds}
	eventsOfSlowFix  = measure{"Events written per fix, 10 a second", number}
)

// eventsPace is how many Events a second rectifier writes for long; of more fixes,
// most have none.
const eventsPace = 10

// fixesWithEvents is what a fix costs with its Event: in a storm of drifts most are
// not told of. Rectifier may write as much as it may by default.
func (s *suite) fixesWithEvents(ctx context.Context) error {
	contenders := []contender{s.rectifier(ours, "--qps=10"), s.typedJSON()}
	return s.takeTurns(ctx, s.few(), contenders, func(ctx context.Context, c contender) error {
		before, err := s.plane.requests(ctx)
		if err != nil {
			return err
		}
		_, err = s.whileIdle(ctx, c, func(ctx context.Context, p *process) error {
			cost, err := s.costOf(ctx, p, load{count: s.each, pace: eventsPace, write: func(ctx context.Context, i, _ int) error {
				return s.plane.drift(ctx, i)
			}})
			s.add(fixCPUWithEvents, c.name, toMicroseconds(cost.contender))
			return err
		})
		if err != nil {
			return err
		}
		after, err := s.plane.requests(ctx)
		if err != nil {
			return err
		}
		s.add(eventsOfSlowFix, c.name, float64(eventsIn(since(before, after)))/float64(s.each))
		return s.allRight(ctx)
	})
}

// eventsIn counts the writes of Events.
func eventsIn(counts map[request]int) int {
	return of(counts, "POST", "events") + of(counts, "PATCH", "events")
}
