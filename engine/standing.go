package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// standing tells Prometheus at each scrape what readyz tells people: which
// resources are watched, what their caches hold, and which rules cannot run. All
// versions of a resource are one series, with the state of the worst of them.
type standing struct{ *Engine }

var (
	resourceState = prometheus.NewDesc("rectifier_resource_state",
		"1 for the state that a resource which rules read is in, 0 for the others: synced (it is listed and watched), syncing, waiting (it is not served), forbidden (to list or to watch it) or failing. If it is not synced, its rules do nothing, or do not see changes.",
		[]string{"resource", "namespace", "state"}, nil)
	ruleParked = prometheus.NewDesc("rectifier_rule_parked",
		"1 if a rule cannot run on a resource for now, with the reason; 0 with an empty reason if it can. /readyz says more.",
		[]string{"rule", "resource", "reason"}, nil)
	cachedObjects = prometheus.NewDesc("rectifier_cached_objects",
		"Objects of a resource in the cache.",
		[]string{"resource", "namespace"}, nil)
	cachedBytes = prometheus.NewDesc("rectifier_cached_bytes",
		"Bytes of memory that the objects of a resource take in the cache, estimated from a sample of them.",
		[]string{"resource", "namespace"}, nil)
)

// stateNames are the states as metrics name them, the better ones first.
var stateNames = []struct {
	state gvr.State
	name  string
}{
	{gvr.Synced, "synced"},
	{gvr.Syncing, "syncing"},
	{gvr.Waiting, parkedWaiting},
	{gvr.Forbidden, parkedForbidden},
	{gvr.Failing, parkedFailing},
}

// Reasons why a rule cannot run on a resource, as metrics name them.
const (
	parkedWaiting        = "waiting" // the resource's own state
	parkedForbidden      = "forbidden"
	parkedFailing        = "failing"
	parkedUnfit          = "unfit"           // it names a part of objects that the resource does not have
	parkedLookup         = "lookup"          // what it looks up is not available
	parkedFields         = "fields"          // they have not been read yet
	parkedSchema         = "schema"          // that of the kind is not known
	parkedNamespaces     = "namespaces"      // they are not available
	parkedPatchForbidden = "patch_forbidden" // somewhere at least
)

// Describe implements prometheus.Collector.
func (s standing) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{resourceState, ruleParked, cachedObjects, cachedBytes} {
		to <- desc
	}
}

// Collect implements prometheus.Collector. A standby watches nothing and runs no
// rules: it has nothing to tell, least of all that its resources are waiting.
func (s standing) Collect(to chan<- prometheus.Metric) {
	if s.election != nil {
		if _, leading, _ := s.election.status(); !leading {
			return
		}
	}
	statuses := s.informers.Status()
	s.collectStates(to, statuses)
	s.collectParked(to, statuses)
	s.collectCaches(to)
}

func gaugeOf(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// store is one cache of a resource, as metrics name it.
type store struct{ resource, namespace string }

func (s standing) collectStates(to chan<- prometheus.Metric, statuses []gvr.Status) {
	worst := map[store]int{}
	for _, status := range statuses {
		of := store{status.Resource.GroupResource().String(), status.Namespace}
		worst[of] = max(worst[of], rank(status.State))
	}
	for of, is := range worst {
		for i, state := range stateNames {
			value := 0.0
			if i == is {
				value = 1
			}
			to <- gaugeOf(resourceState, value, of.resource, of.namespace, state.name)
		}
	}
}

// rank is a state's place in stateNames.
func rank(state gvr.State) int {
	for i, s := range stateNames {
		if s.state == state {
			return i
		}
	}
	return len(stateNames) - 1
}

func (s standing) collectParked(to chan<- prometheus.Metric, statuses []gvr.Status) {
	parked := map[ruleOn]string{}
	note := func(r *rules.Rule, resource schema.GroupVersionResource, reason string) {
		on := ruleOn{r.Name, resource.GroupResource().String()}
		if parked[on] == "" { // the first reason is what has to be mended first
			parked[on] = reason
		}
	}
	set := s.rules()
	for _, resource := range set.Resources() {
		for _, r := range set.For(resource) {
			note(r, resource, "")
		}
	}
	s.eachObstacle(statuses, func(r *rules.Rule, resource schema.GroupVersionResource, word, _ string) { note(r, resource, word) })
	for on, reason := range parked {
		value := 0.0
		if reason != "" {
			value = 1
		}
		to <- gaugeOf(ruleParked, value, on.rule, on.resource, reason)
	}
}

func (s standing) collectCaches(to chan<- prometheus.Metric) {
	objects, bytes := map[store]float64{}, map[store]float64{}
	for _, sample := range s.informers.Samples(sampledObjects) {
		of := store{sample.Resource.GroupResource().String(), sample.Namespace}
		objects[of] += float64(sample.Objects)
		bytes[of] += meanBytes(sample.Some) * float64(sample.Objects)
	}
	for of, n := range objects {
		to <- gaugeOf(cachedObjects, n, of.resource, of.namespace)
		to <- gaugeOf(cachedBytes, bytes[of], of.resource, of.namespace)
	}
}
