package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// ruleOn is a rule on a resource, as metrics name them.
type ruleOn struct{ rule, resource string }

// RuleCounts are what a rule has done on a resource since both were named
// together, at the earliest since the start of this instance. Each look at an
// object is one evaluation, in each version of the resource that the rule names.
//
// A rule that is held for an object, or parked, is not evaluated. So zero
// Evaluations of a resource that has objects mean that the rule is parked, or
// that the first objects are still to come.
type RuleCounts struct {
	Evaluations int64 // the sum of the next seven
	NoMatch     int64 // the rule's match does not select the object
	Pass        int64 // nothing to change
	Patch       int64 // it wanted a change; in a dry run too
	Audit       int64 // it would want a change, and only reports
	Skip        int64 // the object, or its Namespace, opted out
	Unknown     int64 // what it has to know beside the object was not known yet
	Error       int64 // it could not be evaluated

	Fixed  int64 // changes that were accepted and kept
	Failed int64 // failures that were told of, those of requests included

	LastEvaluated time.Time // zero: never
}

// Outcomes of evaluations. They are more than rules.Outcome: what nobody matches
// and what asked to be left alone are both skipped there.
type outcome int

const (
	outcomeNoMatch outcome = iota
	outcomePass
	outcomePatch
	outcomeAudit
	outcomeSkip
	outcomeUnknown
	outcomeError
	outcomes // how many
)

var outcomeNames = [outcomes]string{"no_match", "pass", "patch", "audit", "skip", "unknown", "error"}

// failureReasons are the reasons of the Events that tell of a rule's failure.
var failureReasons = []string{
	reasonIneffective, reasonNotConverging, reasonEvaluationFailed, reasonBadOptOut, reasonPatchRefused, reasonPatchDelayed, reasonContended,
}

// ruleCounters are the series of a rule on a resource. They are looked up once,
// when the rules come into force: an evaluation is counted without a lock, and
// what is counted late for a rule that has gone brings no series back. All series
// are there from the beginning, so that Prometheus sees the first increase. Nil
// counts nothing. It is safe for concurrent use.
type ruleCounters struct {
	evaluations [outcomes]atomic.Int64
	fixes       prometheus.Counter
	failures    map[string]prometheus.Counter // by reason; never modified
	evaluated   atomic.Int64                  // when it last was, in ns since the epoch
}

func (m *metrics) newRuleCounters(on ruleOn) *ruleCounters {
	c := &ruleCounters{fixes: m.fixes.WithLabelValues(on.rule, on.resource), failures: map[string]prometheus.Counter{}}
	for _, reason := range failureReasons {
		c.failures[reason] = m.failures.WithLabelValues(on.rule, on.resource, reason)
	}
	m.contentions.WithLabelValues(on.rule, on.resource)
	return c
}

func (c *ruleCounters) count(o outcome, at int64) {
	if c != nil {
		c.evaluations[o].Add(1)
		c.seen(at)
	}
}

// seen notes when the rule was evaluated; the newest time wins.
func (c *ruleCounters) seen(at int64) {
	for {
		last := c.evaluated.Load()
		if last >= at || c.evaluated.CompareAndSwap(last, at) {
			return
		}
	}
}

func (c *ruleCounters) fixed() {
	if c != nil {
		c.fixes.Inc()
	}
}

func (c *ruleCounters) failed(reason string) {
	if c != nil && c.failures[reason] != nil {
		c.failures[reason].Inc()
	}
}

// countersByRule are the counters of a policy's rules.
type countersByRule map[schema.GroupVersionResource]map[*rules.Rule]*ruleCounters

// countersOf gives each rule of a set its counters. Those of rules that were
// there before count on.
func (m *metrics) countersOf(set *rules.Set) countersByRule {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := countersByRule{}
	for _, resource := range set.Resources() {
		of := map[*rules.Rule]*ruleCounters{}
		for _, r := range set.For(resource) {
			on := ruleOn{r.Name, resource.GroupResource().String()}
			if m.rules[on] == nil {
				m.rules[on] = m.newRuleCounters(on)
			}
			of[r] = m.rules[on]
		}
		out[resource] = of
	}
	return out
}

// forgetRules drops the series of rules, and of resources of a rule, that are
// not in a set.
func (m *metrics) forgetRules(set *rules.Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	present := map[ruleOn]bool{}
	for _, resource := range set.Resources() {
		for _, r := range set.For(resource) {
			present[ruleOn{r.Name, resource.GroupResource().String()}] = true
		}
	}
	for on := range m.rules {
		if present[on] {
			continue
		}
		delete(m.rules, on)
		m.forget(on)
	}
}

// forget drops the series of a rule on a resource, each by its labels: to look
// for them among those of all rules would take minutes where there are many.
func (m *metrics) forget(on ruleOn) {
	for _, reason := range failureReasons {
		m.failures.DeleteLabelValues(on.rule, on.resource, reason)
	}
	for _, vec := range []interface{ DeleteLabelValues(...string) bool }{m.fixes, m.contentions, m.held} {
		vec.DeleteLabelValues(on.rule, on.resource)
	}
}

// counts reads what has been counted of the rules in force. It is safe for
// concurrent use, and not of one moment.
func (m *metrics) counts() map[ruleOn]RuleCounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drainLocked()
	out := make(map[ruleOn]RuleCounts, len(m.rules))
	for on, c := range m.rules {
		out[on] = c.read()
	}
	return out
}

func (c *ruleCounters) read() RuleCounts {
	out := RuleCounts{Fixed: valueOf(c.fixes)}
	for o, to := range [outcomes]*int64{&out.NoMatch, &out.Pass, &out.Patch, &out.Audit, &out.Skip, &out.Unknown, &out.Error} {
		*to = c.evaluations[o].Load()
		out.Evaluations += *to
	}
	for _, failures := range c.failures {
		out.Failed += valueOf(failures)
	}
	if at := c.evaluated.Load(); at != 0 {
		out.LastEvaluated = time.Unix(0, at)
	}
	return out
}

func valueOf(c prometheus.Counter) int64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		return 0 // a counter without exemplars has none
	}
	return int64(m.GetCounter().GetValue())
}

// counters are those of a rule on the resource that is decided on.
func (d *decision) counters(r *rules.Rule) *ruleCounters { return d.policy.counters[d.resource][r] }

// countEvaluations counts what the rules that ran made of the object: once for
// each view, however often it takes to decide on it.
func (d *decision) countEvaluations(ran []*rules.Rule, result rules.Result) {
	if d.counted {
		return
	}
	d.counted = true
	if result.Passed() {
		d.countPassed(result)
		return
	}
	counters, at := d.policy.counters[d.resource], d.now.UnixNano()
	verdicts, unmatched := result.Verdicts, result.Unmatched
	for _, r := range ran {
		o := outcomePass
		switch {
		case len(verdicts) > 0 && verdicts[0].Rule == r:
			o, verdicts = outcomeOf(verdicts[0]), verdicts[1:]
		case len(unmatched) > 0 && unmatched[0] == r:
			o, unmatched = outcomeNoMatch, unmatched[1:]
		}
		counters[r].count(o, at)
	}
}

// outcomeOf is the outcome of a verdict that is told of: the others are no match
// or a pass. An opt-out that cannot be read is one.
func outcomeOf(v rules.Verdict) outcome {
	switch {
	case v.Outcome == rules.Skip:
		return outcomeSkip
	case v.Err != nil && errors.As(v.Err, new(*rules.UnknownError)):
		return outcomeUnknown
	case v.Err != nil:
		return outcomeError
	case v.Rule.Mode == rules.Audit:
		return outcomeAudit
	}
	return outcomePatch
}
