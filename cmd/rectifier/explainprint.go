package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// maxShown is how many characters of a value are shown in a text; -o json and
// yaml show all.
const maxShown = 100

// printExplanations prints a report for people.
func printExplanations(w io.Writer, r explainReport) error {
	var p explainPrinter
	for i, o := range r.Objects {
		if i > 0 {
			p.text.WriteByte('\n')
		}
		p.object(o)
	}
	p.ruleCosts(r.Rules)
	_, err := w.Write(p.text.Bytes())
	return err
}

type explainPrinter struct{ text bytes.Buffer }

// maxLine is how wide a line may be, if its columns can stand on several.
const maxLine = 120

// line writes a line of columns, two blanks for each level before it and three
// between the columns. What is empty is left out.
func (p *explainPrinter) line(level int, columns ...string) {
	columns = slices.DeleteFunc(columns, func(c string) bool { return c == "" })
	p.text.WriteString(strings.TrimRight(strings.Repeat("  ", level)+strings.Join(columns, "   "), " ") + "\n")
}

// values is line for columns that hold values: what does not fit goes on a line of
// its own below.
func (p *explainPrinter) values(level int, columns ...string) {
	line, begun := strings.Repeat("  ", level), false
	for _, c := range columns {
		switch {
		case c == "":
			continue
		case begun && utf8.RuneCountInString(line)+3+utf8.RuneCountInString(c) > maxLine:
			p.text.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat("  ", level+2) + c
		case begun:
			line += "   " + c
		default:
			line += c
		}
		begun = true
	}
	p.text.WriteString(strings.TrimRight(line, " ") + "\n")
}

// valued are the columns of an expression and its value: one, as long as the
// value is short, so that they stay together.
func valued(value, source string) []string {
	if len(value) > maxBeside {
		return []string{value, source}
	}
	return []string{pad(value, boolWidth) + "   " + source}
}

// maxBeside is how long a value may be that stays beside a long expression.
const maxBeside = 20

func (p *explainPrinter) object(o explainedObject) {
	where := ""
	if o.File != "" {
		where = fmt.Sprintf("(%s:%d:%d)", o.File, o.Line, o.Column)
	}
	p.line(0, o.String(), where)
	for _, note := range o.Notes {
		p.line(1, "note: "+note)
	}
	width := 0
	for _, r := range o.Rules {
		width = max(width, len(r.Rule))
	}
	for _, r := range o.Rules {
		p.rule(r, width)
	}
}

func (p *explainPrinter) rule(r explainedRule, width int) {
	outcome := r.Outcome
	if r.Mode == string(rules.Audit) && r.Outcome == string(rules.Patch) {
		outcome += " (Audit: nothing is written)"
	}
	why := r.Error
	if why == "" || r.Outcome == string(rules.Skip) {
		why = r.Reason
		if r.OptedOutUntil != "" {
			why += ", until " + r.OptedOutUntil
		}
		if r.Error != "" {
			why += ": " + r.Error
		}
	}
	p.line(1, pad(r.Rule, width), outcome, why)
	p.controller(r.Controller)
	p.cost(2, r.Cost)
	if !r.Matched {
		return
	}
	labels := newLabels(r)
	p.line(2, labels.pad("match"), "yes")
	for _, l := range r.Lookups {
		columns := []string{labels.pad("lookups." + l.Name), lookupText(l), l.Query, unless(l.Read, "(not read)")}
		if l.Objects != nil && len(columns[1]) > maxBeside {
			p.values(2, columns...)
		} else {
			p.line(2, columns...)
		}
	}
	for _, v := range r.Variables {
		p.expression(labels.pad("variables."+v.Name), &v.explainedPart, unless(v.Read, "(not read)"))
	}
	if r.Condition != nil {
		p.expression(labels.pad("condition"), r.Condition, "")
	}
	for _, c := range r.Patches {
		p.patch(labels.pad("patch"), c)
	}
	for _, failed := range r.Failed {
		p.part(3, failed)
	}
	if r.Event != nil {
		p.line(2, labels.pad("event"), oneLine(r.Event.Reason+": "+r.Event.Message))
	}
}

// labels are what stands before the details of one rule, padded to one width.
type labels int

func newLabels(r explainedRule) labels {
	width := len("condition")
	for _, l := range r.Lookups {
		width = max(width, len("lookups."+l.Name))
	}
	for _, v := range r.Variables {
		width = max(width, len("variables."+v.Name))
	}
	return labels(width)
}

func (l labels) pad(s string) string { return pad(s, int(l)) }

func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-len(s))) }

func unless(ok bool, text string) string {
	if ok {
		return ""
	}
	return text
}

// lookupText names the objects that were found.
func lookupText(l explainedLookup) string {
	switch {
	case l.Error != "":
		return "error: " + oneLine(l.Error)
	case l.Absent:
		return "[] (nothing can be found: a value that it needs is absent)"
	}
	var names []string
	for _, o := range *l.Objects {
		ref := refOf(o)
		name := ref.Name
		if ref.Namespace != "" {
			name = ref.Namespace + "/" + name
		}
		names = append(names, name)
	}
	return fmt.Sprintf("%s (%s)", cut("["+strings.Join(names, ", ")+"]"), count(len(names), "object", "objects"))
}

// expression prints a variable or the condition, with its parts.
func (p *explainPrinter) expression(label string, x *explainedPart, mark string) {
	if x.Error != "" {
		p.line(2, label, "error: "+oneLine(x.Error), mark)
	} else {
		p.values(2, label, show(*x.Value), mark)
	}
	switch {
	case mark != "": // it did not count
	case len(x.Parts) > 0 && x.Operator != "!": // what is negated must not stand there alone
		p.parts(3, x)
	case len(x.Parts) > 0 || x.Error != "" || strings.TrimSpace(label) == "condition":
		p.part(3, x)
	}
}

// parts prints the operands of a logical operator.
func (p *explainPrinter) parts(level int, x *explainedPart) {
	for _, part := range x.Parts {
		p.part(level, part)
	}
}

// part prints one part: what it gives, how it is written, and why. Of what did
// not count there is one line.
func (p *explainPrinter) part(level int, x *explainedPart) {
	switch {
	case x.NotNeeded && x.Error != "":
		p.values(level, append(valued("error", oneLine(x.Source)), "(not needed: "+oneLine(x.Error)+")")...)
		return
	case x.NotNeeded:
		p.values(level, slices.Concat(valued(show(*x.Value), oneLine(x.Source)), comparison(x), []string{"(not needed)"})...)
		return
	case x.Error != "":
		p.line(level, valued("error", oneLine(x.Source))...)
		if len(x.Parts) > 0 {
			p.parts(level+1, x)
			return
		}
		p.line(level+1, oneLine(x.Error), unless(x.Position == "", "at "+x.Position))
		for _, line := range lines(x.caret) {
			p.line(level+1, line)
		}
		return
	}
	p.values(level, append(valued(show(*x.Value), oneLine(x.Source)), comparison(x)...)...)
	p.parts(level+1, x)
}

// boolWidth is that of false and error.
const boolWidth = 5

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// comparison shows the values that a comparison or a call is about, where it is
// not true; long ones in columns of their own.
func comparison(x *explainedPart) []string {
	if len(x.Operands) == 0 || *x.Value == true {
		return nil
	}
	var values []string
	for _, o := range x.Operands {
		if o.Error != "" {
			return nil
		}
		values = append(values, show(*o.Value))
	}
	if r, _ := utf8.DecodeRuneInString(x.Operator); unicode.IsLetter(r) && x.Operator != "in" {
		return together("("+values[0], "."+x.Operator+"("+strings.Join(values[1:], ", ")+"))", "")
	}
	return together("("+values[0], x.Operator+" "+values[1]+")", " ")
}

// together joins what is short enough.
func together(left, right, glue string) []string {
	if utf8.RuneCountInString(left)+utf8.RuneCountInString(right) <= maxShown {
		return []string{left + glue + right}
	}
	return []string{left, right}
}

func (p *explainPrinter) patch(label string, c explainedPatch) {
	what := c.Kind
	if c.Subresource != "" {
		what += " to " + c.Subresource
	}
	switch {
	case c.Error != "":
		p.line(2, label, what+", error: "+oneLine(c.Error))
	case c.NotApplicable != "":
		p.line(2, label, what+": "+oneLine(c.NotApplicable))
	case len(c.Operations) == 0:
		p.line(2, label, what+", changes nothing")
	default:
		p.line(2, label, what+", "+count(len(c.Operations), "operation", "operations"))
	}
	for _, o := range c.Operations {
		p.values(3, fmt.Sprintf("%s %s", o.Op, o.Path), changeText(o))
	}
}

func changeText(o explainedChange) string {
	text := func(v *any) string {
		if v == nil {
			return ""
		}
		return show(*v)
	}
	switch {
	case o.Op == "test":
		return text(o.Value)
	case o.Op == "remove":
		return text(o.Before)
	case o.From != "":
		return "from " + o.From
	case o.Before != nil && o.Op == "replace":
		return text(o.Before) + " → " + text(o.Value)
	}
	return text(o.Value)
}

// show writes a value on one line, cut if it is long.
func show(v any) string {
	if opaque, ok := v.(expression.Opaque); ok {
		return cut(oneLine(string(opaque)))
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return cut(oneLine(fmt.Sprint(v)))
	}
	return cut(oneLine(strings.TrimSpace(b.String())))
}

// oneLine keeps line breaks and control characters of values and messages from
// the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func cut(s string) string {
	runes := []rune(s)
	if len(runes) <= maxShown {
		return s
	}
	end := maxShown - 1
	for i := end; i > maxShown/2; i-- { // between two elements, if there are some
		if runes[i-1] == ',' || runes[i-1] == ' ' {
			end = i
			break
		}
	}
	return string(runes[:end]) + "…"
}
