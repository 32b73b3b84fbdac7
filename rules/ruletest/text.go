package ruletest

import (
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/rectifier-dev/rectifier/rules"
)

// PrintText prints a report as `go test` would: what failed, and a line for
// each file. verbose adds the cases that passed, and rules that no case shows
// at work. There are no times in it: the same report gives the same text.
func PrintText(w io.Writer, r Report, verbose bool) error {
	p := &printer{w: w}
	for _, f := range r.Files {
		for _, t := range f.Tests {
			for _, c := range t.Cases {
				p.result(t.Name+"/"+c.Name, c, verbose)
			}
		}
		p.file(f)
	}
	if len(r.Unpatched) > 0 && verbose {
		p.printf("note: no case is patched by %s\n", strings.Join(r.Unpatched, ", "))
	}
	return p.err
}

// printer remembers the first error of its writer.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		// Values of objects are no business of the terminal.
		_, p.err = io.WriteString(p.w, printable(fmt.Sprintf(format, args...)))
	}
}

func (p *printer) file(f FileReport) {
	counts := f.Counts()
	result, sum := "ok  ", plural(counts.Cases, "case")
	if counts.Failed > 0 {
		result, sum = "FAIL", fmt.Sprintf("%d of %s failed", counts.Failed, sum)
	}
	if counts.Problems > 0 {
		result, sum = "FAIL", strings.TrimPrefix(sum+", ", "0 cases, ")+plural(counts.Problems, "problem")
	}
	p.printf("%s %s  %s\n", result, f.Name, sum)
}

func (p *printer) result(name string, c CaseReport, verbose bool) {
	if len(c.Failures) == 0 {
		if verbose {
			p.printf("--- PASS: %s  (%s)\n", name, c.Summary())
		}
		return
	}
	p.printf("--- FAIL: %s\n", name)
	for _, f := range c.Failures {
		p.printf("%s", indent(f.Text(), "    "))
	}
}

// Summary says in a few words what the rules made of the object.
func (c CaseReport) Summary() string {
	switch {
	case c.Outcome == rules.Patch:
		return "Patch by " + strings.Join(c.Patched, ", ")
	case c.Reason == "":
		return string(c.Outcome)
	}
	return string(c.Outcome) + ": " + c.Reason
}

// Text gives a failure as lines: where and what, then what was wanted after -
// and what there is after +.
func (f Failure) Text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: ", f.Pos)
	if f.Field != "" {
		s.WriteString(f.Field + ": ")
	}
	s.WriteString(f.Message)
	if f.Want == "" && f.Got == "" || f.Field == "expect.outcome" {
		return s.String() + "\n"
	}
	s.WriteString(" (-want +got)\n")
	s.WriteString(indent(compared(f.Want, f.Got), "  "))
	return s.String()
}

// compared is a diff of two texts: the lines of the one after -, those of the
// other after +, what both have after a blank.
func compared(want, got string) string {
	if want == got { // both are hidden
		return indent(want, "- ") + indent(got, "+ ")
	}
	var s strings.Builder
	changed := false
	for line := range strings.Lines(string(diff.Diff("want", []byte(want+"\n"), "got", []byte(got+"\n")))) {
		switch {
		case !changed:
			changed = strings.HasPrefix(line, "@@") // all before that are names
		case strings.HasPrefix(line, "@@"):
			s.WriteString("  …\n")
		default:
			s.WriteString(line[:1] + " " + line[1:])
		}
	}
	return s.String()
}

// indent puts a prefix before each line of a text, and ends it with a newline.
func indent(text, prefix string) string {
	var s strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		s.WriteString(prefix + line + "\n")
	}
	return s.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
