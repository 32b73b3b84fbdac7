package main

import (
	"fmt"
	"strings"
)

// The names of scenarios, which BENCH selects by.
const (
	scenarioOffline = "offline"
	scenarioEmpty   = "empty"
	scenarioStart   = "start"
	scenarioSync    = "sync"
	scenarioLatency = "latency"
	scenarioEvents  = "events"
	scenarioRules   = "rules"
	scenarioWire    = "wire"
	scenarioServer  = "server"
	scenarioChurn   = "churn"
	scenarioDrift   = "drift"
	scenarioCustom  = "custom"
	scenarioPods    = "pods"
	scenarioLarge   = "large"
)

// scenarios are all of them, in their order, and what each measures. Heap for each
// object takes the heap without objects: sync and large have it only with empty.
var scenarios = []struct{ name, what string }{
	{scenarioOffline, "`rectifier fix` over one file"},
	{scenarioEmpty, "heap without objects"},
	{scenarioStart, "start to first fix"},
	{scenarioSync, "reading all Deployments of 3.5 KB, of several numbers"},
	{scenarioLatency, "a drift to its fix, one after the other"},
	{scenarioEvents, "CPU of a fix, when each has its Event"},
	{scenarioRules, "CPU of an update with up to 1,000 rules on the resource"},
	{scenarioWire, "bytes of reading all, and of one update"},
	{scenarioServer, "CPU of kube-apiserver for one watch event"},
	{scenarioChurn, "CPU of an update of a status that nobody reads: steady, as fast as can be written, and in a burst"},
	{scenarioDrift, "thousands of drifts at once"},
	{scenarioCustom, "reading and updates of a custom resource"},
	{scenarioPods, "the same of Pods"},
	{scenarioLarge, "reading all Deployments of 16 KB"},
}

func scenarioNames() string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

// scenarioList is a line for each, for -h and for the page.
func scenarioList(format string) string {
	var b strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&b, format, s.name, s.what)
	}
	return b.String()
}
