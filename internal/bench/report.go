package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run says.
type report struct {
	*suite
	circumstances
}

func newReport(s *suite) *report {
	r := &report{s, lookAround()}
	r.took = time.Since(s.begun)
	return r
}

// table is rows of cells, the first of which is the head.
type table [][]string

// bars are the verdicts as a table.
func (r *report) barsTable() table {
	t := table{{"measure", "bar", "ours", "the other", "ours / the other", "share of the bar", "holds"}}
	for _, b := range r.plan.bars() {
		v, measured := r.judge(b)
		if measured {
			t = append(t, v.row())
		}
	}
	return t
}

// row is a row of that table.
func (v verdict) row() []string {
	b := v.bar
	subject := b.of.name
	if b.whose != "" {
		subject += " (" + b.whose + ")"
	}
	other, ratio, share, holds := "", "", fmt.Sprintf("%.0f %%", 100*v.share), "yes"
	if b.against != "" {
		other, ratio = v.other.write(b.of.unit), fmt.Sprintf("%.2f", v.ratio)
	}
	if b.equal {
		share = ""
	}
	if !v.holds {
		holds = "NO"
	}
	return []string{subject, b.text(), v.value.write(b.of.unit), other, ratio, share, holds}
}

// order is that of contenders in tables.
var order = []string{ours, oursWhole, cacheAlone, typedJSON, typedProtobuf, plainDynamic, patchLoop, patchLoopWatched, servers[0], servers[1]}

// figuresTable is all that was measured: a row for each measure, a column for each
// contender that has one of these.
func (r *report) figuresTable() table {
	contenders := slices.DeleteFunc(slices.Clone(order), func(name string) bool {
		return !slices.ContainsFunc(r.measures, func(m measure) bool { return len(r.values[m][name]) > 0 })
	})
	t := table{append([]string{"measure"}, contenders...)}
	for _, m := range r.measures {
		row := []string{m.name}
		for _, name := range contenders {
			cell := ""
			if f, ok := r.of(m, name); ok {
				cell = f.write(m.unit)
			}
			row = append(row, cell)
		}
		t = append(t, row)
	}
	return t
}

// text is the report for a terminal.
func (r *report) text() string {
	var b strings.Builder
	for _, line := range r.where() {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintln(&b)
	r.figuresTable().write(&b)
	switch {
	case r.quick:
		fmt.Fprintln(&b, "The bars are not judged: with so few objects and updates they say nothing.")
	case r.runs < meaningful:
		fmt.Fprintf(&b, "Of fewer than %d rounds: a NO may be chance.\n", meaningful)
		r.barsTable().write(&b)
	default:
		r.barsTable().write(&b)
	}
	return b.String()
}

// write writes a table for a terminal, and an empty line.
func (t table) write(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // into memory
	fmt.Fprintln(b)
}

// where says where and when it was measured, a line for each.
func (r *report) where() []string {
	return []string{
		fmt.Sprintf("processor: %s, %d cores; memory: %s; %s", r.processor, r.cores, r.circumstances.memory, r.system),
		fmt.Sprintf("%s; Kubernetes %s, with etcd, on the same machine", r.goVersion, r.kubernetes),
		fmt.Sprintf("commit: %s; date: %s; it took %s", r.suite.commit, r.date.Format("2006-01-02 15:04 MST"), r.took.Round(time.Second)),
		fmt.Sprintf("medians of %d interleaved rounds (smallest..largest); of the scenarios %s: of %d", r.runs, strings.Join(scenariosOfFew, ", "), r.few()),
	}
}
