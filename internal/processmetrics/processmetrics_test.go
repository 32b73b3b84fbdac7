package processmetrics

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gathered are the names of all metrics, and the labels of rectifier_build_info.
func gathered(t *testing.T, registry *prometheus.Registry) (names map[string]bool, build map[string]string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names, build = map[string]bool{}, map[string]string{}
	for _, family := range families {
		names[family.GetName()] = true
		if family.GetName() != "rectifier_build_info" {
			continue
		}
		if len(family.GetMetric()) != 1 || family.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("rectifier_build_info is %v", family)
		}
		for _, label := range family.GetMetric()[0].GetLabel() {
			build[label.GetName()] = label.GetValue()
		}
	}
	return names, build
}

func TestTheBuildShows(t *testing.T) {
	commit, dirty := debug.BuildSetting{Key: "vcs.revision", Value: "c0ffee"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for name, tc := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"a commit":              {&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, commit, {Key: "vcs.modified", Value: "false"}}}, "c0ffee"},
		"with changes":          {&debug.BuildInfo{Settings: []debug.BuildSetting{commit, dirty}}, "c0ffee-dirty"},
		"in the other order":    {&debug.BuildInfo{Settings: []debug.BuildSetting{dirty, commit}}, "c0ffee-dirty"},
		"changes of no commit":  {&debug.BuildInfo{Settings: []debug.BuildSetting{dirty}}, ""},
		"no version control":    {&debug.BuildInfo{}, ""},
		"nothing about a build": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			register(registry, "v1.2.3", tc.info)
			_, got := gathered(t, registry)
			want := map[string]string{"version": "v1.2.3", "revision": tc.want, "goversion": runtime.Version()}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheProcessShows(t *testing.T) {
	registry := prometheus.NewRegistry()
	Register(registry, "v1.2.3")
	names, _ := gathered(t, registry)
	for _, name := range []string{"rectifier_build_info", "go_goroutines", "process_start_time_seconds"} {
		if !names[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
