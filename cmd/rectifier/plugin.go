package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The same binary, or a link to it, is a plugin of kubectl under the name
// kubectl-NAME, and completes for that plugin under the name
// kubectl_complete-NAME: kubectl calls this with what stands after its own
// `kubectl NAME`, and expects what cobra's __complete prints.
const (
	pluginPrefix    = "kubectl-"
	completerPrefix = "kubectl_complete-"
)

// pluginName is how a user calls the plugin that a binary is: kubectl rectify.
// It is empty for any other binary. In file names, _ stands for a dash.
func pluginName(binary string) string {
	base := strings.TrimSuffix(filepath.Base(binary), ".exe")
	for _, prefix := range []string{pluginPrefix, completerPrefix} {
		if name, ok := strings.CutPrefix(base, prefix); ok && name != "" {
			return "kubectl " + strings.ReplaceAll(strings.ReplaceAll(name, "-", " "), "_", "-")
		}
	}
	return ""
}

// commandLine is what a process was asked to do: its arguments, but for the
// binary that completes.
func commandLine(args []string) []string {
	if base := filepath.Base(args[0]); strings.HasPrefix(base, completerPrefix) {
		return append([]string{cobra.ShellCompRequestCmd}, args[1:]...)
	}
	return args[1:]
}

// renameTo makes all help texts of a command tree read well for the plugin.
func renameTo(root *cobra.Command, name string) {
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	// The name proper stays one word: completion scripts are made for it.
	root.Use = strings.ReplaceAll(strings.ReplaceAll(name, "-", "_"), " ", "-")
	root.Annotations[cobra.CommandDisplayNameAnnotation] = name
	var names []string
	for _, cmd := range root.Commands() {
		names = append(names, cmd.Name())
	}
	called := regexp.MustCompile(`\brectifier (` + strings.Join(names, "|") + `|COMMAND)\b`)
	for _, cmd := range commands(root) {
		for _, text := range []*string{&cmd.Long, &cmd.Example, &cmd.Short} {
			*text = called.ReplaceAllString(*text, name+" $1")
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = called.ReplaceAllString(f.Usage, name+" $1") })
	}
}
