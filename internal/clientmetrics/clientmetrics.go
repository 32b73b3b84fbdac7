package clientmetrics

import (
	"context"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"
)

var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rest_client_requests_total",
		Help: "Requests to the API server by HTTP method and code of the answer; <error> if there was none.",
	}, []string{"code", "method"})
	retries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rest_client_request_retries_total",
		Help: "Requests that the client itself sent again, by HTTP method and code of the answer to that.",
	}, []string{"code", "method"})
	latency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "rest_client_request_duration_seconds",
		Help:    "Time from a request to the end of its answer, retries by the client included, by HTTP method. Watches are not timed.",
		Buckets: []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60},
	}, []string{"method"})
)

// client-go reads its hooks without a lock: they are set before any client is made.
func init() {
	metrics.Register(metrics.RegisterOpts{RequestLatency: observer{}, RequestResult: counter{}, RequestRetry: counter{}})
}

// Register has r collect the counts of all clients of the process. It panics if r
// has metrics of these names.
func Register(r prometheus.Registerer) { r.MustRegister(requests, retries, latency) }

// counter implements metrics.ResultMetric and metrics.RetryMetric.
type counter struct{}

func (counter) Increment(_ context.Context, code, method, _ string) {
	requests.WithLabelValues(code, method).Inc()
}

func (counter) IncrementRetry(_ context.Context, code, method, _ string) {
	retries.WithLabelValues(code, method).Inc()
}

// observer implements metrics.LatencyMetric.
type observer struct{}

func (observer) Observe(_ context.Context, method string, _ url.URL, took time.Duration) {
	latency.WithLabelValues(method).Observe(took.Seconds())
}
