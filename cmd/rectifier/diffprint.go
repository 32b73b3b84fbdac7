package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/objectdiff"
)

// diffPrinter prints differences as they are found: the diff to out, what there
// is to say about it to err.
type diffPrinter struct {
	streams
	text     bool // the format is text: diffs are printed
	colour   bool
	progress *progress // through which everything is told
	err      error     // of printing to out: nothing is printed after it
	nothing  bool      // was looked at: there is nothing to count
}

func newDiffPrinter(s streams, text, colour bool) *diffPrinter {
	p := &diffPrinter{streams: s, text: text, colour: colour, progress: newProgress(s.err)}
	p.streams.err = p.progress
	return p
}

// tell says something on standard error.
func (p *diffPrinter) tell(format string, args ...any) {
	fmt.Fprintf(p.streams.err, format, args...)
}

// diff prints a unified diff.
func (p *diffPrinter) diff(unified []byte) {
	if p.err != nil || len(unified) == 0 {
		return
	}
	p.progress.clear()
	if p.colour {
		unified = objectdiff.Colour(unified)
	}
	_, p.err = p.out.Write(unified)
}

// liveDiff prints how a live object changes.
func (p *diffPrinter) liveDiff(c *objectChange) {
	p.objectDiff("live/"+c.String(), "fixed/"+c.String(), c)
}

// objectDiff prints how an object changes, as YAML with sorted keys.
func (p *diffPrinter) objectDiff(oldName, newName string, c *objectChange) {
	if !p.text || p.err != nil {
		return
	}
	old, changed := c.masks()
	before, err := yaml.Marshal(old.Object(c.before))
	if err != nil {
		p.err = err
		return
	}
	after, err := yaml.Marshal(changed.Object(c.after))
	if err != nil {
		p.err = err
		return
	}
	p.diff(objectdiff.Unified(objectdiff.Label(oldName), objectdiff.Label(newName), before, after))
}

// findings tells which rules change an object and why, or fail on it.
func (p *diffPrinter) findings(c *objectChange) {
	where := c.where()
	for _, o := range c.Rules {
		switch o.Outcome {
		case outcomeError:
			p.tell("%s: rule %s failed: %s\n", where, o.Rule, o.Error)
		case outcomeRefused:
			p.tell("%s: rule %s: the API server refuses the change: %s\n", where, o.Rule, o.Error)
		case outcomeAudit:
			p.tell("%s: rule %s would change it (Audit): %s\n", where, o.Rule, o.Event.Message)
		default:
			p.tell("%s: %s: %s\n", where, o.Rule, o.Event.Message)
		}
	}
	if c.Error != "" {
		p.tell("%s: %s\n", where, c.Error)
	}
	if len(c.Server) > 0 {
		var ops []string
		for _, op := range c.Server {
			ops = append(ops, op.Op+" "+op.Path.String())
		}
		p.tell("%s: the API server makes something else of it: %s\n", where, strings.Join(ops, ", "))
	}
}

// summary prints the counts, by rule and of all.
func (p *diffPrinter) summary(r *diffReport) {
	w := tabwriter.NewWriter(p.streams.err, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RULE\tCHANGED\tAUDIT\tFAILED")
	for _, c := range r.Rules {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", c.Rule, c.Changed, c.Audited, c.Failed)
	}
	_ = w.Flush() // what cannot be said on standard error can be said nowhere
	alone := ""
	if r.Summary.LeftAlone > 0 {
		alone = fmt.Sprintf(", left alone %d (they ask for it)", r.Summary.LeftAlone)
	}
	p.tell("%s, %d matched, %d would change, %s%s\n",
		count(r.Summary.Objects, "object", "objects"), r.Summary.Matched, r.Summary.Changed, count(r.Summary.Failed, "failure", "failures"), alone)
	if r.Summary.Matched == 0 && r.Summary.LeftAlone == 0 {
		p.tell("warning: 0 objects matched; the rules are about %s\n", r.about)
	}
	for _, note := range r.Notes {
		p.tell("note: %s\n", note)
	}
}

// colourFlag is --color.
type colourFlag struct{ value string }

var colourModes = []string{"auto", "always", "never"}

func (f *colourFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.value, "color", colourModes[0], "`WHEN` the diff is coloured: auto (on a terminal, unless $NO_COLOR is set), always, never")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colourModes, cobra.ShellCompDirectiveNoFileComp))
}

func (f *colourFlag) check() error {
	for _, mode := range colourModes {
		if f.value == mode {
			return nil
		}
	}
	return fmt.Errorf("--color is one of %s, not %q", strings.Join(colourModes, ", "), f.value)
}

// on reports whether what is written to w is to be coloured.
func (f *colourFlag) on(w io.Writer) bool {
	if f.value == "auto" {
		return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
	}
	return f.value == "always"
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
