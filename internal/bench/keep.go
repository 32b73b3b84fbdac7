package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// maxChurn is far more than the API server takes.
const maxChurn = 100_000

// keepUp leaves an API server with Deployments up until ctx ends, says how to
// profile rectifier at it, and writes so many statuses a second meanwhile.
func keepUp(ctx context.Context, out io.Writer, p plan, count, rate int) error {
	s := &suite{plan: p, out: out, begun: time.Now()}
	return s.with(ctx, deployments.Small, func(ctx context.Context) error {
		if err := s.seed(ctx, count); err != nil {
			return err
		}
		fmt.Fprint(out, howToProfile(s.plane.KubeconfigFile(), rate))
		if rate == 0 {
			<-ctx.Done()
			return nil
		}
		return s.churnOn(ctx, rate)
	})
}

// howToProfile is what to type in another terminal, and how to end.
func howToProfile(kubeconfig string, rate int) string {
	doing := "Nothing changes; with -churn RATE something does."
	if rate > 0 {
		doing = fmt.Sprintf("%d updates of a status a second, in turn, that no built-in rule reads.", rate)
	}
	return fmt.Sprintf(`
%s In another terminal, at the root of the tree:

    make build
    bin/rectifier run --profiling --qps=-1 --kubeconfig %s

and in a third one, for what it does now, and for what it keeps:

    go tool pprof -top 'http://127.0.0.1:8080/debug/pprof/profile?seconds=20'
    go tool pprof -top -sample_index=inuse_space 'http://127.0.0.1:8080/debug/pprof/heap?gc=1'

For its start, begin this one first; it waits for rectifier:

    until curl -sfo start.prof 'http://127.0.0.1:8080/debug/pprof/profile?seconds=5'; do sleep 0.02; done
    go tool pprof -top start.prof

Ctrl-C here ends the API server and removes what it has stored.
`, doing, kubeconfig)
}

// churnOn writes statuses until ctx ends, and says each ten seconds how many a
// second the API server has taken.
func (s *suite) churnOn(ctx context.Context, rate int) error {
	for {
		l := load{count: 10 * rate, pace: rate, write: s.plane.heartbeat}
		begin := time.Now()
		err := s.writeAll(ctx, l)
		switch {
		case ctx.Err() != nil:
			return nil // interrupted
		case err != nil:
			return err
		}
		s.tell("%.0f updates a second", float64(l.count)/time.Since(begin).Seconds())
	}
}
