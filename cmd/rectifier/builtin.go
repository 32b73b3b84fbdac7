package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

// builtinRule is a line of the list.
type builtinRule struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Resources   []string `json:"resources"`
	Default     bool     `json:"default"` // run uses it unless --builtin says otherwise
}

func newBuiltin(s streams) *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "builtin [NAME]",
		Short: "List the built-in rules, or print one",
		Long: `Builtin lists the rules that ship with the binary. With a NAME it prints the file of
that rule as it is, comments included: read it before you use it, or make a rule
of your own out of it.

Commands use a built-in rule with --builtin NAME.`,
		Example: `  rectifier builtin
  rectifier builtin expected-replicas > rules/expected-replicas.yaml`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: builtin.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return listBuiltin(s, output.value)
			}
			if cmd.Flags().Changed("output") {
				return &exitError{exitUsage, fmt.Errorf("--output is for the list: %s is printed as it is", args[0])}
			}
			source, err := builtin.Source(args[0])
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if _, err := s.out.Write(source.Data); err != nil {
				return fmt.Errorf("print the rule: %w", err)
			}
			return nil
		},
	}
	output.add(cmd, "text", "json", "yaml")
	return cmd
}

// builtinRules compiles the built-in rules to tell what they say of themselves.
func builtinRules() ([]builtinRule, error) {
	var out []builtinRule
	for _, name := range builtin.Names() {
		source, err := builtin.Source(name)
		if err != nil {
			return nil, err
		}
		set, problems := rules.Load(source)
		if len(problems) > 0 {
			return nil, fmt.Errorf("load the built-in rule %s: %w", name, problems[0])
		}
		for _, r := range set.All() {
			line := builtinRule{Name: name, Description: r.Description, Default: name == builtin.Default}
			for _, resource := range r.Resources {
				line.Resources = append(line.Resources, rules.ResourceName(resource))
			}
			out = append(out, line)
		}
	}
	return out, nil
}

func listBuiltin(s streams, format string) error {
	list, err := builtinRules()
	if err != nil {
		return err
	}
	if format != "text" {
		return printData(s, format, list)
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, r := range list {
		printBuiltin(table, r)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the list: %w", err)
	}
	return nil
}

func printBuiltin(w io.Writer, r builtinRule) {
	note := ""
	if r.Default {
		note = " (what run uses by default)"
	}
	fmt.Fprintf(w, "%s\t%s%s\n", r.Name, firstLine(r.Description), note)
}
