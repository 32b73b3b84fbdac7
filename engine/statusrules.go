package engine

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// RuleStatus is a rule in force.
type RuleStatus struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Mode        rules.Mode `json:"mode"`
	// File, Line and Column are where its name stands.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Kept says that this is an old version: the rule does not compile as it is
	// written now. See InvalidRules.
	Kept bool             `json:"kept,omitempty"`
	On   []RuleOnResource `json:"on"` // each resource of the rule, sorted
}

// RuleState says whether a rule works on a resource.
type RuleState string

const (
	RuleRunning RuleState = "Running"
	RuleWaiting RuleState = "Waiting" // for the first list, or for this instance to lead
	RuleParked  RuleState = "Parked"  // it cannot run, at least on some objects: see the reason
)

// RuleOnResource is how a rule stands on one resource.
type RuleOnResource struct {
	Resource string    `json:"resource"` // group/version/resource
	State    RuleState `json:"state"`
	// Parked is why it cannot run; none: it can.
	Parked []Parking `json:"parked"`
	// Contended is the number of objects for which the rule gives way.
	Contended int `json:"contended"`

	// The counts, and the times, begin with this instance, and with the rule
	// being about the resource. All versions of a resource count together.
	// Evaluations are looks at an object; among them, NoMatch where the rule is
	// not about the object, and Audit where it would change something.
	Evaluations int64 `json:"evaluations"`
	NoMatch     int64 `json:"noMatch"`
	Audit       int64 `json:"audit"`
	Fixed       int64 `json:"fixed"`  // changes that were accepted and kept
	Failed      int64 `json:"failed"` // failures that were told of, contentions included

	LastEvaluation time.Time `json:"lastEvaluation,omitzero"`
	LastFix        time.Time `json:"lastFix,omitzero"`
}

// Parking is why a rule cannot run on a resource.
type Parking struct {
	// Reason is that of the metric rectifier_rule_parked.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// ruleAt is a rule on a resource.
type ruleAt struct {
	rule     string
	resource schema.GroupVersionResource
}

// ruleSurvey is what the state of rules is made of.
type ruleSurvey struct {
	leads     bool
	kept      map[string]bool // by rule
	parked    map[ruleAt][]Parking
	scopes    map[schema.GroupVersionResource]scopes
	contended map[ruleOn]int
	counts    map[ruleOn]RuleCounts
	fixes     map[ruleOn]time.Time
}

// scopes says how far a resource is in all its scopes together: the cluster, or
// namespaces.
type scopes struct {
	syncing bool // in one of them at least, the first list is not there yet
	settled bool // in one of them at least, it is, or there is a reason why not
}

func scopesOf(resources []gvr.Status) map[schema.GroupVersionResource]scopes {
	out := map[schema.GroupVersionResource]scopes{}
	for _, s := range resources {
		of := out[s.Resource]
		if s.State == gvr.Syncing {
			of.syncing = true
		} else {
			of.settled = true
		}
		out[s.Resource] = of
	}
	return out
}

func (e *Engine) ruleStatuses(p *policy, resources []gvr.Status, contentions []ContentionStatus) []RuleStatus {
	survey := ruleSurvey{
		leads: e.leadership().leads(), kept: keptRules(p), parked: e.parkings(resources),
		scopes: scopesOf(resources), contended: map[ruleOn]int{},
		counts: e.metrics.counts(), fixes: e.recent.lastFixes(),
	}
	for _, c := range contentions {
		survey.contended[ruleOn{c.Rule, c.Resource}]++
	}
	out := []RuleStatus{}
	for _, r := range p.rules.All() {
		status := RuleStatus{
			Name: r.Name, Description: r.Description, Mode: r.Mode,
			File: r.Pos.File, Line: r.Pos.Line, Column: r.Pos.Column, Kept: survey.kept[r.Name],
		}
		for _, resource := range r.Resources {
			status.On = append(status.On, survey.on(r, resource))
		}
		slices.SortFunc(status.On, func(a, b RuleOnResource) int { return strings.Compare(a.Resource, b.Resource) })
		out = append(out, status)
	}
	return out
}

func (s *ruleSurvey) on(r *rules.Rule, resource schema.GroupVersionResource) RuleOnResource {
	at := ruleOn{r.Name, resource.GroupResource().String()}
	counts := s.counts[at]
	out := RuleOnResource{
		Resource: rules.ResourceName(resource), State: RuleRunning, Parked: []Parking{}, Contended: s.contended[at],
		Evaluations: counts.Evaluations, NoMatch: counts.NoMatch, Audit: counts.Audit, Fixed: counts.Fixed, Failed: counts.Failed,
		LastEvaluation: counts.LastEvaluated, LastFix: s.fixes[at],
	}
	parked := s.parked[ruleAt{r.Name, resource}]
	switch of := s.scopes[resource]; {
	case !s.leads || !of.settled:
		out.State = RuleWaiting
	case len(parked) > 0:
		out.State, out.Parked = RuleParked, parked
	case of.syncing:
		out.State = RuleWaiting
	}
	return out
}

// keptRules are those in force in an older version than they are written in now.
func keptRules(p *policy) map[string]bool {
	out, files := map[string]bool{}, map[string]bool{}
	for _, problem := range p.problems {
		out[problem.Rule] = out[problem.Rule] || problem.Kept
		if problem.Rule == "" && problem.Kept {
			files[problem.Pos.File] = true
		}
	}
	for _, r := range p.rules.All() {
		out[r.Name] = out[r.Name] || files[r.Pos.File]
	}
	return out
}

// parkings tells why rules cannot run on resources, in the order of messages.
func (e *Engine) parkings(resources []gvr.Status) map[ruleAt][]Parking {
	out := map[ruleAt][]Parking{}
	e.eachObstacle(resources, func(r *rules.Rule, resource schema.GroupVersionResource, word, why string) {
		at := ruleAt{r.Name, resource}
		out[at] = append(out[at], Parking{word, why})
	})
	for _, why := range out {
		slices.SortFunc(why, func(a, b Parking) int { return strings.Compare(a.Message, b.Message) })
	}
	return out
}

// eachObstacle visits all that keeps rules from resources, what has to be mended
// first before the rest: with the reason as metrics name it, and in words.
func (e *Engine) eachObstacle(statuses []gvr.Status, visit func(r *rules.Rule, resource schema.GroupVersionResource, word, why string)) {
	for _, s := range statuses {
		if s.State == gvr.Synced || s.State == gvr.Syncing {
			continue
		}
		for _, r := range e.rules().For(s.Resource) {
			visit(r, s.Resource, stateNames[rank(s.State)].name, parkedWith(s))
		}
	}
	e.eachParkedFor(visit)
	for _, t := range e.permissions.list() {
		for _, r := range e.writers(t.resource, t.subresource) {
			visit(r, t.resource, parkedPatchForbidden, t.missing())
		}
	}
}

// parkedWith is why rules are parked with their resource.
func parkedWith(s gvr.Status) string {
	why := s.Reason
	switch {
	case why == "":
		why = string(s.State)
	case s.State == gvr.Forbidden:
		why = "forbidden: " + why
	case s.State == gvr.Failing:
		why = "failing: " + why
	}
	if s.Namespace != "" {
		why = "in namespace " + s.Namespace + ": " + why
	}
	return why
}
