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
		slices.Sort(lines)
		testcluster.Eventually(t, 30*time.Second, func() error {
			got := scrape(t, registry, "rectifier_resource_state", "rectifier_rule_parked")
			if diff := cmp.Diff(lines, got); diff != "" {
				return fmt.Errorf("(-want +got):\n%s", diff)
			}
			return nil
		})
	}
	for _, seen := range []bool{false, true} {
		state, parked := "secrets forbidden 1", "forbidden secrets unseen 1"
		if seen {
			state, parked = "secrets synced 1", " secrets unseen 0"
		}
		want(
			"rectifier_resource_state  configmaps synced 1",
			"rectifier_resource_state  horizontalpodautoscalers.autoscaling synced 1",
			"rectifier_resource_state  namespaces synced 1",
			"rectifier_resource_state  "+state,
			"rectifier_resource_state  widgets.example.io waiting 1",
			"rectifier_rule_parked  configmaps works 0",
			"rectifier_rule_parked "+parked,
			"rectifier_rule_parked patch_forbidden horizontalpodautoscalers.autoscaling new 1",
			"rectifier_rule_parked patch_forbidden horizontalpodautoscalers.autoscaling old 1",
			"rectifier_rule_parked unfit configmaps no-endpoint 1",
			"rectifier_rule_parked waiting widgets.example.io absent 1",
		)
		if !seen {
			f.grant("secrets", "list", "watch", "patch")
		}
	}
}

// scrape reads gauges: name, values of the labels in the order of their names,
// value. Of the states of a resource it reads the one that is.
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
			if family.GetName() == "rectifier_resource_state" && m.GetGauge().GetValue() == 0 {
				continue
			}
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
