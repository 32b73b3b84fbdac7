package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// introduction explains the page; what is measured, and how.
const introduction = `# Benchmarks

<!-- Written by ` + "`make bench`" + `: do not edit. -->

What Rectifier costs beside a controller that is written by hand for one job, on a real API server. ` + "`make bench`" + ` runs all of it again and writes this page; what
follows from it for larger clusters is on [another one](scale.md).

The contenders, each a process of its own, take turns:

- **rectifier**: ` + "`bin/rectifier run`" + ` with its [built-in rule](../rules/builtin/expected-replicas.yaml), without its limit of writes. **--full-objects** is the same, with whole objects in the cache.
- **typed**: [the same job by hand](../internal/bench/typed): typed informers with WatchList, managedFields stripped, updates that change neither spec nor annotation not enqueued, a workqueue with as many workers,
  DeepCopy, Update. With JSON, as clients have it by default, and with protobuf, which custom resources do not have. Without stripping, its heap for each object is larger. It writes no Events; Rectifier does, but at most 50 at once and then 10 a second
  ("Events written per fix" counts them): of thousands of drifts at once most fixes have none, and "CPU per fix, start and sync included" has little of their cost. "CPU per fix, 10 a second" has all of it, with Rectifier's default limit of writes.
- **dynamic informer**: [client-go's](../internal/bench/dynamic), with no work: what a generic controller begins with.
- **patch loop**: [bare patches](../internal/bench/patchloop) of ` + "`/scale`" + ` from as many writers: how fast the API server takes them. **Watched** is the same while somebody watches and throws away what comes, as every controller has to watch.
- **cache alone**: [package gvr](../internal/bench/cache) with the fields of the built-in rule.

Custom resources are [Deployments by another name](../internal/bench/rollouts), the rival's Go type has all of their fields, and the rule is the built-in one without its lookup. Pods are kept at the label that an annotation of theirs names, by
Rectifier as by its rival.

Deployments have the size that is named as JSON, with managedFields and the last applied configuration, in 50 namespaces. Processor time is that of the whole process, over all cores, from its start until it
has nothing more to do. Updates "250 a second" come one at a time: most of what one costs is that a process wakes up for it (network, TLS, goroutines), and that is the same for all. "As fast as kube-apiserver takes them" is what eight writers
reach on this machine, and "at once" are updates that were written while the contender was stopped, and wait for it in its connection: what one costs when the process does not wake up for each. Rules match nothing; the update changes a
label that the first of each five reads, so that it matters with one rule, too. A rule without a guard is one whose condition has to be evaluated on each change (` + "`a > 1000 || b == 'x'`" + `). Bytes are counted by a proxy between the two, TLS included; objects that are as alike as these compress better than others. Memory is the peak of the resident set; heap is what is left after a collection, less what the process has without objects. Fixes are seen from outside, by a watch, and requests are
counted by the API server. API server, etcd and the driver share the machine with the contender, so that rates and latencies are those of a machine that is busy with them.
`

// writeDocs writes the page and its images.
func (r *report) writeDocs(root string) error {
	images := filepath.Join(root, "docs", "images")
	for name, chart := range r.charts() {
		if err := os.WriteFile(filepath.Join(images, name), []byte(chart.svg()), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(root, "docs", "benchmarks.md"), []byte(r.markdown()), 0o644)
}

func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString("\n## Where and when\n\n")
	for _, line := range r.where() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- command: `%s`\n", r.command())
	b.WriteString("\n## The bars\n\nWhat Rectifier shall keep to, and whether it did in this run. Of a bar that is an upper limit, 100 % is all that is allowed; of a lower limit, less than 100 % is too little.\n\n")
	b.WriteString(r.barsTable().markdown())
	b.WriteString("\n## Growth\n\n")
	b.WriteString("![Processor time to sync, by number of objects](images/" + imageCPU + ")\n\n")
	b.WriteString("![Peak memory, by number of objects](images/" + imageMemory + ")\n")
	b.WriteString("\nThe straight line through the medians above, continued. Nothing beyond the numbers of objects in the images was measured: the rest is computed.\n\n")
	b.WriteString(r.growthTable().markdown())
	b.WriteString("\n## All figures\n\n")
	b.WriteString(r.figuresTable().markdown())
	b.WriteString("\n## Scenarios\n\n`make bench BENCH=churn` runs one, and `BENCH='sync|large'` two: a pattern of whole names. Only a complete run writes this page.\n\n")
	b.WriteString("| name | measures |\n|---|---|\n" + scenarioList("| %s | %s |\n"))
	return b.String()
}

// command is how this run was started.
func (r *report) command() string {
	command := "make bench"
	if r.largest() > 20000 {
		command += " SIZE=large"
	}
	if r.runs != 5 {
		command += fmt.Sprint(" RUNS=", r.runs)
	}
	return command
}

func (t table) markdown() string {
	var b strings.Builder
	for i, row := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return b.String()
}

// Names of the images.
const (
	imageCPU    = "benchmarks-cpu.svg"
	imageMemory = "benchmarks-memory.svg"
)

// charts are the images: what grows with the number of objects.
func (r *report) charts() map[string]chart {
	return map[string]chart{
		imageCPU:    r.chart("Processor time to sync Deployments of 3.5 KB", "seconds, all cores", syncCPU),
		imageMemory: r.chart("Peak memory while syncing Deployments of 3.5 KB", "MB", syncPeak),
	}
}

func (r *report) chart(title, unit string, of func(string) measure) chart {
	c := chart{title: title, x: "objects", y: unit}
	for _, name := range []string{typedJSON, typedProtobuf, ours} {
		l := line{name, r.points(of, name)}
		if len(l.points) > 0 {
			c.lines = append(c.lines, l)
		}
	}
	return c
}
