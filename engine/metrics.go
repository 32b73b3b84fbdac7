package engine

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rectifier-dev/rectifier/rules"
)

// metrics are what the engine counts for Prometheus. Their labels are bounded:
// rules and resources, never objects.
type metrics struct {
	contentions *prometheus.CounterVec // by rule and resource
	held        *prometheus.GaugeVec   // by rule and resource
	panics      *prometheus.CounterVec // by resource
	reloads     *prometheus.CounterVec // by result
	reloaded    prometheus.Gauge
	invalid     prometheus.Gauge
	leader      prometheus.Gauge
	unwritten   prometheus.Counter // Events
}

// newMetrics makes the metrics; r may be nil.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		contentions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rectifier_contentions_total",
			Help: "How often a rule began to be held for an object because somebody else kept setting its change back.",
		}, []string{"rule", "resource"}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "rectifier_contended_objects",
			Help: "Objects for which a rule is held because of contention.",
		}, []string{"rule", "resource"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rectifier_panics_total",
			Help: "Panics while an object was worked on.",
		}, []string{"resource"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rectifier_rule_reloads_total",
			Help: "Reloads of the rules, by result: success, partial (rules were left out or kept as they were before) or failure.",
		}, []string{"result"}),
		reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rectifier_rule_reload_timestamp_seconds",
			Help: "When rules were last put in force, in seconds since the epoch.",
		}),
		invalid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rectifier_invalid_rules",
			Help: "Rules that do not compile as they are written now.",
		}),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rectifier_leader",
			Help: "1 if this instance may write: it holds the lease, or runs without leader election.",
		}),
	}
	m.unwritten = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "rectifier_events_dropped_total",
		Help: "Events that were not written: they came too fast, or the API server did not take them.",
	})
	if r != nil {
		r.MustRegister(m.contentions, m.held, m.panics, m.reloads, m.reloaded, m.invalid, m.leader, m.unwritten)
	}
	return m
}

// Results of reloads.
const (
	reloadSuccess = "success"
	reloadPartial = "partial"
	reloadFailed  = "failure"
)

// loaded notes that rules were put in force, with what is wrong with others.
func (m *metrics) loaded(problems []*rules.Problem) {
	result := reloadSuccess
	if len(problems) > 0 {
		result = reloadPartial
	}
	m.reloads.WithLabelValues(result).Inc()
	m.reloaded.SetToCurrentTime()
	m.invalid.Set(float64(rules.CountInvalid(problems)))
}

// forgetRules drops the series of rules that are gone.
func (m *metrics) forgetRules(names []string) {
	for _, name := range names {
		of := prometheus.Labels{"rule": name}
		m.contentions.DeletePartialMatch(of)
		m.held.DeletePartialMatch(of)
	}
}
