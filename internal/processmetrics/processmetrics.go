package processmetrics

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Register has r collect rectifier_build_info, go_* and process_*. It panics if r
// has one of them.
func Register(r prometheus.Registerer, version string) {
	info, _ := debug.ReadBuildInfo()
	register(r, version, info)
}

func register(r prometheus.Registerer, version string, info *debug.BuildInfo) {
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rectifier_build_info",
		Help: "1, with the version, the commit that it was built from, and the version of Go.",
	}, []string{"version", "revision", "goversion"})
	build.WithLabelValues(version, revision(info), runtime.Version()).Set(1)
	r.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// revision is the commit that the binary was built from, with -dirty if there
// were changes; empty: the build does not tell. info may be nil.
func revision(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	var commit, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}
