package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
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
		runs: 1, sizes: []int{50, 200}, large: 50, workers: 8, alone: 5, events: 50, pace: 100,
		ruleCounts: []int{1, 1000}, offline: 100, only: regexp.MustCompile(""),
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
	r := newReport(t.Context(), s)
	if page := r.markdown(); strings.Count(page, "\n| ") != len(r.barsTable())+len(r.growthTable())+len(r.figuresTable()) {
		t.Errorf("the page does not have the rows of all tables:\n%s", page)
	}
	for name, c := range r.charts() {
		if len(c.lines) != 3 || len(c.lines[0].points) != 2 {
			t.Errorf("%s does not show three contenders at two sizes", name)
		}
	}
}

func runQuick(t *testing.T, p plan) (*suite, error) {
	var s *suite
	err := benchmark(t.Context(), t.Output(), p, func(r *report) error {
		s = r.suite
		return nil
	})
	return s, err
}
