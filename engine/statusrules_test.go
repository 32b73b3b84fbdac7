package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// A rule that cannot run in one namespace says so, however far another one is.
func TestRuleStatesInSeveralNamespaces(t *testing.T) {
	r := &rules.Rule{Name: "r", Resources: []schema.GroupVersionResource{configmaps}}
	why := []Parking{{"forbidden", "in namespace b: forbidden: list configmaps"}}
	for _, tc := range []struct {
		name   string
		states []gvr.State
		parked []Parking
		leads  bool
		want   RuleState
	}{
		{"not known", nil, nil, true, RuleWaiting},
		{"synced", []gvr.State{gvr.Synced, gvr.Synced}, nil, true, RuleRunning},
		{"one syncs", []gvr.State{gvr.Syncing, gvr.Synced}, nil, true, RuleWaiting},
		{"both sync", []gvr.State{gvr.Syncing, gvr.Syncing}, why, true, RuleWaiting},
		{"one syncs, one is forbidden", []gvr.State{gvr.Syncing, gvr.Forbidden}, why, true, RuleParked},
		{"one is forbidden, one syncs", []gvr.State{gvr.Forbidden, gvr.Syncing}, why, true, RuleParked},
		{"one is synced, one is forbidden", []gvr.State{gvr.Synced, gvr.Forbidden}, why, true, RuleParked},
		{"a standby", []gvr.State{gvr.Synced}, why, false, RuleWaiting},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var resources []gvr.Status
			for _, state := range tc.states {
				resources = append(resources, gvr.Status{Resource: configmaps, State: state})
			}
			survey := ruleSurvey{leads: tc.leads, scopes: scopesOf(resources), parked: map[ruleAt][]Parking{{"r", configmaps}: tc.parked}}
			got := survey.on(r, configmaps)
			wantParked := []Parking{}
			if tc.want == RuleParked {
				wantParked = why
			}
			if got.State != tc.want {
				t.Errorf("it is %s, want %s", got.State, tc.want)
			}
			if diff := cmp.Diff(wantParked, got.Parked); diff != "" {
				t.Errorf("parked (-want +got):\n%s", diff)
			}
		})
	}
}
