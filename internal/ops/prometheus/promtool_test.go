package prometheus

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/ops"
)

func promtool(t *testing.T, args ...string) {
	t.Helper()
	ops.Require(t, "promtool")
	if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

// Each alert fires on its cause and is silent otherwise, with its real times.
func TestPromtoolRules(t *testing.T) {
	promtool(t, "check", "rules", alertsFile)
	cases, err := filepath.Glob(root + "/deploy/prometheus/*_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, append([]string{"test", "rules"}, cases...)...)
}

var podDiscovery = regexp.MustCompile(`(?s)  kubernetes_sd_configs:\n.*?(  relabel_configs:)`)

// The example of a configuration is one. Debian's Prometheus is built without
// the discovery of pods: that part of it is only looked at by eye.
func TestPromtoolConfig(t *testing.T) {
	config := podDiscovery.ReplaceAllString(readFile(t, scrapeFile), "  static_configs: [{targets: [\"127.0.0.1:1\"]}]\n$1")
	file := filepath.Join(t.TempDir(), "scrape.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "config", "--syntax-only", file)
}
