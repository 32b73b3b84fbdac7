package statuspage

import (
	"fmt"
	"time"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// example has one of everything.
func example() engine.Status {
	before := func(d time.Duration) time.Time { return noon.Add(-d) }
	return engine.Status{
		Time: noon, Ready: true, ReadySince: before(3 * time.Hour), WaitingFor: []string{},
		Leadership: engine.Leadership{Role: engine.Leader, Identity: "rectifier-0_1", Leader: "rectifier-0_1", Lease: "rectifier/rectifier", Since: before(3 * time.Hour)},
		Discovery:  engine.Discovery{Done: true},
		Namespaces: []string{}, ExcludedNamespaces: []string{"kube-system"}, QueueDepth: 3, RulesLoaded: before(time.Hour),
		UnreadRules: "read /rules: permission denied",
		InvalidRules: []engine.InvalidRule{{
			Rule: "broken", File: "/rules/b.yaml", Line: 7, Column: 14, Check: "cel-compile", Message: "undeclared reference to 'objct'",
			Excerpt: "  7 |   condition: objct.spec\n                   ^", Kept: true,
		}},
		Rules: []engine.RuleStatus{
			{Name: "label", Description: "Labels.", Mode: "Enforce", File: "/rules/a.yaml", Line: 3, Column: 18, On: []engine.RuleOnResource{
				{Resource: "apps/v1/deployments", State: engine.RuleRunning, Parked: []engine.Parking{}, Contended: 1, Evaluations: 12345, NoMatch: 45, Fixed: 67, Failed: 1,
					LastEvaluation: before(time.Second), LastFix: before(90 * time.Second)},
				{Resource: "example.io/v1/widgets", State: engine.RuleParked, Parked: []engine.Parking{{Reason: "waiting", Message: "not served by the cluster"}}},
			}},
			{Name: "look", Mode: "Audit", File: "/rules/a.yaml", Line: 20, Column: 18, On: []engine.RuleOnResource{
				{Resource: "v1/secrets", State: engine.RuleParked, Parked: []engine.Parking{{Reason: "forbidden", Message: "forbidden: list secrets at cluster scope"}}},
			}},
		},
		Resources: []engine.ResourceStatus{
			{Resource: "apps/v1/deployments", State: gvr.Synced, Since: before(3 * time.Hour), Objects: 1234, Rules: []string{"label"}},
			{Resource: "v1/secrets", State: gvr.Forbidden, Reason: "list secrets at cluster scope", Since: before(time.Minute), Rules: []string{"look"}, Consequence: "parked: look"},
			{Resource: "example.io/v1/widgets", State: gvr.Waiting, Reason: "not served by the cluster", Since: before(time.Hour), Rules: []string{"label"}, Consequence: "parked: label"},
		},
		Contentions: []engine.ContentionStatus{{
			Rule: "label", Resource: "deployments.apps", Namespace: "shop", Name: "web", Fields: []string{"metadata.labels.team"}, Managers: []string{"argocd-controller"},
			Since: before(10 * time.Minute), Until: noon.Add(2 * time.Minute), Held: true, Holds: 2,
		}},
		Recent: []engine.Activity{
			{Kind: engine.Fixed, Time: before(90 * time.Second), First: before(time.Hour), Times: 4, Rules: []string{"label"}, Resource: "apps/v1/deployments", Namespace: "shop", Name: "cart",
				Reason: "Rectified", Changes: []engine.FieldChange{
					{Field: "metadata.labels.team", Before: "blue", After: "green"},
					{Field: "spec.strategy", Before: "rollingUpdate: {}\ntype: RollingUpdate", After: "type: Recreate"},
					{Field: "data.password", Hidden: true},
				}, MoreChanges: 2},
			{Kind: engine.Failed, Time: before(5 * time.Minute), First: before(5 * time.Minute), Times: 1, Rules: []string{"label"}, Resource: "apps/v1/deployments", Namespace: "shop", Name: "web",
				Reason: "PatchRefused", Message: "the API server refuses the change: Invalid (spec)"},
		},
		Advice: []string{"rule look: it matches in none of --namespace shop"},
	}
}

// many is a large installation: 1,000 rules, 300 resources, 5,000 contentions.
func many() engine.Status {
	s := example()
	for i := range 1000 {
		s.Rules = append(s.Rules, engine.RuleStatus{Name: fmt.Sprintf("rule-%04d", i), Mode: "Enforce", On: []engine.RuleOnResource{
			{Resource: fmt.Sprintf("example.io/v1/things%03d", i%300), State: engine.RuleRunning, Parked: []engine.Parking{}},
		}})
	}
	for i := range 300 {
		s.Resources = append(s.Resources, engine.ResourceStatus{Resource: fmt.Sprintf("example.io/v1/things%03d", i), State: gvr.Synced, Rules: []string{}})
	}
	first := s.Contentions[0]
	for i := range 5000 {
		c := first
		c.Rule, c.Name = fmt.Sprintf("rule-%04d", i%1000), fmt.Sprintf("object-%d", i)
		s.Contentions = append(s.Contentions, c)
	}
	return s
}
