package offline

import (
	"context"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules"
)

// NeverRests reports whether a rule does not come to a fixed point on objects
// that are made up of what it reads: it prepends a prefix, counts, appends. It
// is a finding, not a proof: a rule that it says nothing of may still not come
// to rest on other objects, which is then found at run time, before any write.
// The check fixed-point of rules/lint does the same with more to say.
func NeverRests(r *rules.Rule, catalog *gvr.Catalog, types openapi.Types) bool {
	if r.Rests() {
		return false
	}
	known := Known{Catalog: catalog, Types: types}
	for _, resource := range r.Resources {
		trial := rules.Trial{Resource: resource, Namespaced: true}
		if about, ok := known.Resource(context.Background(), resource); ok {
			trial = about.Trial(resource)
		}
		if object, _ := trial.Restless(r); object != nil {
			return true
		}
	}
	return false
}
