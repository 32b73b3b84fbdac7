package main

import (
	"fmt"
	"regexp"
)

// plan says how much is done.
type plan struct {
	runs    int
	sizes   []int // numbers of Deployments of 3.5 KB, growing
	large   int   // Deployments of 16 KB
	workers int   // writers of each contender

	alone      int   // drifts one after the other
	events     int   // updates of churn, and of rules
	pace       int   // updates a second
	ruleCounts []int // on one resource
	offline    int   // Deployments in a file

	only *regexp.Regexp // names of scenarios
}

// newPlan returns the plan for SIZE, or for a quick look whether all of it works.
func newPlan(size string, quick bool, runs int, only string) (plan, error) {
	p := plan{
		runs: runs, sizes: []int{1000, 5000, 10000, 20000}, large: 5000, workers: 8,
		alone: 200, events: 1000, pace: 250, ruleCounts: []int{1, 10, 100, 1000}, offline: 2000,
	}
	switch {
	case quick:
		p.runs, p.sizes, p.large = 1, []int{300, 1000}, 300
		p.alone, p.events, p.ruleCounts = 20, 200, []int{1, 1000}
	case size == "large":
		p.sizes = append(p.sizes, 100000)
	case size != "":
		return p, fmt.Errorf("there is no size %q: give large, or none", size)
	}
	if p.runs < 1 {
		return p, fmt.Errorf("%d runs are none", p.runs)
	}
	var err error
	if p.only, err = regexp.Compile(only); err != nil {
		return p, fmt.Errorf("read the pattern of scenarios: %w", err)
	}
	return p, nil
}

func (p plan) wants(scenario string) bool { return p.only.MatchString(scenario) }

// small is where what needs few objects is measured, and middle where many drift.
func (p plan) small() int   { return p.sizes[0] }
func (p plan) middle() int  { return p.sizes[1] }
func (p plan) largest() int { return p.sizes[len(p.sizes)-1] }
