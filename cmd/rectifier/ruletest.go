package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rectifier-dev/rectifier/internal/offline"
	"github.com/rectifier-dev/rectifier/rules/ruletest"
)

type testFlags struct {
	run     string
	verbose bool
	output  outputFlag
}

func newTest(s streams) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test PATH…",
		Short: "Run the tests of rules, offline",
		Long: `Test runs RuleTest files: each case is an object, and what the rules must make
of it. A PATH is a file, a folder (recursive), or - for standard input. In
folders, files without a RuleTest are passed over. Paths in a test are relative
to its file.

Each case checks by itself that the object was not modified, that what would be
sent makes the result, and that the rules leave their own result alone.

The exit code is 1 if a case failed, 2 if a test, or what it names, cannot be
read.`,
		Example: `  rectifier test rules/
  rectifier test rules/ --run 'expected-replicas/.*autoscaler' -v
  rectifier test rules/ -o junit > report.xml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, paths []string) error { return f.test(paths, s) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.run, "run", "", "run only the cases whose TEST/CASE matches the regular expression `REGEXP`")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print cases that pass, too, and name rules that no case shows at work")
	f.output.add(cmd, "text", "json", "yaml", "junit")
	return cmd
}

func (f *testFlags) test(paths []string, s streams) error {
	if err := f.output.check(); err != nil {
		return err
	}
	only, err := regexp.Compile(f.run)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("--run: %w", err)}
	}
	files, err := ruletest.Read(paths, s.in)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("read the tests: %w", err)}
	}
	if len(files) == 0 {
		return &exitError{exitUsage, fmt.Errorf("there is no test in %s", strings.Join(paths, ", "))}
	}
	report := offline.RunTests(files, only.MatchString)
	for _, file := range report.Files {
		for _, p := range file.Problems {
			fmt.Fprintln(s.err, p.Detail())
		}
	}
	if err := f.print(report, s); err != nil {
		return err
	}
	counts := report.Counts()
	fmt.Fprintf(s.err, "%s, %s, %d failed%s\n", count(len(report.Files), "file", "files"), count(counts.Cases, "case", "cases"),
		counts.Failed, problemCount(counts.Problems))
	switch {
	case counts.Problems > 0:
		return &exitError{code: exitUsage}
	case counts.Cases == 0:
		return &exitError{exitUsage, errors.New("no case matches --run " + f.run)}
	case counts.Failed > 0:
		return &exitError{code: exitFindings}
	}
	return nil
}

func problemCount(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + count(n, "problem", "problems")
}

func (f *testFlags) print(report ruletest.Report, s streams) error {
	var err error
	switch f.output.value {
	case "text":
		err = ruletest.PrintText(s.out, report, f.verbose)
	case "junit":
		err = ruletest.PrintJUnit(s.out, report)
	default:
		err = printData(s, f.output.value, report.Data())
	}
	if err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}
