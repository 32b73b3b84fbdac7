package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/rules"
)

type fixFlags struct {
	rules     ruleFlags
	crds      []string
	objects   []string
	now       string
	namespace string
	inPlace   bool
	check     bool
	match     bool
}

func newFix(s streams) *cobra.Command {
	var f fixFlags
	cmd := &cobra.Command{
		Use:   "fix PATH…",
		Short: "Apply rules to manifests, offline",
		Long: `Fix prints manifests as the rules want them, and leaves everything else byte for
byte as it was: comments, order, quotes, separators. YAML in, YAML out; JSON in,
JSON out. A PATH is a file, a folder (recursive), or - for standard input.

What was changed, and why, goes to standard error. A rule that fails on an
object is reported there and changes nothing. Rules of mode Audit are reported,
not applied.

Manifests are read document by document, and large lists item by item: 50,000
objects need no more memory than a few. A document that cannot be read is
reported and left out; with --in-place its file stays as it is.`,
		Example: `  rectifier fix --builtin expected-replicas deployment.yaml
  rectifier fix --rules rules/ --check manifests/
  kubectl get deployments -o yaml | rectifier fix --rules rules/ -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if f.namespace == "" {
				return &exitError{exitUsage, errors.New("--namespace is empty: is a variable not set?")}
			}
			if f.inPlace && slices.Contains(paths, "-") {
				return &exitError{exitUsage, errors.New("--in-place writes files, and standard input (-) is none")}
			}
			return f.run(cmd.Context(), paths, s)
		},
	}
	f.rules.add(cmd, nil)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.crds, "crds", nil, "`PATH` of CRD manifests: plural names, scope and replica paths of custom resources")
	flags.StringArrayVar(&f.objects, "objects", nil, "`PATH` of objects that rules may look up, Namespaces among them; those in PATH… count too")
	flags.StringVar(&f.now, "now", "", "the `TIME` that rules read, such as 2026-01-01T00:00:00Z (default: the real one)")
	flags.StringVarP(&f.namespace, "namespace", "n", "default", "where objects of namespaced kinds are that do not say so")
	flags.BoolVarP(&f.inPlace, "in-place", "i", false, "write the files instead of printing them")
	flags.BoolVar(&f.check, "check", false, "print and write no manifests; exit with 1 if something would change")
	flags.BoolVar(&f.match, "require-match", false, "exit with 1 if no object is matched by any rule")
	cmd.MarkFlagsMutuallyExclusive("in-place", "check")
	return cmd
}

func (f *fixFlags) run(ctx context.Context, paths []string, s streams) error {
	if err := oneStdin(paths, f.rules.paths, f.crds, f.objects); err != nil {
		return err
	}
	set, problems, err := f.rules.load(s)
	if err != nil {
		return err
	}
	fixer, err := f.fixer(set, s)
	if err != nil {
		return err
	}
	sources, err := input.Find(paths, s.in)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("read the manifests: %w", err)}
	}
	defer relaxCollector()()
	told := newProgress(s.err)
	job := &fixJob{flags: f, fixer: fixer, err: told, printed: &joiner{out: bufio.NewWriterSize(s.out, bufferSize)}, progress: told}
	err = job.learn(ctx, sources)
	for i := 0; err == nil && i < len(sources); i++ {
		err = job.file(ctx, sources[i])
	}
	for _, source := range sources {
		err = errors.Join(err, source.Close())
	}
	if err != nil {
		told.clear()
		return &exitError{exitUsage, err}
	}
	told.clear()
	printSummary(s.err, job.total, set)
	switch {
	case job.unreadable > 0, len(problems) > 0:
		return &exitError{code: exitUsage}
	case job.total.Failures > 0, f.check && job.total.Changed > 0, f.match && job.total.Matched == 0:
		return &exitError{code: exitFindings}
	}
	return nil
}

// fixer makes ready to evaluate without a cluster.
func (f *fixFlags) fixer(set *rules.Set, s streams) (*offline.Fixer, error) {
	catalog, types, err := readCatalog(f.crds, s)
	if err != nil {
		return nil, err
	}
	world := offline.NewWorld(catalog, f.namespace)
	world.Only(set)
	fixer := &offline.Fixer{Rules: set, Catalog: catalog, Namespace: f.namespace, World: world, Types: types, Now: time.Now()}
	if f.now != "" {
		if fixer.Now, err = time.Parse(time.RFC3339, f.now); err != nil {
			return nil, &exitError{exitUsage, fmt.Errorf("--now: %w", err)}
		}
	}
	return fixer, addObjects(world, f.objects, s)
}

func printFinding(w io.Writer, f offline.Finding) {
	v := f.Verdict
	where := fmt.Sprintf("%s: %s", f.Pos, f.Object)
	switch {
	case v.Err != nil:
		fmt.Fprintf(w, "%s: rule %s failed: %v%s\n", where, v.Rule.Name, v.Err, whatToGive(v.Err))
	case v.Rule.Mode == rules.Audit:
		fmt.Fprintf(w, "%s: rule %s would change it (Audit): %s\n", where, v.Rule.Name, v.Event.Message)
	default:
		fmt.Fprintf(w, "%s: %s: %s\n", where, v.Rule.Name, v.Event.Message)
	}
}

// whatToGive names the flag that makes known what a rule needs to know.
func whatToGive(err error) string {
	var unknown *rules.UnknownError
	switch {
	case errors.Is(err, rules.ErrReplicasUnknown):
		return " (--crds tells)"
	case !errors.As(err, &unknown):
		return ""
	case unknown.Schema:
		return " (give its CRD with --crds)"
	}
	return " (give it with --objects)"
}

// printSummary prints the counts. That nothing was matched is easily overlooked
// and hardly ever meant.
func printSummary(w io.Writer, r offline.Report, set *rules.Set) {
	fmt.Fprintf(w, "%s, %d matched, %d changed, %s\n",
		count(r.Objects, "object", "objects"), r.Matched, r.Changed, count(r.Failures, "failure", "failures"))
	if r.Matched == 0 {
		fmt.Fprintf(w, "warning: 0 objects matched; the rules are about %s\n", whatTheyAreAbout(set))
	}
}

// whatTheyAreAbout names the resources that rules are about, not more than fit
// on a line.
func whatTheyAreAbout(set *rules.Set) string {
	var names []string
	for _, resource := range set.Resources() {
		if len(names) == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, rules.ResourceName(resource))
	}
	return strings.Join(names, ", ")
}

// relaxCollector lets the garbage collector work less often: fix makes much
// garbage and holds little, which costs it a tenth of its time. What is allocated
// here is never touched, so it takes no memory; it only makes the heap look larger,
// by so much that it does not matter beside one that is large. More of it would save
// little time, and costs twice its size in garbage.
func relaxCollector() (undo func()) {
	ballast := make([]byte, 2<<20)
	return func() { runtime.KeepAlive(ballast) }
}
