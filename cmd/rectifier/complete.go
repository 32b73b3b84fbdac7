package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manifestEndings are the files that a PATH can name; folders are completed
// beside them.
var manifestEndings = []string{"yaml", "yml", "json"}

// completeArguments completes what a command and its flags say that they take:
// PATH is a manifest or a folder, FILE is any file, and anything else is no file.
// What has a completion of its own keeps it.
func completeArguments(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		if strings.Contains(cmd.Use, "PATH") {
			cmd.ValidArgsFunction = completeManifests
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, own := cmd.GetFlagCompletionFunc(f.Name); own {
			return
		}
		switch takes, _ := pflag.UnquoteUsage(f); takes {
		case "": // a switch
		case "PATH":
			_ = cmd.RegisterFlagCompletionFunc(f.Name, completeManifests)
		case "FILE":
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveDefault
			})
		default:
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
	})
}

// plainDescriptions takes the marks of help texts out of flags' descriptions:
// shells show them as they are.
func plainDescriptions(root *cobra.Command) {
	for _, cmd := range commands(root) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
	}
}

func completeManifests(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return slices.Clone(manifestEndings), cobra.ShellCompDirectiveFilterFileExt
}

// addCompletion adds cobra's commands that print completion scripts, and tells
// how kubectl completes for the plugin.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // it was just added
	}
	completion.Short = "Print the script that makes a shell complete commands, flags and names"
	completion.Long = `Completion prints a script for a shell. The help of each shell's command tells how
to load it. That for bash needs the package bash-completion.

For the plugin, kubectl does not use such a script, but its own, which asks a
program named kubectl_complete-rectify. A link to the same binary will do:

  ln -s "$(command -v kubectl-rectify)" ~/bin/kubectl_complete-rectify`
	completion.Example = "  source <(rectifier completion bash)"
	completion.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range completion.Commands() {
		shell.Short = "Print the completion script for " + shell.Name()
		shell.Example = "  rectifier completion " + shell.Name()
	}
}
