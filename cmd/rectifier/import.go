package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/importer"
)

func newImport(s streams) *cobra.Command {
	var o importer.Options
	cmd := &cobra.Command{
		Use:   "import PATH…",
		Short: "Turn admission policies into rules for the objects that exist already",
		Long: `Import prints rules that give existing objects what an admission policy gives
new ones. It reads MutatingAdmissionPolicy with its bindings
(admissionregistration.k8s.io) and Kyverno's MutatingPolicy (policies.kyverno.io).
A PATH is a file, a folder (recursive), or - for standard input.

What cannot be carried over, such as what reads the request, is listed on
standard error with its position and a reason, and the exit code is 1. Notes
there tell where a rule differs from admission by its nature.`,
		Example: `  rectifier import policy.yaml binding.yaml > rules/policy.yaml
  kubectl get mutatingadmissionpolicies,mutatingadmissionpolicybindings -o yaml | rectifier import -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error { return runImport(paths, o, s) },
	}
	cmd.Flags().BoolVar(&o.Unbound, "unbound", false, "import a MutatingAdmissionPolicy without a binding as if one bound it everywhere")
	return cmd
}

// noteUnsettled names the rules that never come to rest on existing objects:
// admission runs a policy once for each request, a rule until nothing changes.
func noteUnsettled(text string, s streams) error {
	set, problems := rules.Load(rules.Source{Name: "imported", Data: []byte(text)})
	if len(problems) > 0 {
		return fmt.Errorf("load the imported rules: %w", problems[0])
	}
	catalog, err := gvr.NewCatalog()
	if err != nil {
		return err
	}
	for _, r := range set.All() {
		if offline.NeverRests(r, catalog, openapi.Builtin()) {
			fmt.Fprintf(s.err, "rule %s: note: it does not come to a fixed point: it changes its own result again, so it will be named and write nothing; add a condition that is false once the change is made\n", r.Name)
		}
	}
	return nil
}

func runImport(paths []string, o importer.Options, s streams) error {
	files, err := input.Read(paths, s.in, yamldoc.ManifestLimits.MaxBytes)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("read the policies: %w", err)}
	}
	result := importer.Import(files, o)
	for _, err := range result.Unreadable {
		fmt.Fprintln(s.err, "rectifier:", err)
	}
	for _, f := range result.Findings {
		fmt.Fprintln(s.err, f)
	}
	if err := noteUnsettled(result.YAML(), s); err != nil {
		return err
	}
	if _, err := io.WriteString(s.out, result.YAML()); err != nil {
		return fmt.Errorf("print the rules: %w", err)
	}
	if result.Policies > 0 {
		summary := count(result.Policies, "policy", "policies") + ", " + count(len(result.Rules), "rule", "rules")
		if result.Dropped > 0 {
			summary += fmt.Sprintf(", %d not carried over", result.Dropped)
		}
		fmt.Fprintln(s.err, summary)
	}
	switch {
	case len(result.Unreadable) > 0:
		return &exitError{code: exitUsage}
	case result.Lost():
		return &exitError{code: exitFindings}
	case result.Policies == 0:
		return &exitError{exitUsage, errors.New("there is no policy in the input")}
	}
	return nil
}
