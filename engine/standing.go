package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// standing tells Prometheus at each scrape what readyz tells people: which
// resources are watched, and which rules cannot run. All versions of a resource
// are one series, which is as bad as the worst of them.
type standing struct{ *Engine }

var (
	resourceSynced = prometheus.NewDesc("rectifier_resource_synced",
		"1 if a resource that rules read is listed and watched, 0 if not: its rules do nothing, or do not see changes.",
		[]string{"resource", "namespace"}, nil)
	ruleParked = prometheus.NewDesc("rectifier_rule_parked",
		"1 if a rule cannot run on a resource for now; /readyz says why.",
		[]string{"rule", "resource"}, nil)
)

// Describe implements prometheus.Collector.
func (s standing) Describe(to chan<- *prometheus.Desc) {
	to <- resourceSynced
	to <- ruleParked
}

// Collect implements prometheus.Collector.
func (s standing) Collect(to chan<- prometheus.Metric) {
	type series struct{ a, b string }
	collect := func(desc *prometheus.Desc, values map[series]float64) {
		for labels, v := range values {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels.a, labels.b)
		}
	}
	synced, parked := map[series]float64{}, map[series]float64{}
	note := func(r *rules.Rule, resource schema.GroupVersionResource, value float64) {
		key := series{r.Name, resource.GroupResource().String()}
		parked[key] = max(parked[key], value)
	}
	for _, resource := range s.rules().Resources() {
		for _, r := range s.rules().For(resource) {
			note(r, resource, 0)
		}
	}
	for _, status := range s.informers.Status() {
		key := series{status.Resource.GroupResource().String(), status.Namespace}
		value := 0.0
		if status.State == gvr.Synced {
			value = 1
		}
		if before, ok := synced[key]; ok {
			value = min(value, before)
		}
		synced[key] = value
		if status.State == gvr.Synced || status.State == gvr.Syncing {
			continue
		}
		for _, r := range s.rules().For(status.Resource) {
			note(r, status.Resource, 1)
		}
	}
	s.eachParked(func(r *rules.Rule, resource schema.GroupVersionResource, _ string) { note(r, resource, 1) })
	for _, t := range s.permissions.list() {
		for _, r := range s.writers(t.resource, t.subresource) {
			note(r, t.resource, 1)
		}
	}
	collect(resourceSynced, synced)
	collect(ruleParked, parked)
}
