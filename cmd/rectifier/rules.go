package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

// ruleFlags say which rules a command uses.
type ruleFlags struct {
	paths   []string
	builtin []string
	only    []string
}

func (f *ruleFlags) add(cmd *cobra.Command, defaultBuiltin []string) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&f.paths, "rules", "r", nil, "rule `PATH`: a file, a folder (recursive), or - for standard input; may be repeated")
	flags.StringSliceVar(&f.builtin, "builtin", defaultBuiltin, "built-in rules by `NAME`, or none ("+strings.Join(builtin.Names(), ", ")+")")
	flags.StringSliceVar(&f.only, "rule", nil, "only the rules of this `NAME`, of those that are given; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("builtin", cobra.FixedCompletions(append(builtin.Names(), "none"), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("rule", f.completeNames)
}

// defaultLive makes the built-in rules of run the default where a command looks
// at a cluster: what it says must be what run does.
func (f *ruleFlags) defaultLive(cmd *cobra.Command) {
	if !cmd.Flags().Changed("builtin") {
		f.builtin = []string{builtin.Default}
	}
}

// tellDefaultLive says so in the help.
func tellDefaultLive(cmd *cobra.Command, when string) {
	cmd.Flags().Lookup("builtin").Usage += "; default " + when + ": " + builtin.Default + ", as for run; for files: none"
}

// noArguments refuses arguments: most likely they are meant as rules.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("it takes no arguments: give --rules %s", strings.Join(args, " --rules "))
}

// sources reads the rule files, and adds the built-in rules.
func (f *ruleFlags) sources(s streams) ([]rules.Source, error) {
	return f.withBuiltin(rules.Read(f.paths, s.in))
}

// withBuiltin adds the built-in rules to those of files, unless those could not
// be read.
func (f *ruleFlags) withBuiltin(files []rules.Source, err error) ([]rules.Source, error) {
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("read the rules: %w", err)}
	}
	sources := slices.Clip(files)
	for i, name := range f.builtin {
		if name == "none" || slices.Contains(f.builtin[:i], name) {
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

// load reads and compiles the rules. Problems are printed to s.err with their
// position; they are an error only if nothing is left to run. With --rule, the
// problems of other rules are nobody's business.
func (f *ruleFlags) load(s streams) (*rules.Set, []*rules.Problem, error) {
	set, _, problems, err := f.loadDefinitions(s)
	return set, problems, err
}

// loadDefinitions is load, and gives the rules beside their text.
func (f *ruleFlags) loadDefinitions(s streams) (*rules.Set, []*rules.Definition, []*rules.Problem, error) {
	sources, err := f.sources(s)
	if err != nil {
		return nil, nil, nil, err
	}
	return f.compile(s, sources)
}

// compile is loadDefinitions for sources that have been read.
func (f *ruleFlags) compile(s streams, sources []rules.Source) (*rules.Set, []*rules.Definition, []*rules.Problem, error) {
	set, definitions, problems := rules.LoadDefinitions(sources...)
	if err := f.checkChoice(set, problems); err != nil {
		return nil, nil, nil, err
	}
	set, problems = f.choose(set, problems)
	for _, p := range problems {
		fmt.Fprintln(s.err, p.Detail())
	}
	// A folder that was mistyped must not leave only a built-in rule, silently.
	fromFile := func(d *rules.Definition) bool { return !strings.HasPrefix(d.Doc.File, builtin.Prefix) }
	if len(f.paths) > 0 && len(problems) == 0 && !slices.ContainsFunc(definitions, fromFile) {
		return nil, nil, nil, &exitError{exitUsage, fmt.Errorf("there is no rule in %s", strings.Join(f.paths, ", "))}
	}
	if len(set.All()) == 0 {
		if len(problems) > 0 {
			return nil, nil, nil, &exitError{exitUsage, errors.New("no rule is left: see the problems above")}
		}
		return nil, nil, nil, &exitError{exitUsage, errors.New("there is no rule: name files with --rules, or a built-in one with --builtin")}
	}
	return set, definitions, problems, nil
}

// builtinOf are the names of the built-in rules in a set: who did not ask for them
// is to see that they are on.
func builtinOf(set *rules.Set) []string {
	out := []string{}
	for _, r := range set.All() {
		if strings.HasPrefix(r.Pos.File, builtin.Prefix) {
			out = append(out, r.Name)
		}
	}
	return out
}

// choose leaves the rules that --rule names, and the problems that may be
// theirs: a file that cannot be read may hold them. Without --rule it leaves all.
func (f *ruleFlags) choose(set *rules.Set, problems []*rules.Problem) (*rules.Set, []*rules.Problem) {
	if len(f.only) == 0 {
		return set, problems
	}
	problems = slices.DeleteFunc(slices.Clone(problems), func(p *rules.Problem) bool {
		return p.Rule != "" && !slices.Contains(f.only, p.Rule)
	})
	return set.Only(f.only...), problems
}

// checkChoice refuses a --rule that names no rule.
func (f *ruleFlags) checkChoice(set *rules.Set, problems []*rules.Problem) error {
	if unreadable(problems) {
		return nil
	}
	var known []string
	for _, r := range set.All() {
		known = append(known, r.Name)
	}
	for _, p := range problems {
		known = append(known, p.Rule)
	}
	for _, name := range f.only {
		switch {
		case slices.Contains(known, name):
		case slices.Contains(builtin.Names(), name):
			return &exitError{exitUsage, fmt.Errorf("--rule: %q is a built-in rule that is not given: give --builtin %s", name, name)}
		default:
			return &exitError{exitUsage, fmt.Errorf("--rule: there is no rule %q%s", name, suggest.DidYouMean(name, known))}
		}
	}
	return nil
}

// unreadable reports whether something cannot be read so far that its name is
// known.
func unreadable(problems []*rules.Problem) bool {
	return slices.ContainsFunc(problems, func(p *rules.Problem) bool { return p.Rule == "" })
}

// completeNames completes the names of the rules in the files that are given.
func (f *ruleFlags) completeNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	files := *f
	files.paths = slices.DeleteFunc(slices.Clone(f.paths), func(path string) bool { return path == "-" }) // that is the terminal
	sources, err := files.sources(streams{in: strings.NewReader("")})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	set, _ := rules.Load(sources...)
	var out []string
	for _, r := range set.All() {
		out = append(out, cobra.CompletionWithDesc(r.Name, firstLine(r.Description)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// firstLine is what of a text fits into a list.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
