package engine

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rectifier-dev/rectifier/rules"
)

// bulkCounters count the evaluations of all rules of an index at once: an event
// costs the same however many rules are passed over. What they hold comes to the
// counters of the rules when somebody reads those, or when another index takes the
// place of this one. Until then each evaluation is in one of both, and never in both,
// so that no counter ever falls. It is safe for concurrent use.
type bulkCounters struct {
	of map[*rules.Rule]*ruleCounters // never modified

	mu      sync.Mutex
	tally   *rules.Tally
	at      int64 // of the last evaluation, in ns since the epoch
	retired bool  // nobody drains them any more
}

// newBulkCounters makes the bulk counters of an index.
func (m *metrics) newBulkCounters(x *rules.Index, of map[*rules.Rule]*ruleCounters) *bulkCounters {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &bulkCounters{of: of, tally: x.NewTally()}
	m.bulks[b] = true
	return b
}

// retire ends bulk counters. What a decision that is under way counts later still
// comes to the counters of its rules.
func (m *metrics) retire(b *bulkCounters) {
	m.mu.Lock()
	delete(m.bulks, b)
	m.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.retired = true
	b.drainLocked()
}

// count adds the result of one evaluation, but for its verdicts.
func (b *bulkCounters) count(result *rules.Result, at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tally.Count(result)
	b.at = max(b.at, at)
	if b.retired {
		b.drainLocked()
	}
}

func (b *bulkCounters) drainLocked() {
	b.tally.Drain(func(r *rules.Rule, passed, unmatched int64) {
		if c := b.of[r]; c != nil {
			c.evaluations[outcomePass].Add(passed)
			c.evaluations[outcomeNoMatch].Add(unmatched)
			c.seen(b.at)
		}
	})
}

// drainLocked brings the counters of all rules up to date.
func (m *metrics) drainLocked() {
	for b := range m.bulks {
		b.mu.Lock()
		b.drainLocked()
		b.mu.Unlock()
	}
}

// countPassed counts what an index made of the object.
func (d *decision) countPassed(result rules.Result) {
	at := d.now.UnixNano()
	d.runnable.counters.count(&result, at)
	for _, v := range result.Verdicts {
		d.counters(v.Rule).count(outcomeOf(v), at)
	}
}

// evaluations tells Prometheus how often rules have been evaluated.
type evaluations struct{ *metrics }

var evaluationsTotal = prometheus.NewDesc("rectifier_evaluations_total",
	"Evaluations of a rule on an object of a resource, by outcome: no_match, pass (nothing to change), patch (it wants a change), audit (it would want one, and only reports), skip (the object opted out), unknown (what it has to know beside the object is not known yet) or error.",
	[]string{"rule", "resource", "outcome"}, nil)

// Describe implements prometheus.Collector.
func (e evaluations) Describe(to chan<- *prometheus.Desc) { to <- evaluationsTotal }

// Collect implements prometheus.Collector.
func (e evaluations) Collect(to chan<- prometheus.Metric) {
	for _, metric := range e.read() {
		to <- metric
	}
}

func (e evaluations) read() []prometheus.Metric {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drainLocked()
	out := make([]prometheus.Metric, 0, len(e.rules)*len(outcomeNames))
	for on, c := range e.rules {
		for o, name := range outcomeNames {
			n := float64(c.evaluations[o].Load())
			out = append(out, prometheus.MustNewConstMetric(evaluationsTotal, prometheus.CounterValue, n, on.rule, on.resource, name))
		}
	}
	return out
}
