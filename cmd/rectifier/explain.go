package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/rules"
)

type explainFlags struct {
	rules     ruleFlags
	cluster   clusterFlags
	output    outputFlag
	files     []string
	crds      []string
	objects   []string
	now       string
	namespace string
	cost      bool
	exclude   excludeFlag
	timeout   time.Duration
}

func newExplain(s streams) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain {RESOURCE/NAME… | RESOURCE NAME… | -f PATH [KIND/NAME…] | --cost}",
		Short: "Tell what each rule makes of one object, and why",
		Long: `Explain evaluates the rules for an object and tells, rule by rule, whether the
rule matches, what its lookups, its variables and the parts of its condition give,
and what it would write; or why it leaves the object alone, or cannot run, such as
one about a version of the resource that is not served.

The object is read from the cluster, and named as for kubectl get: by the plural,
the singular, a short name or the kind of its resource, with a version or group
where that is needed. Explain only reads: the object, its Namespace, Events about it,
CRDs and what the rules look up. It sees what you may read, which may be more or
less than what the controller may. What a running controller remembers of the
object, such as a rule that it holds or a write that was refused, it has told in
Events: the last ones are shown below their rule ("the controller reported"), as
long as they have not expired, usually after an hour, and until the rule has fixed
the object again. With -f, objects in files are explained, without a cluster.

All parts of a condition are evaluated. Those that did not count, because another
one had decided already, are marked "not needed", and variables and lookups that
were not read "not read". Data of Secrets is never shown.

With --cost, explain also tells of each rule what it costs the controller,
whatever the object; without an object, only that, of all rules, and no cluster is
asked. What is kept in memory of the objects of a resource, beside who they are, is
given as paths: .spec.a is all at and below it, .spec.a? whether it is there and of
which kind, .spec.a{keys} the keys of a map or the length of a list, .spec.a{if list}
all of a list; [*] stands for each element, {*} for each value. What several rules
read is kept once. It also tells which parts of its condition a rule is found by, so
that it costs next to nothing on other objects (one on which such a part is an error
is no other one), or that it is evaluated at each change of what is kept.

The exit code is 0 if the object could be explained, 1 if a rule failed on it or
cannot run, 2 if there is no such object or something could not be read, 3 if the
cluster could not be reached or refused.`,
		Example: `  rectifier explain --rules rules/ deployments/web -n shop
  rectifier explain --rules rules/ --rule expected-replicas deploy web
  rectifier explain --rules rules/ -f deployment.yaml
  rectifier explain --rules rules/ --cost
  kubectl get deploy web -o yaml | rectifier explain --rules rules/ -f - -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(cmd, args); err != nil {
				return &exitError{exitUsage, err}
			}
			if len(f.files) == 0 {
				f.rules.defaultLive(cmd)
			}
			return f.run(cmd.Context(), args, s)
		},
	}
	f.rules.add(cmd, nil)
	tellDefaultLive(cmd, "without -f")
	f.cluster.add(cmd)
	f.output.add(cmd, "text", "json", "yaml")
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "explain the objects in manifests: `PATH` is a file, a folder (recursive), or - for standard input; may be repeated")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "the `NAMESPACE` of the object; with -f, of objects that do not say theirs (default: that of the context, else default)")
	flags.BoolVar(&f.cost, "cost", false, "tell what each rule makes the controller keep of objects, and which of them it is evaluated on; needs no object")
	flags.StringArrayVar(&f.crds, "crds", nil, "with -f, or --cost alone, `PATH` of CRD manifests: plural names, scope and replica paths of custom resources")
	flags.StringArrayVar(&f.objects, "objects", nil, "with -f, `PATH` of objects that rules may look up, Namespaces among them; those in -f count too")
	flags.StringVar(&f.now, "now", "", "the `TIME` that rules read, such as 2026-01-01T00:00:00Z (default: the real one)")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "how long the cluster may take to answer all questions")
	f.exclude.add(cmd, "tell that nothing is done to an object in namespaces of this `GLOB`, as run does nothing with its own flag")
	for _, live := range []string{"kubeconfig", "context", "timeout", excludeNamespace} {
		cmd.MarkFlagsMutuallyExclusive("filename", live)
	}
	addAllNamespaces(cmd)
	cmd.ValidArgsFunction = f.completeObjects
	return cmd
}

func (f *explainFlags) validate(cmd *cobra.Command, args []string) error {
	offline := len(f.files) > 0
	switch {
	case f.output.check() != nil:
		return f.output.check()
	case !offline && len(args) == 0 && f.cost:
		if len(f.objects) > 0 {
			return errors.New("--objects is for -f: --cost alone looks at rules only")
		}
	case !offline && len(args) == 0:
		return errors.New("explain needs an object of the cluster, as RESOURCE/NAME, or files, with -f")
	case !offline && (len(f.crds) > 0 || len(f.objects) > 0):
		return errors.New("--crds and --objects are for -f: a cluster knows its own")
	case cmd.Flags().Changed("namespace") && f.namespace == "":
		return errors.New("--namespace is empty: is a variable not set?")
	case f.namespace != "" && checkNamespaces(f.namespace) != nil:
		return checkNamespaces(f.namespace)
	case cmd.Flags().Changed(allNamespaces):
		return errors.New("-A: an object is in one namespace: give it with -n; without RESOURCE/NAME, diff --cluster looks at objects, and all namespaces is the default")
	case !offline && fileAmong(args) != "":
		return fmt.Errorf("to explain a file: -f %s", fileAmong(args))
	case f.timeout <= 0:
		return errors.New("--timeout must be positive")
	}
	return f.exclude.validate(cmd, nil) // of an object that is excluded, it is told
}

func (f *explainFlags) run(ctx context.Context, args []string, s streams) error {
	now := time.Now()
	if f.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, f.now); err != nil {
			return &exitError{exitUsage, fmt.Errorf("--now: %w", err)}
		}
	}
	if err := oneStdin(f.rules.paths, f.files, f.crds, f.objects); err != nil {
		return err
	}
	set, written, problems, err := f.load(s)
	if err != nil {
		return err
	}
	var report explainReport
	switch {
	case len(f.files) > 0:
		report, err = f.explainFiles(set, written, args, now, s)
	case len(args) == 0:
		report, err = f.explainCosts(set, s)
	default:
		report, err = f.explainLive(ctx, set, written, args, now)
	}
	if err != nil && len(report.Objects) == 0 {
		return err
	}
	// What could be explained is, also where something else is missing.
	printed := f.print(s, report)
	switch {
	case printed != nil:
		return printed
	case err != nil:
		return err
	case len(problems) > 0:
		return &exitError{code: exitUsage}
	case report.failed():
		return &exitError{code: exitFindings}
	}
	return nil
}

func (f *explainFlags) print(s streams, report explainReport) error {
	if f.output.value == "text" {
		return printExplanations(s.out, report)
	}
	return printData(s, f.output.value, report)
}

// load loads the rules beside their text.
func (f *explainFlags) load(s streams) (*rules.Set, writtenRules, []*rules.Problem, error) {
	set, definitions, problems, err := f.rules.loadDefinitions(s)
	return set, newWrittenRules(definitions), problems, err
}

// fileAmong returns the first argument that is the name of a file.
func fileAmong(args []string) string {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err == nil && (info.Mode().IsRegular() || info.IsDir() && strings.HasSuffix(arg, "/")) {
			return arg
		}
	}
	return ""
}
