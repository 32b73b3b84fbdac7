package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rectifier-dev/rectifier/rules/lint"
)

// lintReport is the shape of -o json and yaml.
type lintReport struct {
	Rules    int           `json:"rules"`
	Findings []lintFinding `json:"findings"`
	Ignored  int           `json:"ignored"`
}

type lintFinding struct {
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Column   int           `json:"column"`
	ID       string        `json:"id"`
	Severity lint.Severity `json:"severity"`
	Rule     string        `json:"rule,omitempty"`
	Message  string        `json:"message"`
}

func printLint(s streams, format string, report lint.Report) error {
	var err error
	switch format {
	case "json", "yaml":
		out := lintReport{Rules: report.Rules, Findings: []lintFinding{}, Ignored: report.Ignored}
		for _, f := range report.Findings {
			at := f.Problem.Pos
			out.Findings = append(out.Findings, lintFinding{at.File, at.Line, at.Column, f.Check.ID, f.Check.Severity, f.Problem.Rule, f.Problem.Msg})
		}
		err = printData(s, format, out)
	case "github":
		err = printAnnotations(s.out, report)
	default:
		for _, f := range report.Findings {
			text := fmt.Sprintf("%s: %s   [%s]\n", f.Problem.Pos, f.Problem.Msg, f.Check.ID)
			if excerpt := f.Problem.Excerpt(); excerpt != "" {
				text += excerpt + "\n"
			}
			if _, err = io.WriteString(s.out, text); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("print the problems: %w", err)
	}
	summary := count(report.Rules, "rule", "rules") + ", " + count(len(report.Findings), "problem", "problems")
	if report.Ignored > 0 {
		summary += fmt.Sprintf(", %d ignored", report.Ignored)
	}
	fmt.Fprintln(s.err, summary)
	return nil
}

// printAnnotations prints the findings as workflow commands, which GitHub shows
// beside the lines of a pull request.
func printAnnotations(out io.Writer, report lint.Report) error {
	for _, f := range report.Findings {
		at := f.Problem.Pos
		_, err := fmt.Fprintf(out, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", f.Check.Severity,
			workflowProperty.Replace(at.File), at.Line, at.Column, workflowProperty.Replace(f.Check.ID), workflowData.Replace(f.Problem.Msg))
		if err != nil {
			return err
		}
	}
	return nil
}

// How workflow commands write what would end a message or a property.
var (
	workflowData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	workflowProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

type lintCheck struct {
	ID       string        `json:"id"`
	Severity lint.Severity `json:"severity"`
	Summary  string        `json:"summary"`
}

// printChecks prints the checks that there are, by ID.
func printChecks(s streams, format string) error {
	var all []lintCheck
	for _, c := range lint.Sorted() {
		all = append(all, lintCheck{c.ID, c.Severity, c.Summary})
	}
	if format == "json" || format == "yaml" {
		return printData(s, format, all)
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSEVERITY\tSUMMARY")
	for _, c := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.ID, c.Severity, c.Summary)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the checks: %w", err)
	}
	return nil
}
