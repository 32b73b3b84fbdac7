package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What becomes of an event of a watch.
const (
	eventInitial    = "initial"     // the object was there when the watch began
	eventRelevant   = "relevant"    // the object, or what looks it up, is looked at
	eventPassedOver = "passed_over" // nothing that is kept of the object has changed
)

// watchCounters count the events of a resource. They are looked up once, when its
// handler is made: an event costs one addition. All are there from the beginning, so
// that Prometheus sees the first increase.
type watchCounters struct{ initial, relevant, passedOver prometheus.Counter }

func (m *metrics) watchCounters(resource schema.GroupResource) watchCounters {
	of := func(outcome string) prometheus.Counter {
		return m.watchEvents.WithLabelValues(resource.String(), outcome)
	}
	return watchCounters{of(eventInitial), of(eventRelevant), of(eventPassedOver)}
}
