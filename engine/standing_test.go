package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// RBC-01: what is missing shows in metrics too, for as long as it is missing. Rules on
// two versions of a resource make one series.
func TestWhatIsParkedShowsInMetrics(t *testing.T) {
	f := newFixture(t)
	f.grant("configmaps", "list", "watch", "patch")
	f.grant("namespaces", "list", "watch")
	f.grantIn("autoscaling", "horizontalpodautoscalers", "list", "watch")
	f.create(hpas, hpaYAML, "web", "web")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	label := func(name, group, version, resource string) string {
		return rule(name, fmt.Sprintf(`
resource: {group: "%s", version: %s, resource: %s}
patch: {merge: {metadata: {labels: {%s: "yes"}}}}`, group, version, resource, name))
	}
	registry := prometheus.NewRegistry()
	f.startAs(config, Options{Registerer: registry},
		label("works", "", "v1", "configmaps"), label("unseen", "", "v1", "secrets"),
		label("old", "autoscaling", "v1", "horizontalpodautoscalers"), label("new", "autoscaling", "v2", "horizontalpodautoscalers"),
		label("absent", "example.io", "v1", "widgets"), rule("no-endpoint", `
resource: {version: v1, resource: configmaps}
patch: {subresource: status, merge: {status: {phase: Ready}}}`))
	want := func(lines ...string) {
		t.Helper()
		testcluster.Eventually(t, 30*time.Second, func() error {
			got := scrape(t, registry, "rectifier_resource_synced", "rectifier_rule_parked")
			if diff := cmp.Diff(lines, got); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
	}
	for _, seen := range []float64{0, 1} {
		want(
			"rectifier_resource_synced  configmaps 1",
			"rectifier_resource_synced  horizontalpodautoscalers.autoscaling 1",
			"rectifier_resource_synced  namespaces 1",
			fmt.Sprintf("rectifier_resource_synced  secrets %v", seen),
			"rectifier_resource_synced  widgets.example.io 0",
			"rectifier_rule_parked configmaps no-endpoint 1",
			"rectifier_rule_parked configmaps works 0",
			"rectifier_rule_parked horizontalpodautoscalers.autoscaling new 1",
			"rectifier_rule_parked horizontalpodautoscalers.autoscaling old 1",
			fmt.Sprintf("rectifier_rule_parked secrets unseen %v", 1-seen),
			"rectifier_rule_parked widgets.example.io absent 1",
		)
		if seen == 0 {
			f.grant("secrets", "list", "watch", "patch")
		}
	}
}

// scrape reads gauges: name, values of the labels in the order of their names, value.
func scrape(t *testing.T, registry prometheus.Gatherer, names ...string) (lines []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !slices.Contains(names, family.GetName()) {
			continue
		}
		for _, m := range family.GetMetric() {
			line := family.GetName()
			for _, label := range m.GetLabel() {
				line += " " + label.GetValue()
			}
			lines = append(lines, fmt.Sprintf("%s %v", line, m.GetGauge().GetValue()))
		}
	}
	slices.Sort(lines)
	return lines
}
