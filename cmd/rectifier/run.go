package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/rulefiles"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

type runFlags struct {
	rules     ruleFlags
	cluster   clusterFlags
	lease     leaseFlags
	serve     serveFlags
	exclude   excludeFlag
	once      bool
	timeout   time.Duration
	strict    bool
	verbosity int
	engine    engine.Options
}

func newRun(s streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controller: watch, evaluate, patch",
		Long: `Run watches the resources that the rules name and patches what is wrong, until
it is stopped. It finds the cluster as kubectl does: --kubeconfig, $KUBECONFIG,
~/.kube/config, or the service account of the pod it runs in.

A rule that does not compile is reported and left out, and never stops the
others. Rule files are watched: a change is in force within seconds, without a
restart. A rule that does not compile any more keeps its last good version.

With --once, every object is looked at once: for CI and CronJobs.`,
		Example: `  rectifier run --rules rules/
  rectifier run --rules rules/ --builtin none --dry-run --once`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(cmd); err != nil {
				return &exitError{exitUsage, err}
			}
			return f.run(cmd.Context(), s)
		},
	}
	f.rules.add(cmd, []string{builtin.Default})
	flags := cmd.Flags()
	f.cluster.add(cmd)
	flags.StringSliceVarP(&f.engine.Namespaces, "namespace", "n", nil, "look at the namespaces of this `NAME` only: a Role in each is enough; opt-outs on Namespaces are not seen then (default: the whole cluster)")
	f.exclude.add(cmd, "leave alone what is in namespaces of this `GLOB`, and these Namespaces themselves, whatever rules say: may be repeated; rules still look up what is there")
	flags.IntVar(&f.engine.Workers, "workers", engine.DefaultWorkers, "objects that are worked on at once")
	flags.Float32Var(&f.engine.QPS, "qps", engine.DefaultQPS, "writes a second, over all resources; negative for no limit")
	flags.IntVar(&f.engine.Burst, "burst", engine.DefaultBurst, "writes that may go out at once before --qps limits them")
	flags.DurationVar(&f.engine.Resync, "resync", engine.DefaultResync, "how often every object is evaluated anew")
	flags.StringVar(&f.engine.FieldManager, "field-manager", engine.DefaultFieldManager, "`NAME` under which writes appear in managedFields, at most 128 bytes")
	contention := &f.engine.Contention
	flags.IntVar(&contention.Count, "contention-count", engine.DefaultContentionCount, "how often a rule makes the same change to an object within --contention-window before it gives way to whoever sets that back: it is held for that object for 1m, then 2m, 4m, up to 1h")
	flags.DurationVar(&contention.Window, "contention-window", engine.DefaultContentionWindow, "time within which changes to an object are counted; one that stays for as long ends the contention")
	flags.IntVar(&contention.Cap, "contention-cap", engine.DefaultContentionCap, "how many changes of any kind a rule makes to an object within --contention-window before it gives way")
	flags.BoolVar(&f.engine.DryRun, "dry-run", false, "evaluate everything, write nothing; with --once, exit with 1 if something would be changed")
	flags.BoolVar(&f.once, "once", false, "look at every object once, then exit: 0 all is right, 1 a rule failed on an object or names a resource that is not served, 2 a rule does not compile, 3 the cluster could not be reached or refused")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "with --once, give up after this long")
	flags.BoolVar(&f.engine.FullObjects, "full-objects", false, "keep objects whole in memory, and decode all of them: to find out whether the projection is at fault; needs several times the memory")
	f.lease.add(cmd, "work only while this instance holds a Lease, so that several can run; one that loses it ends with exit code 3 and has to be started again")
	flags.BoolVar(&f.strict, "strict-rules", false, "refuse to start if a rule does not compile")
	f.serve.add(cmd)
	flags.IntVarP(&f.verbosity, "v", "v", 0, "log verbosity")
	return cmd
}

// maxFieldManager is the longest name that the API server takes.
const maxFieldManager = 128

// validate refuses values that would make a controller that does nothing, or
// too much.
func (f *runFlags) validate(cmd *cobra.Command) error {
	manager := f.engine.FieldManager
	switch {
	case cmd.Flags().Changed("namespace") && (len(f.engine.Namespaces) == 0 || slices.Contains(f.engine.Namespaces, "")):
		return errors.New("--namespace is empty: is a variable not set? Leave it out for the whole cluster")
	case checkNamespaces(f.engine.Namespaces...) != nil:
		return checkNamespaces(f.engine.Namespaces...)
	case len(manager) == 0 || len(manager) > maxFieldManager || strings.ContainsFunc(manager, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("--field-manager must be 1 to %d bytes of printable text", maxFieldManager)
	case f.engine.Workers < 1:
		return errors.New("--workers must be at least 1")
	case f.engine.QPS == 0 || math.IsNaN(float64(f.engine.QPS)) || f.engine.QPS > 0 && f.engine.Burst < 1:
		return errors.New("--qps must be a number other than 0 (negative is no limit), and --burst must be at least 1")
	case f.engine.Resync < minResync:
		return fmt.Errorf("--resync must be at least %v", minResync)
	case f.engine.Contention.Count < 1 || f.engine.Contention.Cap < f.engine.Contention.Count:
		return fmt.Errorf("--contention-count must be at least 1, and --contention-cap must not be below it: they are %d and %d", f.engine.Contention.Count, f.engine.Contention.Cap)
	case f.engine.Contention.Window < minContentionWindow:
		return fmt.Errorf("--contention-window must be at least %v", minContentionWindow)
	case f.timeout <= 0:
		return errors.New("--timeout must be positive")
	case f.once && f.lease.elect:
		return errors.New("--leader-elect does not go with --once")
	}
	return cmp.Or(f.exclude.validate(cmd, f.engine.Namespaces), f.serve.validate(cmd.Flags(), f.once), f.lease.validate(cmd))
}

// minResync keeps a slip from becoming a busy loop.
const minResync = time.Second

// minContentionWindow keeps a slip from letting every fight go on.
const minContentionWindow = time.Second

func (f *runFlags) run(ctx context.Context, s streams) error {
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(s.err), textlogger.Verbosity(f.verbosity)))
	klog.SetLogger(logger)
	ctx = klog.NewContext(ctx, logger)

	source := rulefiles.New(f.rules.paths, s.in)
	set, problems, err := f.rules.loadFrom(source, s)
	if err != nil {
		return err
	}
	if f.strict && len(problems) > 0 {
		return &exitError{exitUsage, fmt.Errorf("%s, and --strict-rules is given", doNotCompile(problems))}
	}
	if f.engine.Config, err = f.cluster.config(); err != nil {
		return err
	}
	f.engine.Rules, f.engine.Problems = set, problems
	f.engine.Registerer = newRegistry()
	f.engine.ExcludeNamespaces = f.exclude.patterns
	if f.engine.Lease, err = f.lease.lease(&f.cluster, ""); err != nil {
		return err
	}
	if f.once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
		// One look: what the Namespaces say now is what counts, as for diff.
		if f.engine.ReadNamespaces, err = f.awaitNamespaces(ctx); err != nil {
			return err
		}
	}
	e, err := engine.New(f.engine)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	logger.Info("Starting", "version", versionString(), "rules", len(set.All()), "builtin", builtinOf(set), "invalid", rules.CountInvalid(problems), "dryRun", f.engine.DryRun, "once", f.once)
	if f.once {
		return f.runOnce(ctx, s, e, problems)
	}
	servers, err := f.serve.listen(logger, f.engine.Config, e)
	if err != nil {
		return err
	}
	// It is answered until the engine has finished: that is worth seeing, too.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	group, ctx := errgroup.WithContext(ctx)
	serve(serving, group, servers)
	group.Go(func() error { defer stopServing(); return e.Run(ctx) })
	go newReloader(&f.rules, e, set, problems).run(ctx, source) // not waited for: a reload under way keeps no shutdown
	go f.missNamespaces(ctx, logger, e)
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return &exitError{exitCluster, err}
	}
	return nil
}

// runOnce is run with --once; ctx ends with --timeout.
func (f *runFlags) runOnce(ctx context.Context, s streams, e *engine.Engine, problems []*rules.Problem) error {
	summary, err := e.Once(ctx)
	if err != nil && !e.Reached() {
		return &exitError{exitCluster, err} // there is nothing to count
	}
	fmt.Fprintf(s.out, "fixed %d, failed %d", summary.Fixed, summary.Failed)
	if f.engine.DryRun {
		fmt.Fprintf(s.out, ", would fix %d", summary.WouldBe)
	}
	if summary.Audit > 0 {
		fmt.Fprintf(s.out, ", audit %d", summary.Audit)
	}
	if summary.LeftAlone > 0 {
		fmt.Fprintf(s.out, ", left alone %d (they ask for it)", summary.LeftAlone)
	}
	fmt.Fprintln(s.out)
	switch {
	case errors.Is(err, engine.ErrParked) && len(problems) > 0:
		return &exitError{exitUsage, fmt.Errorf("%s, and %w", doNotCompile(problems), err)}
	case errors.Is(err, engine.ErrParked):
		return &exitError{exitFindings, err}
	case err != nil && f.engine.DryRun:
		return clusterError(err, printReadRole)
	case err != nil:
		return clusterError(err, printRole)
	case len(problems) > 0:
		return &exitError{exitUsage, errors.New(doNotCompile(problems))}
	case summary.Failed > 0 || summary.WouldBe > 0:
		return &exitError{code: exitFindings}
	}
	return nil
}

func doNotCompile(problems []*rules.Problem) string {
	return count(rules.CountInvalid(problems), "rule does not compile", "rules do not compile")
}
