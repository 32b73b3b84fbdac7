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
	others  int   // custom resources, and Pods
	workers int   // writers of each contender

	alone    int       // drifts one after the other
	events   int       // updates of each pace
	pace     int       // updates a second, where it is steady
	fast     int       // updates as fast as the API server takes them
	burst    int       // updates that arrive at once; not more than a connection holds: see burstOf
	each     int       // fixes one after the other, so slow that each has its Event
	ruleSets []ruleSet // on one resource
	offline  int       // Deployments in a file

	quick bool           // too few of all to judge anything
	only  *regexp.Regexp // whole names of scenarios; nil: all
}

// newPlan returns the plan for SIZE, or for a quick look whether all of it works.
// only is a pattern of whole names of scenarios; empty is all of them.
func newPlan(size string, quick bool, runs int, only string) (plan, error) {
	p := plan{
		runs: runs, sizes: []int{1000, 5000, 20000}, large: 4000, others: 3000, workers: 8,
		alone: 150, events: 600, pace: 250, fast: 1000, burst: 800, each: 40, offline: 2000,
		ruleSets: []ruleSet{{count: 1}, {count: 10}, {count: 1000}, {count: 1000, unguarded: 100}},
	}
	switch {
	case quick:
		p.quick, p.runs, p.sizes, p.large, p.others = true, 1, []int{300, 1000}, 300, 200
		p.alone, p.events, p.fast, p.burst, p.each = 20, 200, 200, 200, 10
	case size == "large":
		p.sizes = append(p.sizes, 100000)
	case size != "":
		return p, fmt.Errorf("there is no size %q: give large, or none", size)
	}
	if p.runs < 1 {
		return p, fmt.Errorf("%d runs are none", p.runs)
	}
	return p, p.choose(only)
}

// choose sets which scenarios are run. A pattern that matches none is an error.
func (p *plan) choose(only string) (err error) {
	if only == "" {
		return nil
	}
	if p.only, err = regexp.Compile("^(?:" + only + ")$"); err != nil {
		return fmt.Errorf("read the pattern of scenarios: %w", err)
	}
	for _, s := range scenarios {
		if p.wants(s.name) {
			return nil
		}
	}
	return fmt.Errorf("no scenario is called %q; there are %s", only, scenarioNames())
}

func (p plan) wants(scenario string) bool { return p.only == nil || p.only.MatchString(scenario) }

// meaningful is how many rounds it takes until a median means something.
const meaningful = 5

// complete reports whether documentation may be written of it: of all scenarios.
func (p plan) complete() bool { return p.only == nil && p.runs >= meaningful }

// few is the number of rounds of scenarios that hardly differ from one to the next,
// or are beside the bars.
func (p plan) few() int { return min(p.runs, 2) }

var scenariosOfFew = []string{scenarioEmpty, scenarioEvents, scenarioWire, scenarioServer, scenarioCustom, scenarioPods}

// small is where what needs few objects is measured, and middle where many drift.
func (p plan) small() int   { return p.sizes[0] }
func (p plan) middle() int  { return p.sizes[1] }
func (p plan) largest() int { return p.sizes[len(p.sizes)-1] }
