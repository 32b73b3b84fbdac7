package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/rules"
)

func newSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [rule]",
		Short: "Print the JSON Schema of rule files, for editors",
		Long: `Schema prints the JSON Schema of rule files. An editor with a YAML language
server then completes fields and marks mistakes while you write, if the first
line of a file names it:

  # yaml-language-server: $schema=rule.schema.json

A schema does not see into CEL, pointers and selectors: what it accepts may still
be refused when it is loaded.`,
		Example:   "  rectifier schema > rule.schema.json",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"rule"}, // rule files are the default
		RunE: func(*cobra.Command, []string) error {
			text, err := rules.JSONSchema()
			if err != nil {
				return fmt.Errorf("make the schema: %w", err)
			}
			if _, err := s.out.Write(text); err != nil {
				return fmt.Errorf("print the schema: %w", err)
			}
			return nil
		},
	}
}
