package main

import (
	"context"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
	"github.com/rectifier-dev/rectifier/internal/deployments"
)

// All of it works on a real API server, with few objects: every bar is judged, and
// what does not depend on the machine holds.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	if _, err := binaries.Find("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	s, err := runQuick(t, plan{
		runs: 1, sizes: []int{50, 200}, large: 50, others: 50, workers: 8, alone: 5, events: 50, pace: 100, fast: 50, burst: 50, each: 5,
		ruleSets: []ruleSet{fewRules, manyRules, {count: 20, unguarded: 5}}, offline: 100, quick: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range s.plan.bars() {
		v, measured := s.judge(b)
		switch {
		case !measured:
			t.Errorf("%s was not measured against %q", b.of.name, b.against)
		case b.equal && !v.holds:
			t.Errorf("%s is %v, and has to be %v", b.of.name, v.value, b.limit)
		}
	}
	checkMeasured(t, s)
	r := newReport(s)
	if text := r.text(); strings.Contains(text, "NO") || strings.Contains(text, "share of the bar") {
		t.Errorf("bars are judged in a quick run:\n%s", text)
	}
	if page := r.markdown(); strings.Count(page, "\n| ") != len(r.barsTable())+len(r.growthTable())+len(r.figuresTable())+1+len(scenarios) {
		t.Errorf("the page does not have the rows of all tables:\n%s", page)
	}
	for name, c := range r.charts() {
		if len(c.lines) != 3 || len(c.lines[0].points) != 2 {
			t.Errorf("%s does not show three contenders at two sizes", name)
		}
	}
}

// An API server that is kept up has its statuses changed until somebody interrupts.
func TestKeepUp(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &until{text: "updates a second\n", then: cancel}
	if err := keepUp(ctx, out, plan{workers: 2}, 5, 20); err != nil {
		t.Fatal(err)
	}
	if told := out.all.String(); !out.found || !strings.Contains(told, "--profiling") {
		t.Errorf("it ended with %q", told)
	}
}

// until does something when a text has been written.
type until struct {
	text  string
	then  func()
	all   strings.Builder
	found bool
}

func (u *until) Write(b []byte) (int, error) {
	u.all.Write(b)
	if !u.found && strings.HasSuffix(u.all.String(), u.text) {
		u.found = true
		u.then()
	}
	return len(b), nil
}

// checkMeasured fails if a scenario has left out what it is for, or has found what
// cannot be: bytes and Events do not depend on the machine.
func checkMeasured(t *testing.T, s *suite) {
	t.Helper()
	watching := []string{ours, typedJSON, typedProtobuf, plainDynamic}
	for _, l := range s.loads(nil) {
		s.has(t, irrelevant(l.name), watching...)
	}
	s.has(t, serverOfUpdate, apiServer)
	for format := range serverOfWatch {
		s.has(t, serverOfWatch[format], apiServer)
	}
	s.has(t, rulesAdd(fewRules, s.ruleSets[2]), ours)
	s.has(t, customKind.irrelevant(s.steadyName()), ours, typedJSON, plainDynamic)
	s.has(t, podKind.irrelevant(s.steadyName()), ours, typedJSON, typedProtobuf)
	s.has(t, syncHeap("50 custom resources of 3.5 KB"), ours, typedJSON, plainDynamic)
	s.has(t, syncHeap("50 Pods of 3.5 KB"), ours, typedJSON, typedProtobuf)
	s.has(t, fixCPUWithEvents, ours, typedJSON)
	if f, _ := s.of(eventsOfSlowFix, ours); f.least != 1 {
		t.Errorf("there are %v Events for each slow fix, not 1", f)
	}
	// An update is an object of 3.5 KB, compressed.
	if f, _ := s.of(wireOfUpdate, typedJSON); f.least < 0.2 || f.most > 4 {
		t.Errorf("an update takes %v KB on the wire", f)
	}
	s.has(t, wireOfSync(objects(200, deployments.Small)), watching...)
}

// has fails unless a measure has figures of these contenders.
func (s *suite) has(t *testing.T, m measure, contenders ...string) {
	t.Helper()
	for _, name := range contenders {
		if _, measured := s.of(m, name); !measured {
			t.Errorf("%q of %s was not measured", m.name, name)
		}
	}
}

func runQuick(t *testing.T, p plan) (*suite, error) {
	var s *suite
	root, err := moduleRoot(t.Context())
	if err != nil {
		return nil, err
	}
	err = benchmark(t.Context(), t.Output(), root, p, func(r *report) error {
		s = r.suite
		return nil
	})
	return s, err
}
