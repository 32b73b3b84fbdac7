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
)

func main() {
	size := flag.String("size", "", "large: 100,000 objects too")
	runs := flag.Int("runs", 5, "rounds of each measurement")
	only := flag.String("bench", "", "run only the scenarios that match this `PATTERN`")
	quick := flag.Bool("quick", false, "few objects, one round: does all of it work?")
	docs := flag.Bool("docs", false, "write docs/benchmarks.md and its images, after a complete run in 5 rounds or more")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := newPlan(*size, *quick, *runs, *only)
	if err == nil {
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
