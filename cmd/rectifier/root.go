package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

// Exit codes, the same for every command.
const (
	exitFine     = 0
	exitFindings = 1 // differences, rules that failed
	exitUsage    = 2 // wrong usage, unreadable input
	exitCluster  = 3 // the cluster could not be reached or refused
)

// exitError ends a command with a code. A nil err ends it quietly: what there
// is to say has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// streams are where a command reads and writes: results go to out, logs and
// progress to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	var exit *exitError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintln(s.err, "rectifier:", exit.err)
		}
		return exit.code
	}
	fmt.Fprintln(s.err, "rectifier:", err)
	return exitUsage
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   commandName(),
		Short: "Put Kubernetes objects right that already exist, by rules in YAML",
		Long: `Rectifier watches resources, built-in or custom, evaluates CEL conditions on
their objects, and patches what is wrong. Rules are YAML files; there is no
code to write or generate.`,
		Version:       versionString(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(s), newFix(s), newDiff(s), newLint(s), newTest(s), newExplain(s), newRBAC(s),
		newImport(s), newSchema(s), newBuiltin(s), newVersion(s))
	return root
}

// commandName makes help read well for the kubectl plugin too, which is the
// same binary under the name kubectl-rectify.
func commandName() string {
	if base := filepath.Base(os.Args[0]); strings.HasPrefix(base, "kubectl-") {
		return "kubectl " + strings.ReplaceAll(strings.TrimPrefix(base, "kubectl-"), "_", "-")
	}
	return "rectifier"
}

// count gives a number with its noun.
func count(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %s", n, plural)
}

// ruleFlags say which rules a command uses.
type ruleFlags struct {
	paths   []string
	builtin []string
}

func (f *ruleFlags) add(cmd *cobra.Command, defaultBuiltin []string) {
	cmd.Flags().StringArrayVarP(&f.paths, "rules", "r", nil, "rule `PATH`: a file, a folder (recursive), or - for standard input; may be repeated")
	cmd.Flags().StringSliceVar(&f.builtin, "builtin", defaultBuiltin, "built-in rules by `NAME`, or none ("+strings.Join(builtin.Names(), ", ")+")")
	_ = cmd.RegisterFlagCompletionFunc("builtin", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return append(builtin.Names(), "none"), cobra.ShellCompDirectiveNoFileComp
	})
}

// load reads and compiles the rules. Problems are printed to s.err with their
// position; they are an error only if nothing is left to run.
func (f *ruleFlags) load(s streams) (*rules.Set, []*rules.Problem, error) {
	sources, err := rules.Read(f.paths, s.in)
	if err != nil {
		return nil, nil, &exitError{exitUsage, fmt.Errorf("read the rules: %w", err)}
	}
	for _, name := range f.builtin {
		if name == "none" {
			continue
		}
		source, err := builtin.Source(name)
		if err != nil {
			return nil, nil, &exitError{exitUsage, err}
		}
		sources = append(sources, source)
	}
	set, problems := rules.Load(sources...)
	for _, p := range problems {
		fmt.Fprintln(s.err, p.Detail())
	}
	if len(set.All()) == 0 {
		if len(problems) > 0 {
			return nil, nil, &exitError{exitUsage, errors.New("no rule is left: see the problems above")}
		}
		if len(f.paths) > 0 {
			return nil, nil, &exitError{exitUsage, fmt.Errorf("there is no rule in %s", strings.Join(f.paths, ", "))}
		}
		return nil, nil, &exitError{exitUsage, errors.New("there is no rule: name files with --rules, or a built-in one with --builtin")}
	}
	return set, problems, nil
}
