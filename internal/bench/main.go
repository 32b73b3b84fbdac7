package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rectifier-dev/rectifier/internal/deployments"
)

func main() {
	size := flag.String("size", "", "large: 100,000 objects too")
	runs := flag.Int("runs", 5, "rounds of each measurement")
	only := flag.String("bench", "", "run only the scenarios that match this `PATTERN`")
	quick := flag.Bool("quick", false, "few objects, one round: does all of it work?")
	docs := flag.Bool("docs", false, "write docs/benchmarks.md and its images, after a complete run in 5 rounds or more")
	keep := flag.Int("keep", 0, "measure nothing: start an API server with this `NUMBER` of Deployments, for profiles by hand, and leave it up until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := newPlan(*size, *quick, *runs, *only)
	switch {
	case err != nil:
	case *keep > 0:
		err = keepUp(ctx, os.Stdout, p, *keep)
	default:
		err = benchmark(ctx, os.Stdout, p, func(r *report) error {
			fmt.Printf("\n%s", r.text())
			if *docs && r.complete() {
				return r.writeDocs(r.root)
			}
			return nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// keepUp leaves an API server with Deployments up until ctx ends.
func keepUp(ctx context.Context, out io.Writer, p plan, count int) error {
	s := &suite{plan: p, out: out, begun: time.Now()}
	return s.with(ctx, deployments.Small, func(ctx context.Context) error {
		if err := s.seed(ctx, count); err != nil {
			return err
		}
		s.tell("rectifier run --kubeconfig %s", s.plane.KubeconfigFile())
		<-ctx.Done()
		return nil
	})
}

// benchmark runs the plan, with progress to out, and reports.
func benchmark(ctx context.Context, out io.Writer, p plan, tell func(*report) error) (err error) {
	s := &suite{plan: p, out: out, begun: time.Now()}
	if s.root, err = moduleRoot(ctx); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "rectifier-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.run(ctx); err != nil {
		return err
	}
	return tell(newReport(ctx, s))
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
