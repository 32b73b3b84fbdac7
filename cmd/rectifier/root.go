package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
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
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		plainDescriptions(root)
	}
	err := checkCommand(root, args)
	cmd := root
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
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
	// The command did not run: it was called in a wrong way.
	err = usageError(cmd, err)
	if asksForHelm(args) {
		err = helmFailure(s, err)
	}
	fmt.Fprintln(s.err, "rectifier:", err)
	fmt.Fprintf(s.err, "Run '%s --help' for usage.\n", cmd.CommandPath())
	return exitUsage
}

// helpWidth is how wide the help of flags is: that of the texts around it.
const helpWidth = 80

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "rectifier",
		Short: "Put Kubernetes objects right that already exist, by rules in YAML",
		Long: `Rectifier watches resources, built-in or custom, evaluates CEL conditions on
their objects, and patches what is wrong. Rules are YAML files; there is no
code to write or generate. The same rules run offline, on manifests.

Results go to standard output, logs and problems to standard error.

Exit codes of all commands:
  0  fine
  1  findings: what the command looks for is there
  2  wrong usage, or input that cannot be read
  3  the cluster could not be reached, or refused`,
		Example: `  rectifier fix --rules rules/ manifests/
  rectifier run --rules rules/ --dry-run --once
  rectifier help fix`,
		Version:          versionString(),
		SilenceErrors:    true,
		SilenceUsage:     true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { defaultSignals(cmd) },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("rectifier {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages |", fmt.Sprintf("Flags.FlagUsagesWrapped %d |", helpWidth)))
	root.AddCommand(newRun(s), newFix(s), newDiff(s), newLint(s), newTest(s), newExplain(s), newRBAC(s),
		newImport(s), newSchema(s), newBuiltin(s), newVersion(s))
	addHelp(root)
	addCompletion(root)
	for _, cmd := range commands(root) {
		reportErrors(cmd)
		completeArguments(cmd)
	}
	if name := pluginName(os.Args[0]); name != "" {
		renameTo(root, name)
	}
	return root
}

// commands are a command and all below it.
func commands(cmd *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		out = append(out, commands(sub)...)
	}
	return out
}

// reportErrors keeps what a command fails with apart from what cobra says of
// its usage.
func reportErrors(cmd *cobra.Command) {
	run := cmd.RunE
	if run == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err == nil || errors.As(err, new(*exitError)) {
			return err
		}
		return &exitError{exitUsage, err}
	}
}

// count gives a number with its noun.
func count(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %s", n, plural)
}
