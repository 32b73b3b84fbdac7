package engine

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rectifier-dev/rectifier/rules"
)

// metrics are what the engine counts for Prometheus; docs/metrics.md describes
// them. Their labels are bounded: rules and resources, never objects.
type metrics struct {
	mu    sync.Mutex
	rules map[ruleOn]*ruleCounters // of the rules in force, and those that come
	bulks map[*bulkCounters]bool   // what they have to be given before they are read

	// By rule and resource, and the last column of what happened:
	fixes       *prometheus.CounterVec
	failures    *prometheus.CounterVec
	contentions *prometheus.CounterVec
	held        *prometheus.GaugeVec

	// By resource:
	watchEvents *prometheus.CounterVec
	patches     *prometheus.CounterVec
	drift       *prometheus.HistogramVec
	panics      *prometheus.CounterVec

	reloads    *prometheus.CounterVec // by result
	reloaded   prometheus.Gauge
	reloadable prometheus.Gauge
	invalid    prometheus.Gauge
	modes      *prometheus.GaugeVec
	leader     prometheus.Gauge
	unwritten  prometheus.Counter // Events
	queue      *queueMetrics
}

// newMetrics makes the metrics; r may be nil.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		rules: map[ruleOn]*ruleCounters{},
		bulks: map[*bulkCounters]bool{},
		queue: newQueueMetrics(),

		fixes: counters("rectifier_fixes_total",
			"Changes of a rule that the API server accepted and kept.",
			"rule", "resource"),
		failures: counters("rectifier_rule_failures_total",
			"Failures of a rule on an object, by the reason of the Event that tells of it. The same failure of an object counts once.",
			"rule", "resource", "reason"),
		contentions: counters("rectifier_contentions_total",
			"How often a rule began to be held for an object because somebody else kept setting its change back.",
			"rule", "resource"),
		held: gauges("rectifier_contended_objects",
			"Objects for which a rule is held because of contention.",
			"rule", "resource"),

		watchEvents: counters("rectifier_watch_events_total",
			"Events of watches, by what becomes of them: initial (the object was there when the watch began), relevant (the object, or what looks it up, is looked at) or passed_over (nothing that rules read of the object has changed).",
			"resource", "outcome"),
		patches: counters("rectifier_patches_total",
			"PATCH requests that were sent, by what came of them: success, ineffective (accepted, not kept), conflict, gone, forbidden (by RBAC), denied (by admission), invalid, throttled, unavailable or unauthorized.",
			"resource", "subresource", "result"),
		drift: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rectifier_drift_to_fix_seconds",
			Help:    "Time from the event that brought a drift to the accepted patch that put it right: waiting in the queue, for the rate of writes and for retries included.",
			Buckets: driftBuckets,
		}, []string{"resource"}),
		panics: counters("rectifier_panics_total",
			"Panics while an object was worked on.",
			"resource"),

		reloads: counters("rectifier_rule_reloads_total",
			"Reloads of the rules after the start, by result: success, partial (rules were left out or kept as they were before) or failure.",
			"result"),
		reloaded:   gauge("rectifier_rule_reload_timestamp_seconds", "When rules were last put in force, in seconds since the epoch."),
		reloadable: gauge("rectifier_rule_reload_success", "1 if the rules could be read when they were last loaded, 0 if not: those that were loaded before stay in force."),
		invalid:    gauge("rectifier_invalid_rules", "Rules that do not compile as they are written now."),
		modes:      gauges("rectifier_rules", "Rules in force, by mode: enforce or audit.", "mode"),
		leader:     gauge("rectifier_leader", "1 if this instance may write: it holds the lease, or runs without leader election."),
		unwritten: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rectifier_events_dropped_total",
			Help: "Events that were not written: they came too fast, or the API server did not take them.",
		}),
	}
	for _, result := range []string{reloadSuccess, reloadPartial, reloadFailed} {
		m.reloads.WithLabelValues(result) // Prometheus sees the first increase only of what was there before
	}
	if r != nil {
		r.MustRegister(evaluations{m}, m.fixes, m.failures, m.contentions, m.held, m.watchEvents, m.patches, m.drift, m.panics,
			m.reloads, m.reloaded, m.reloadable, m.invalid, m.modes, m.leader, m.unwritten)
		m.queue.register(r)
	}
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// Results of reloads.
const (
	reloadSuccess = "success"
	reloadPartial = "partial"
	reloadFailed  = "failure"
)

// loadedAnew notes that rules have taken the place of others.
func (m *metrics) loadedAnew(set *rules.Set, problems []*rules.Problem) {
	result := reloadSuccess
	if len(problems) > 0 {
		result = reloadPartial
	}
	m.reloads.WithLabelValues(result).Inc()
	m.loaded(set, problems)
}

// loaded notes which rules are in force, with what is wrong with others.
func (m *metrics) loaded(set *rules.Set, problems []*rules.Problem) {
	m.reloaded.SetToCurrentTime()
	m.reloadable.Set(1)
	m.invalid.Set(float64(rules.CountInvalid(problems)))
	modes := map[rules.Mode]int{rules.Enforce: 0, rules.Audit: 0}
	for _, r := range set.All() {
		modes[r.Mode]++
	}
	for mode, n := range modes {
		m.modes.WithLabelValues(strings.ToLower(string(mode))).Set(float64(n))
	}
}

// notLoaded notes that newer rules cannot be read.
func (m *metrics) notLoaded() {
	m.reloads.WithLabelValues(reloadFailed).Inc()
	m.reloadable.Set(0)
}
