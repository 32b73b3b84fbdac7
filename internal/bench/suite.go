package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// suite is one run of the benchmark.
type suite struct {
	plan
	results
	dir        string // of the programs and their logs
	root       string // of the module
	out        io.Writer
	begun      time.Time
	plane      *plane // the one that runs
	written    int    // writes that had a number
	kubernetes string // version of the API server
	commit     string // of the tree, when it was built
}

// run measures all.
func (s *suite) run(ctx context.Context) error {
	if err := s.build(ctx); err != nil {
		return err
	}
	if s.wants(scenarioOffline) {
		if err := s.offlineFix(ctx); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		scenarios []string
		size      deployments.Size
		do        func(context.Context) error
	}{
		{smallScenarios, deployments.Small, s.smallObjects},
		{[]string{scenarioCustom, scenarioPods}, deployments.Small, s.otherKinds},
		{[]string{scenarioLarge}, deployments.Large, s.largeObjects},
	} {
		if !slices.ContainsFunc(part.scenarios, s.wants) {
			continue
		}
		if err := s.with(ctx, part.size, part.do); err != nil {
			return err
		}
	}
	return nil
}

// smallScenarios are those with Deployments of 3.5 KB.
var smallScenarios = []string{
	scenarioEmpty, scenarioStart, scenarioSync, scenarioLatency, scenarioEvents, scenarioRules, scenarioWire, scenarioServer, scenarioChurn, scenarioDrift,
}

func (s *suite) largeObjects(ctx context.Context) error {
	if err := s.seed(ctx, s.large); err != nil {
		return err
	}
	return s.sync(ctx, reading{objects: objects(s.large, deployments.Large), count: s.large, contenders: s.readers()})
}

// smallObjects is all that is done with Deployments of 3.5 KB, whose number grows.
func (s *suite) smallObjects(ctx context.Context) error {
	for _, step := range []struct {
		scenario string
		objects  int
		do       func(context.Context) error
	}{
		{scenarioEmpty, 0, s.heapWithoutObjects},
		{scenarioStart, 1, s.startToFirstFix},
		{scenarioLatency, s.small(), s.latency},
		{scenarioEvents, s.small(), s.fixesWithEvents},
		{scenarioRules, s.small(), s.rules},
		{scenarioWire, s.middle(), s.wire},
		{scenarioServer, s.middle(), s.server},
		{scenarioChurn, s.middle(), s.churn},
		{scenarioDrift, s.middle(), s.manyDrifts},
	} {
		if err := s.syncUpTo(ctx, step.objects); err != nil {
			return err
		}
		if !s.wants(step.scenario) {
			continue
		}
		if err := s.seed(ctx, step.objects); err != nil {
			return err
		}
		s.tell("== %s", step.scenario)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.scenario, err)
		}
	}
	return s.syncUpTo(ctx, s.largest())
}

// syncUpTo measures the sync of all numbers of objects that are not above count
// and have not been reached yet.
func (s *suite) syncUpTo(ctx context.Context, count int) error {
	if !s.wants(scenarioSync) {
		return nil
	}
	for _, n := range s.sizes {
		if n > count || n <= s.plane.seeded {
			continue
		}
		if err := s.seed(ctx, n); err != nil {
			return err
		}
		readers := s.readers()
		if n != s.largest() && n != s.reference() {
			readers = s.plotted()
		}
		if err := s.sync(ctx, reading{objects: objects(n, deployments.Small), count: n, contenders: readers}); err != nil {
			return err
		}
	}
	return nil
}

// with runs do with an API server whose Deployments are of one size.
func (s *suite) with(ctx context.Context, size deployments.Size, do func(context.Context) error) (err error) {
	s.tell("starting an API server")
	if s.plane, err = startPlane(ctx, size); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.plane.Stop()) }()
	version, err := s.plane.client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask for the version of the API server: %w", err)
	}
	s.kubernetes = version.GitVersion
	return do(ctx)
}

// build builds rectifier and the other contenders as they are in the tree.
func (s *suite) build(ctx context.Context) error {
	s.tell("building the contenders")
	build := exec.CommandContext(ctx, "go", "build", "-o", s.dir+string(os.PathSeparator),
		"./cmd/rectifier", "./internal/bench/typed", "./internal/bench/dynamic", "./internal/bench/patchloop", "./internal/bench/cache")
	build.Dir = s.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the contenders: %w\n%s", err, out)
	}
	return nil
}

// rounds lets contenders take turns. Who begins differs from round to round.
func (s *suite) rounds(ctx context.Context, contenders []contender, measure func(context.Context, contender) error) error {
	return s.takeTurns(ctx, s.runs, contenders, measure)
}

// takeTurns is rounds, so many of them.
func (s *suite) takeTurns(ctx context.Context, rounds int, contenders []contender, measure func(context.Context, contender) error) error {
	for round := range rounds {
		for i := range contenders {
			c := contenders[(i+round)%len(contenders)]
			if err := s.plane.quiet(ctx, s.tell); err != nil {
				return err
			}
			if err := measure(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		s.tell("round %d of %d is done", round+1, rounds)
	}
	return nil
}

// tell writes a line of progress.
func (s *suite) tell(format string, args ...any) {
	fmt.Fprintf(s.out, "%5.0f s  %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

// progress writes a line now and then, until it is stopped.
func (s *suite) progress(line func() string) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s.tell("%s", line())
			}
		}
	}()
	return func() { close(done) }
}

// objects names a number of objects of a size.
func objects(count int, size deployments.Size) string {
	what := "3.5 KB"
	if size == deployments.Large {
		what = "16 KB"
	}
	return thousands(count) + " of " + what
}

// thousands is 20,000 for 20000.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
