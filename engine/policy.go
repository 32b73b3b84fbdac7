package engine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// policy is the rules in force. It is replaced as a whole, and never modified:
// a decision goes by one policy from its begin to its end.
type policy struct {
	rules    *rules.Set
	problems []*rules.Problem
	lookups  map[schema.GroupVersionResource][]*rules.Lookup
}

func newPolicy(set *rules.Set, problems []*rules.Problem) *policy {
	p := &policy{rules: set, problems: problems, lookups: map[schema.GroupVersionResource][]*rules.Lookup{}}
	for _, l := range set.Lookups() {
		p.lookups[l.Resource] = append(p.lookups[l.Resource], l)
	}
	return p
}

// rules are the rules in force at this moment.
func (e *Engine) rules() *rules.Set { return e.policy.Load().rules }
