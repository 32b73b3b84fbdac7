package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	lintdocs "github.com/rectifier-dev/rectifier/docs/lint"
	"github.com/rectifier-dev/rectifier/internal/suggest"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// lintReport is the shape of -o json and yaml.
type lintReport struct {
	Rules    int           `json:"rules"`
	Findings []lintFinding `json:"findings"`
	Ignored  int           `json:"ignored"`
	Notes    []string      `json:"notes"`
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

// printLint prints a report; live says that it is of what a cluster serves.
func printLint(s streams, format string, report lint.Report, live bool) error {
	var err error
	notes := lintNotes(report, live)
	switch format {
	case "json", "yaml":
		out := lintReport{Rules: report.Rules, Findings: []lintFinding{}, Ignored: report.Ignored, Notes: notes}
		for _, f := range report.Findings {
			at := f.Problem.Pos
			out.Findings = append(out.Findings, lintFinding{at.File, at.Line, at.Column, f.Check.ID, f.Check.Severity, f.Problem.Rule, f.Problem.Msg})
		}
		err = printData(s, format, out)
	case "github":
		err = printAnnotations(s.out, report)
	default:
		for _, f := range report.Findings {
			severity := ""
			if f.Check.Severity != lint.Error {
				severity = string(f.Check.Severity) + ": "
			}
			text := fmt.Sprintf("%s: %s%s   [%s]\n", f.Problem.Pos, severity, f.Problem.Msg, f.Check.ID)
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
	for _, note := range notes {
		fmt.Fprintln(s.err, "note:", note)
	}
	summary := count(report.Rules, "rule", "rules") + ", " + count(len(report.Findings), "problem", "problems")
	if report.Ignored > 0 {
		summary += fmt.Sprintf(", %d ignored", report.Ignored)
	}
	fmt.Fprintln(s.err, summary)
	return nil
}

// lintNotes tell what could not be checked.
func lintNotes(report lint.Report, live bool) []string {
	out := []string{}
	for _, u := range report.Unknown {
		text := "no schema for " + rules.ResourceName(u.Resource)
		if u.Group != "" {
			text += fmt.Sprintf(" (did you mean group %s?)", u.Group)
		}
		text += fmt.Sprintf(": fields and types of rule %s are not checked", u.Rule)
		if !live {
			text += "; give --crds or --cluster"
		}
		out = append(out, text)
	}
	return out
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
		lines := wrap(c.Summary, summaryWidth)
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.ID, c.Severity, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(table, "\t\t%s\n", line)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the checks: %w", err)
	}
	return nil
}

// summaryWidth is how wide a summary in the list of checks is, so that a line
// is not much longer than a terminal is wide.
const summaryWidth = 60

// wrap breaks a text at blanks into lines of at most width runes, as far as its
// words are that short.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}

// checkIDs are those of all checks, with their summaries where they are
// completed.
func checkIDs(described bool) []string {
	var out []string
	for _, c := range lint.Sorted() {
		if described {
			out = append(out, cobra.CompletionWithDesc(c.ID, c.Summary))
			continue
		}
		out = append(out, c.ID)
	}
	return out
}

// explainCheck prints the page of a check.
func explainCheck(s streams, id string) error {
	page, ok := lintdocs.Page(id)
	if !ok || lint.Find(id) == nil {
		return &exitError{exitUsage, fmt.Errorf("there is no check %q%s", id, suggest.DidYouMean(id, checkIDs(false)))}
	}
	if _, err := io.WriteString(s.out, page); err != nil {
		return fmt.Errorf("print the page: %w", err)
	}
	return nil
}
