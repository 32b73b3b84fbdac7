package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/ruletest"
)

// schemas are the formats that have a JSON Schema.
var schemas = map[string]func() ([]byte, error){"rule": rules.JSONSchema, "ruletest": ruletest.JSONSchema}

func newSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [rule|ruletest]",
		Short: "Print the JSON Schema of rule files or test files, for editors",
		Long: `Schema prints the JSON Schema of rule files, or of the files of their tests. An
editor with a YAML language server then completes fields and marks mistakes
while you write, if the first line of a file names it:

  # yaml-language-server: $schema=rule.schema.json

A schema does not see into CEL, pointers and selectors: what it accepts may still
be refused when it is loaded.`,
		Example: `  rectifier schema > rule.schema.json
  rectifier schema ruletest > ruletest.schema.json`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{"rule", "ruletest"},
		RunE: func(_ *cobra.Command, args []string) error {
			name := "rule" // without an argument
			if len(args) > 0 {
				name = args[0]
			}
			schema, ok := schemas[name]
			if !ok {
				return &exitError{exitUsage, fmt.Errorf("there is no schema of %q: it is rule or ruletest", name)}
			}
			text, err := schema()
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
