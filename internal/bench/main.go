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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2) // the flag set has said why
	}
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	size, only               string
	runs, keep, churn        int
	quick, docs, evenChanged bool
}

// parse reads the command line. What is wrong with it, or help, is written to out.
func parse(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.size, "size", "", "`large` for 100,000 objects, too")
	f.IntVar(&o.runs, "runs", 5, "`ROUNDS` of each measurement")
	f.StringVar(&o.only, "bench", "", "run only these `SCENARIOS`, such as 'churn' or 'sync|large': a pattern of whole names")
	f.BoolVar(&o.quick, "quick", false, "few objects, one round: does all of it work?")
	f.BoolVar(&o.docs, "docs", false, "write docs/benchmarks.md and its images, if the run is a complete one in 5 rounds or more; a tree with changes is refused")
	f.BoolVar(&o.evenChanged, "force", false, "write them of a tree with changes, too")
	f.IntVar(&o.keep, "keep", 0, "measure nothing: start an API server with this `NUMBER` of Deployments, for profiles by hand, and leave it up until interrupted")
	f.IntVar(&o.churn, "churn", 0, "with -keep: so many updates of a status a second, until interrupted (`RATE`)")
	f.Usage = func() {
		fmt.Fprintf(out, "Usage: bench [flags], in the tree of rectifier\n\n")
		f.PrintDefaults()
		fmt.Fprintf(out, "\nScenarios:\n%s", strings.ReplaceAll(scenarioList("  %-9s %s\n"), "`", ""))
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if err := o.check(f.Args()); err != nil {
		fmt.Fprintln(out, "bench:", err)
		return o, err
	}
	return o, nil
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag", rest[0])
	case o.keep < 0 || o.churn < 0:
		return errors.New("-keep and -churn are not negative")
	case o.churn > 0 && o.keep == 0:
		return errors.New("-churn is for -keep")
	case o.churn > maxChurn:
		return fmt.Errorf("-churn is at most %d", maxChurn)
	}
	return nil
}

// run does what the command line says.
func (o options) run(ctx context.Context, out io.Writer) error {
	p, err := newPlan(o.size, o.quick, o.runs, o.only)
	if err != nil {
		return err
	}
	if o.keep > 0 {
		return keepUp(ctx, out, p, o.keep, o.churn)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	write := o.docs && p.complete()
	if write && !o.evenChanged {
		if err := reproducible(ctx, root); err != nil {
			return fmt.Errorf("docs/benchmarks.md is to be of a commit, so that it can be measured again (FORCE=1 if not): %w", err)
		}
	}
	return benchmark(ctx, out, root, p, func(r *report) error {
		fmt.Fprintf(out, "\n%s", r.text())
		if write {
			return r.writeDocs(root)
		}
		return nil
	})
}

// benchmark runs the plan, with progress to out, and reports.
func benchmark(ctx context.Context, out io.Writer, root string, p plan, tell func(*report) error) (err error) {
	s := &suite{plan: p, out: out, begun: time.Now(), root: root, commit: commitOf(ctx, root)}
	if s.dir, err = os.MkdirTemp("", "rectifier-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	if err := s.run(ctx); err != nil {
		return err
	}
	return tell(newReport(s))
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
