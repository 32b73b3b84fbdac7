package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// queueMetrics gives client-go's workqueue the metrics that it fills itself, with
// the names and buckets that all Kubernetes controllers use. It is a
// workqueue.MetricsProvider of this engine, where that of client-go is one for
// the process.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	wait, work                 *prometheus.HistogramVec
}

func newQueueMetrics() *queueMetrics {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 10),
		}, []string{"name"})
	}
	return &queueMetrics{
		depth:      gauges("workqueue_depth", "Objects in the queue that nobody works on yet.", "name"),
		adds:       counters("workqueue_adds_total", "Objects that were put into the queue; one that is in it already does not count.", "name"),
		wait:       histogram("workqueue_queue_duration_seconds", "How long an object is in the queue before its turn comes."),
		work:       histogram("workqueue_work_duration_seconds", "How long one turn of an object takes, its requests included."),
		unfinished: gauges("workqueue_unfinished_work_seconds", "Sum of the times that the turns under way have taken so far. It grows steadily where workers are stuck.", "name"),
		longest:    gauges("workqueue_longest_running_processor_seconds", "Time that the longest turn under way has taken so far.", "name"),
		retries:    counters("workqueue_retries_total", "Objects that were put off, to be looked at again later.", "name"),
	}
}

func (m *queueMetrics) register(r prometheus.Registerer) {
	r.MustRegister(m.depth, m.adds, m.wait, m.work, m.unfinished, m.longest, m.retries)
}

// queueProvider is what a queue takes its metrics from; nil if nobody scrapes them,
// since they cost something with each key.
func (m *metrics) queueProvider(r prometheus.Registerer) workqueue.MetricsProvider {
	if r == nil {
		return nil
	}
	return m.queue
}

// NewDepthMetric and the others implement workqueue.MetricsProvider.
func (m *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return m.depth.WithLabelValues(name)
}

func (m *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return m.adds.WithLabelValues(name)
}

func (m *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return m.wait.WithLabelValues(name)
}

func (m *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return m.work.WithLabelValues(name)
}

func (m *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.unfinished.WithLabelValues(name)
}

func (m *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return m.longest.WithLabelValues(name)
}

func (m *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return m.retries.WithLabelValues(name)
}
