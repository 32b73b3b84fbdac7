package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
	"time"
)

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// results is what a run of go test showed. Subtests count as tests.
type results struct {
	passed, failed int
	skipped        map[string]int // by reason
	failures       []string       // package and test
}

// skipReason finds the reason in a test's output: "    file_test.go:12: reason".
var skipReason = regexp.MustCompile(`(?s)^\s+\S+\.go:\d+: (.*)\n$`)

// read follows a run to its end. Each package's line goes to w when the package is
// done, and the output of a test when it has failed.
func read(output io.Reader, w io.Writer) (*results, error) {
	all := &results{skipped: map[string]int{}}
	packages := map[string]*results{}
	printed := map[string][]string{} // the output of a test that runs, by package and test
	decoder := json.NewDecoder(bufio.NewReader(output))
	for {
		var e event
		if err := decoder.Decode(&e); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		p := packages[e.Package]
		if p == nil {
			p = &results{skipped: map[string]int{}}
			packages[e.Package] = p
		}
		name := e.Package + " " + e.Test
		switch {
		case e.Action == "build-output":
			fmt.Fprint(w, e.Output)
		case e.Action == "output":
			printed[name] = append(printed[name], e.Output)
		case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
		case e.Test == "":
			p.end(w, e, printed[name])
			all.add(p)
			delete(printed, name)
		default:
			p.count(w, e, printed[name])
			delete(printed, name)
		}
	}
}

// count takes the end of a test.
func (r *results) count(w io.Writer, e event, printed []string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		r.failures = append(r.failures, e.Package+" "+e.Test)
		fmt.Fprint(w, strings.Join(printed, ""))
	case "skip":
		r.skipped[reason(printed)]++
	}
}

// end takes the end of a package. One that fails without a failed test did not
// compile, panicked, or ran into the timeout.
func (r *results) end(w io.Writer, e event, printed []string) {
	if e.Action == "fail" && r.failed == 0 {
		r.failed++
		r.failures = append(r.failures, e.Package)
		fmt.Fprint(w, strings.Join(printed, ""))
	}
	fmt.Fprintf(w, "%-4s  %-66s %4d passed, %d failed, %d skipped, %.0f s\n",
		e.Action, e.Package, r.passed, r.failed, r.skips(), e.Elapsed)
}

func (r *results) add(p *results) {
	r.passed += p.passed
	r.failed += p.failed
	r.failures = append(r.failures, p.failures...)
	for reason, n := range p.skipped {
		r.skipped[reason] += n
	}
}

func (r *results) skips() int {
	n := 0
	for _, times := range r.skipped {
		n += times
	}
	return n
}

// print writes the summary, which ends in a row for docs/version-skew.md.
func (r *results) print(w io.Writer, version string, now time.Time) {
	for _, failure := range r.failures {
		fmt.Fprintln(w, "failed:", failure)
	}
	reasons := make([]string, 0, len(r.skipped))
	for reason := range r.skipped {
		reasons = append(reasons, reason)
	}
	sort.Strings(reasons)
	for _, reason := range reasons {
		fmt.Fprintf(w, "skipped %d: %s\n", r.skipped[reason], reason)
	}
	fmt.Fprintf(w, "\n| %s | %d | %d | %d | %d | %s | `make skew VERSION=%s` |\n", version,
		r.passed+r.failed+r.skips(), r.passed, r.failed, r.skips(), now.UTC().Format(time.DateOnly), version)
}

func reason(printed []string) string {
	for _, line := range printed {
		if match := skipReason.FindStringSubmatch(line); match != nil {
			return match[1]
		}
	}
	return "no reason given"
}
