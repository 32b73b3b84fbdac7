package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/gvr"
)

func synced(s engine.Status) bool {
	for _, r := range s.Resources {
		if r.State != gvr.Synced {
			return false
		}
	}
	return s.Ready && len(s.Resources) > 0 && s.QueueDepth == 0
}

// quiet has nothing to do: all objects are right.
func quiet(t *testing.T) *stage {
	s := newStage(t)
	s.apply("shop.yaml")
	s.run(s.admin("quiet-engine"), engine.Options{}, "rules.yaml")
	s.eventually("all is read, and nothing is wrong", func(st engine.Status) bool {
		for _, r := range st.Rules {
			for _, on := range r.On {
				if on.Evaluations == 0 {
					return false
				}
			}
		}
		return synced(st)
	})
	return s
}

// busy has put right what somebody else got wrong, on several resources.
func busy(t *testing.T) *stage {
	s := newStage(t)
	s.apply("shop.yaml")
	s.apply("billing.yaml")
	s.run(s.admin("busy-engine"), engine.Options{QPS: -1}, "rules.yaml")
	s.eventually("all is read", synced)
	drift(s)
	s.eventually("it has been put right", func(st engine.Status) bool { return fixes(st) >= 12 && synced(st) })
	return s
}

// drift is what other people do on a day.
func drift(s *stage) {
	s.mustWrite("kubectl-edit", "Database", "shop", "orders", `{"spec":{"deletionPolicy":"Delete","backup":null}}`)
	s.mustWrite("kubectl-edit", "ConfigMap", "shop", "web-settings", `{"metadata":{"labels":{"team":"stroefront"}}}`)
	s.mustWrite("kubectl-edit", "Secret", "shop", "web-token", `{"metadata":{"labels":null}}`)
	for i, name := range []string{"cart", "web"} {
		s.mustWrite("kubectl-scale", "Deployment", "shop", name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, 7*i))
	}
}

func fixes(s engine.Status) (n int64) {
	for _, r := range s.Rules {
		for _, on := range r.On {
			n += on.Fixed
		}
	}
	return n
}

// problems has one of each kind that there is.
func problems(t *testing.T) *stage {
	s := newStage(t)
	s.apply("warehouse.yaml")
	s.run(s.user("warehouse-engine"), engine.Options{QPS: -1, Contention: engine.Contention{Count: 3, Window: 10 * time.Minute}}, "problems.yaml")
	// Argo CD has another opinion of one field, and insists on it.
	s.eventually("the rule gives way", func(st engine.Status) bool {
		if err := s.write("argocd-controller", "ConfigMap", "warehouse", "routes", `{"data":{"mode":"fastest"}}`); err != nil {
			s.Error(err)
		}
		return len(st.Contentions) > 0
	})
	s.eventually("all of it has come to light", func(st engine.Status) bool {
		kinds := map[engine.ActivityKind]bool{}
		for _, a := range st.Recent {
			kinds[a.Kind] = true
		}
		states := map[gvr.State]bool{}
		for _, r := range st.Resources {
			states[r.State] = true
		}
		parked := 0
		for _, r := range st.Rules {
			for _, on := range r.On {
				parked += len(on.Parked)
			}
		}
		return st.Ready && kinds[engine.Failed] && kinds[engine.Held] && kinds[engine.Audited] && kinds[engine.Fixed] &&
			states[gvr.Waiting] && states[gvr.Forbidden] && parked >= 3 && len(st.InvalidRules) == 1
	})
	return s
}
