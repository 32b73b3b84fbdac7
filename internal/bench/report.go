package main

import (
	"context"
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

func newReport(ctx context.Context, s *suite) *report {
	r := &report{s, lookAround(ctx, s.root)}
	r.took = time.Since(s.begun)
	return r
}

// table is rows of cells, the first of which is the head.
type table [][]string

// bars are the verdicts as a table.
func (r *report) barsTable() table {
	t := table{{"measure", "bar", "ours", "the other", "ratio", "holds"}}
	for _, b := range r.plan.bars() {
		v, measured := r.judge(b)
		if !measured {
			continue
		}
		subject := b.of.name
		if b.whose != "" {
			subject += " (" + b.whose + ")"
		}
		other, ratio, holds := "", fmt.Sprintf("%.2f", v.ratio), "yes"
		if b.against != "" {
			other = v.other.write(b.of.unit)
		}
		if b.equal {
			ratio = ""
		}
		if !v.holds {
			holds = "NO"
		}
		t = append(t, []string{subject, b.text(), v.value.write(b.of.unit), other, ratio, holds})
	}
	return t
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
	for _, t := range []table{r.figuresTable(), r.barsTable()} {
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range t {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush() // into memory
		fmt.Fprintln(&b)
	}
	return b.String()
}

// where says where and when it was measured, a line for each.
func (r *report) where() []string {
	return []string{
		fmt.Sprintf("processor: %s, %d cores; memory: %s; %s", r.processor, r.cores, r.circumstances.memory, r.system),
		fmt.Sprintf("%s; Kubernetes %s, with etcd, on the same machine", r.goVersion, r.kubernetes),
		fmt.Sprintf("commit: %s; date: %s; it took %s", r.commit, r.date.Format("2006-01-02 15:04 MST"), r.took.Round(time.Second)),
		fmt.Sprintf("medians of %d interleaved rounds (smallest..largest)", r.runs),
	}
}
