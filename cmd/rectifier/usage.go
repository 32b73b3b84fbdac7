package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// checkCommand refuses a command that there is not, with the name of one that
// there is.
func checkCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil // of the shell; cobra adds it when it runs
	}
	cmd, rest, err := root.Find(args)
	if err == nil {
		return nil
	}
	for i, arg := range rest { // among flags and their values
		if _, _, err := root.Find(rest[:i+1]); err != nil {
			return unknownCommand(cmd, arg)
		}
	}
	return err
}

func unknownCommand(parent *cobra.Command, name string) error {
	var known []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			known = append(known, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", name, parent.CommandPath(), suggest.DidYouMean(name, known))
}

// flagError names the flag that may be meant by one that there is not.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	name := unknown.GetSpecifiedName()
	if group := unknown.GetSpecifiedShortnames(); group != "" {
		name = group // -dry-run for --dry-run
		if len(group) == 1 {
			return err // any letter is close to any other
		}
	}
	if cmd.Name() == "lint" && name == "rules" {
		return fmt.Errorf("%w: lint takes rules as PATH", err)
	}
	if meant := suggest.Closest(name, known); meant != "" {
		return fmt.Errorf("%w (did you mean \"--%s\"?)", err, meant)
	}
	return err
}

// addHelp adds `help COMMAND`, which is refused for a command that there is not.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it was just added
	}
	help.Short = "Tell what a command does, and how it is called"
	help.Long = "Help tells what a command does, and how it is called, as `rectifier COMMAND --help` does."
	help.Example = "  rectifier help fix"
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return &exitError{exitUsage, unknownCommand(cmd, rest[0])}
		}
		cmd.InitDefaultHelpFlag() // so that it is listed
		cmd.InitDefaultVersionFlag()
		return cmd.Help()
	}
}

var (
	exclusiveFlags = regexp.MustCompile(`^if any flags in the group \[(.*)\] are set none of the others can be; \[(.*)\] were all set$`)
	noArgument     = regexp.MustCompile(`^requires at least \d+ arg`)
)

// usageError says in our words what cobra says of how a command was called.
func usageError(cmd *cobra.Command, err error) error {
	if m := exclusiveFlags.FindStringSubmatch(err.Error()); m != nil {
		set := strings.Fields(m[2])
		flags := slices.DeleteFunc(strings.Fields(m[1]), func(name string) bool { return !slices.Contains(set, name) })
		return fmt.Errorf("--%s exclude each other", strings.Join(flags, " and --"))
	}
	if noArgument.MatchString(err.Error()) && strings.Contains(cmd.Use, "PATH") {
		what, ok := map[string]string{"import": "policies", "test": "tests", "lint": "rules"}[cmd.Name()]
		if !ok {
			what = "manifests"
		}
		return fmt.Errorf("name %s: a file, a folder, or -", what)
	}
	return err
}
