package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/engine"
)

type diffFlags struct {
	rules      ruleFlags
	output     outputFlag
	colour     colourFlag
	namespaces []string
	exclude    excludeFlag
	asEnforced bool

	// files
	crds    []string
	objects []string
	now     string

	// the live cluster
	live         bool
	cluster      clusterFlags
	serverDryRun bool
	fieldManager string
	timeout      time.Duration
	verbosity    int
}

func newDiff(s streams) *cobra.Command {
	var f diffFlags
	cmd := &cobra.Command{
		Use:   "diff {PATH… | --cluster [RESOURCE[/NAME]…]}",
		Short: "Show what rules would change, in files or in the live cluster",
		Long: `Diff shows what the rules would change, and changes nothing.

For files it prints the lines that fix would write, as a unified diff that
patch -p1 and git apply understand. A PATH is a file, a folder (recursive), or -
for standard input. Paths in the diff are relative to the working directory, for
files below it; those elsewhere are written whole, and have to be applied where
the leading folders are.

With --cluster it looks at the objects that exist: all that the rules are about,
or those named as RESOURCE or RESOURCE/NAME; rules about other resources are then
left out. It needs to list and watch what the rules match and look up, and
Namespaces; it sends nothing but reads. What it may not read is listed, and the
rest is shown. With --server-dry-run each change is also sent to the API server
with dryRun=All, which takes the permission to patch: then admission, defaults and
validation of the server count, and the diff shows what it would store.

With --cluster, objects are read whole, by the decoder that run uses, and it takes
the memory for that. But run keeps of objects what rules read: where this shows a
change that run does not make, and no Event tells why, that may be at fault.

With --namespace it shows a part of what run does for the whole cluster: the
Namespaces that are named are read, so rules that select by their labels and
opt-outs on them count. A controller that is limited by run --namespace cannot
watch Namespaces: it parks such rules and does not see such opt-outs. Where that
makes a difference, a note says so.

Values of Secrets are never shown, only their length and whether they change,
and neither is what a rule that reads Secrets changes elsewhere. A diff of a file
that holds such values cannot be applied.

Rules of mode Audit are named, not applied: other rules do not see what they
would do. --as-enforced shows what would happen if they were enforced.

The diff goes to standard output. Which rule changes what and why, and a summary
by rule, go to standard error. The exit code is 0 if nothing would change, 1 if
something would or a rule failed on an object, 2 if the input could not be read,
3 if the cluster could not be reached or refused. With --cluster, it is also 1 if
a rule did nothing (it is parked): its resource or what it looks up is not served,
or is cluster-scoped and --namespace is given. A script tells the two apart by
-o json: summary.changed and summary.failed count what is wrong with objects, and
notDone lists what could not be done.`,
		Example: `  rectifier diff --rules rules/ manifests/
  rectifier diff --rules rules/ manifests/ | git apply
  rectifier diff --rules rules/ --cluster
  rectifier diff --rules rules/ --cluster --server-dry-run deployments/web -n shop
  rectifier diff --rules rules/ --cluster -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if !f.live && len(args) == 0 {
				return errors.New("diff needs a PATH of manifests, or --cluster")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(cmd); err != nil {
				return &exitError{exitUsage, err}
			}
			if f.live {
				f.rules.defaultLive(cmd)
			}
			return f.run(cmd.Context(), args, s)
		},
	}
	cmd.ValidArgsFunction = f.complete
	f.rules.add(cmd, nil)
	tellDefaultLive(cmd, "with --cluster")
	f.output.add(cmd, "text", "json", "yaml")
	f.colour.add(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.namespaces, "namespace", "n", nil, "files: where objects of namespaced kinds are that do not say so (default: default); --cluster: look at the namespaces of this `NAME` only (default: the whole cluster)")
	flags.BoolVar(&f.asEnforced, "as-enforced", false, "treat rules of mode Audit as if they were enforced")
	flags.StringArrayVar(&f.crds, "crds", nil, "files: `PATH` of CRD manifests: plural names, scope and replica paths of custom resources")
	flags.StringArrayVar(&f.objects, "objects", nil, "files: `PATH` of objects that rules may look up, Namespaces among them; those in PATH… count too")
	flags.StringVar(&f.now, "now", "", "files: the `TIME` that rules read, such as 2026-01-01T00:00:00Z (default: the real one)")
	flags.BoolVar(&f.live, "cluster", false, "look at the objects in the live cluster")
	f.cluster.add(cmd)
	f.exclude.add(cmd, "with --cluster, leave out what is in namespaces of this `GLOB`, as run does with its own flag")
	flags.BoolVar(&f.serverDryRun, "server-dry-run", false, "with --cluster, have the API server try each change (dryRun=All)")
	flags.StringVar(&f.fieldManager, "field-manager", engine.DefaultFieldManager, "with --server-dry-run, the `NAME` under which changes are tried")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "with --cluster, give up after this long")
	flags.IntVarP(&f.verbosity, "v", "v", 0, "with --cluster, log verbosity")
	addAllNamespaces(cmd)
	return cmd
}

// onlyLive and onlyFiles are flags that mean something in one of the two ways of
// working.
var (
	onlyLive  = []string{"kubeconfig", "context", excludeNamespace, "server-dry-run", "field-manager", "timeout", "v"}
	onlyFiles = []string{"crds", "objects", "now"}
)

func (f *diffFlags) validate(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	for _, name := range onlyLive {
		if !f.live && changed(name) {
			return fmt.Errorf("--%s is for --cluster, which is not given", name)
		}
	}
	for _, name := range onlyFiles {
		if f.live && changed(name) {
			return fmt.Errorf("--%s is for files, and --cluster is given", name)
		}
	}
	switch {
	case changed("namespace") && (len(f.namespaces) == 0 || slices.Contains(f.namespaces, "")):
		return errors.New("--namespace is empty: is a variable not set?")
	case !f.live && len(f.namespaces) > 1:
		return errors.New("--namespace is one namespace for files: the one of objects that do not say theirs")
	case checkNamespaces(f.namespaces...) != nil:
		return checkNamespaces(f.namespaces...)
	case changed(allNamespaces) && (!f.live || changed("namespace")):
		return errors.New("-A does not go with files or --namespace: with --cluster, all namespaces is the default")
	case f.timeout <= 0:
		return errors.New("--timeout must be positive")
	case f.exclude.validate(cmd, f.namespaces) != nil:
		return f.exclude.validate(cmd, f.namespaces)
	}
	return errors.Join(f.output.check(), f.colour.check())
}

func (f *diffFlags) run(ctx context.Context, args []string, s streams) error {
	set, problems, err := f.rules.load(s)
	if err != nil {
		return err
	}
	if f.asEnforced {
		set = set.Enforced()
	}
	report := newDiffReport(set)
	report.brief = f.output.value == "text"
	printer := newDiffPrinter(s, f.output.value == "text", f.colour.on(s.out))
	if f.live {
		err = f.diffCluster(ctx, set, args, report, printer)
	} else {
		err = f.diffFiles(ctx, set, args, report, printer)
	}
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitUsage && exit.err != nil && report.Summary.Objects == 0 {
		return err // nothing was looked at
	}
	printer.nothing = err != nil && report.Summary.Objects == 0
	if printed := f.finish(report, printer); printed != nil {
		return printed
	}
	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		return &exitError{exitUsage, errors.New(doNotCompile(problems))}
	case report.Summary.Changed > 0 || report.Summary.Failed > 0:
		return &exitError{code: exitFindings}
	}
	return nil
}

// complete completes manifests; with --cluster, the resources that the rules
// are about.
func (f *diffFlags) complete(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if !f.live {
		return completeManifests(cmd, args, typed)
	}
	f.rules.defaultLive(cmd)
	set, _, err := f.rules.load(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, resource := range set.Resources() {
		out = append(out, resource.Resource)
	}
	slices.Sort(out)
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
}

// finish prints what is printed at the end.
func (f *diffFlags) finish(report *diffReport, p *diffPrinter) error {
	if p.err != nil {
		return fmt.Errorf("print the differences: %w", p.err)
	}
	if p.nothing && p.text {
		p.progress.clear()
		return nil
	}
	if !p.text {
		if err := printData(p.streams, f.output.value, report); err != nil {
			return fmt.Errorf("print the differences: %w", err)
		}
	}
	p.summary(report)
	return nil
}
