package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// outputFlag is -o: how a command prints what it found. It never changes the
// verdict.
type outputFlag struct {
	value   string
	formats []string // the first is the default
}

func (f *outputFlag) add(cmd *cobra.Command, formats ...string) {
	f.formats = formats
	cmd.Flags().StringVarP(&f.value, "output", "o", formats[0], "`FORMAT` of what is printed: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses a format that the command does not have.
func (f *outputFlag) check() error {
	if !slices.Contains(f.formats, f.value) {
		return &exitError{exitUsage, fmt.Errorf("--output is one of %s, not %q", strings.Join(f.formats, ", "), f.value)}
	}
	return nil
}

// printData prints a value as the formats json and yaml have it: its json tags
// name the fields.
func printData(s streams, format string, v any) error {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // CEL is full of && and <
	err := encoder.Encode(v)
	if err != nil {
		return fmt.Errorf("make the output: %w", err)
	}
	text := buffer.Bytes()
	if format == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return fmt.Errorf("make the output: %w", err)
		}
	}
	_, err = s.out.Write(text)
	return err
}
