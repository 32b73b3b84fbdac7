package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
	"github.com/rectifier-dev/rectifier/rules/lint"
	"github.com/rectifier-dev/rectifier/rules/ruletest"
)

type lintFlags struct {
	builtin []string
	crds    []string
	failOn  string
	list    bool
	explain string
	output  outputFlag
	live    lintCluster
}

func newLint(s streams) *cobra.Command {
	var f lintFlags
	cmd := &cobra.Command{
		Use:   "lint PATH…",
		Short: "Find what is wrong with rules before they run",
		Long: `Lint finds what is wrong with rules, as far as that can be known before they
run: what keeps a rule from loading, and what loads but is a known trap. A PATH
is a file, a folder (recursive), or - for standard input. A folder may hold
manifests beside rules; CRDs among them are used like those of --crds.

Each problem has the ID of the check that found it. --explain ID tells what the
check finds and what to write instead; a comment at the line, above it, or at
the head of the rule silences it:

  # rectifier:ignore ID reason

With --cluster, resources and schemas are those of the live cluster; lint only
reads what it serves.

The exit code is 1 if a problem was found, 2 if there is no rule or a PATH
cannot be read, 3 if the cluster could not be reached or refused.`,
		Example: `  rectifier lint rules/
  rectifier lint --crds crds/ --fail-on error -o github rules/
  rectifier lint --cluster rules/
  rectifier lint --list
  rectifier lint --explain optional-field`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := f.live.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), paths, s)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.crds, "crds", nil, "`PATH` of CRD manifests: schemas, scope and subresources of custom resources; may be repeated")
	flags.StringSliceVar(&f.builtin, "builtin", nil, "also check built-in rules, by `NAME` ("+strings.Join(builtin.Names(), ", ")+")")
	flags.StringVar(&f.failOn, "fail-on", string(lint.Warning), "the least `SEVERITY` that makes the exit code 1: "+strings.Join(severities, ", "))
	flags.StringVar(&f.explain, "explain", "", "print what the check `ID` finds and why, and end")
	flags.BoolVar(&f.list, "list", false, "print all checks with their severity, and end")
	f.output.add(cmd, "text", "json", "yaml", "github")
	f.live.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("explain", cobra.FixedCompletions(checkIDs(true), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(severities, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("builtin", cobra.FixedCompletions(builtin.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// severities are the values of --fail-on.
var severities = []string{string(lint.Warning), string(lint.Error)}

func (f *lintFlags) run(ctx context.Context, paths []string, s streams) error {
	switch {
	case f.output.check() != nil:
		return f.output.check()
	case !slices.Contains(severities, f.failOn):
		return &exitError{exitUsage, fmt.Errorf("--fail-on is %s, not %q%s", strings.Join(severities, " or "), f.failOn, suggest.DidYouMean(f.failOn, severities))}
	case f.list:
		return printChecks(s, f.output.value)
	case f.explain != "":
		return explainCheck(s, f.explain)
	case len(paths) == 0 && !slices.ContainsFunc(f.builtin, func(name string) bool { return name != "none" }):
		return &exitError{exitUsage, errors.New("there is nothing to check: name rule files or folders, or a built-in rule with --builtin")}
	}
	if err := oneStdin(paths, f.crds); err != nil {
		return err
	}
	sources, err := f.sources(paths, s)
	if err != nil {
		return err
	}
	known, err := f.known(ctx, sources, s)
	if err != nil {
		return err
	}
	report := lint.RunTested(known, testInputs(paths), sources...)
	if report.Rules == 0 && len(report.Findings) == 0 {
		return &exitError{exitUsage, fmt.Errorf("there is no rule in %s", strings.Join(paths, ", "))}
	}
	if err := printLint(s, f.output.value, report, f.live.asked); err != nil {
		return err
	}
	if slices.ContainsFunc(report.Findings, f.fails) {
		return &exitError{code: exitFindings}
	}
	return nil
}

// fails reports whether a finding counts for the exit code.
func (f *lintFlags) fails(found *lint.Finding) bool {
	return f.failOn == string(lint.Warning) || found.Check.Severity == lint.Error
}

func (f *lintFlags) sources(paths []string, s streams) ([]rules.Source, error) {
	sources, err := rules.Read(paths, s.in)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("read the rules: %w", err)}
	}
	for _, name := range f.builtin {
		if name == "none" {
			continue
		}
		source, err := builtin.Source(name)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// known says what is known of resources: of the built-in ones, of those in
// --crds, and of those whose CRDs stand beside the rules; or what a cluster
// knows.
func (f *lintFlags) known(ctx context.Context, sources []rules.Source, s streams) (lint.Known, error) {
	if f.live.asked {
		return f.live.known(ctx)
	}
	var files []*manifest.File
	if len(f.crds) > 0 {
		given, err := readManifests("CRDs", f.crds, s)
		if err != nil {
			return nil, err
		}
		if files = given; len(definitions(files)) == 0 {
			return nil, &exitError{exitUsage, fmt.Errorf("there is no CRD in %s", strings.Join(f.crds, ", "))}
		}
	}
	for _, source := range sources {
		if !bytes.Contains(source.Data, []byte("CustomResourceDefinition")) {
			continue
		}
		// What cannot be read is told by the check of the file.
		if file, err := manifest.Parse(source.Name, source.Data); err == nil {
			files = append(files, file)
		}
	}
	crds := definitions(files)
	catalog, err := gvr.NewCatalog(crds...)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	types, err := openapi.NewCRDs(crds...)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return lintKnown{offline.Known{Catalog: catalog, Types: openapi.Join(types, openapi.Builtin())}, crds}, nil
}

// testInputs are the objects of the RuleTests in the paths. What is wrong with
// tests is told by `rectifier test`.
func testInputs(paths []string) []rules.Input {
	paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == "-" }) // it has been read
	files, err := ruletest.Read(paths, strings.NewReader(""))
	if err != nil {
		return nil
	}
	return offline.TestInputs(files)
}

// lintKnown is what is known without a cluster, with the groups of CRDs.
type lintKnown struct {
	offline.Known
	crds []map[string]any
}

// Groups implements lint.Groups.
func (k lintKnown) Groups() []string {
	var out []string
	for _, crd := range k.crds {
		spec, _ := crd["spec"].(map[string]any)
		if group, _ := spec["group"].(string); group != "" && !slices.Contains(out, group) {
			out = append(out, group)
		}
	}
	return out
}

// definitions are the CRDs in files. Of several with one name the first counts:
// that of --crds, or of any of the folders that each bring theirs.
func definitions(files []*manifest.File) []map[string]any {
	var out []map[string]any
	seen := map[string]bool{}
	for _, file := range files {
		for _, o := range file.Objects() {
			value := o.Value()
			if value["kind"] != "CustomResourceDefinition" {
				continue
			}
			metadata, _ := value["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			if name == "" || !seen[name] {
				out = append(out, value)
			}
			seen[name] = true
		}
	}
	return out
}
