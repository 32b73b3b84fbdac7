package processmetrics

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestTheBuildShows(t *testing.T) {
	registry := prometheus.NewRegistry()
	Register(registry, "v1.2.3")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	seen := map[string]bool{}
	for _, family := range families {
		seen[family.GetName()] = true
		if family.GetName() != "rectifier_build_info" {
			continue
		}
		for _, label := range family.GetMetric()[0].GetLabel() {
			got[label.GetName()] = label.GetValue()
		}
	}
	if _, ok := got["revision"]; !ok || got["version"] != "v1.2.3" || got["goversion"] != runtime.Version() {
		t.Errorf("the build is %v", got)
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
