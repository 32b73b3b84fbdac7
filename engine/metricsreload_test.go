package engine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/rules"
)

// The start is no reload. All results are there from the beginning: of a series
// that comes with its first increase, increase() does not see that.
func TestReloadsAreCountedFromZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	e, err := New(Options{Config: &rest.Config{Host: "127.0.0.1:1"}, Rules: &rules.Set{}, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"success": 0, "partial": 0, "failure": 0}
	check := func() {
		t.Helper()
		if diff := cmp.Diff(want, reloads(t, registry)); diff != "" {
			t.Errorf("reloads (-want +got):\n%s", diff)
		}
	}
	check()
	if _, err := e.SetRules(&rules.Set{}, nil); err != nil {
		t.Fatal(err)
	}
	want["success"]++
	check()
	if _, err := e.SetRules(&rules.Set{}, []*rules.Problem{{Rule: "r", Msg: "it does not compile"}}); err != nil {
		t.Fatal(err)
	}
	want["partial"]++
	check()
	e.KeepRules(errors.New("they cannot be read"))
	want["failure"]++
	check()
}

// reloads are those that were counted, by result.
func reloads(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "rectifier_rule_reloads_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return out
}
