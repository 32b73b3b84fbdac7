package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// indexers gives the stores of a resource the indexes through which rules look
// its objects up.
func (e *Engine) indexers(resource schema.GroupVersionResource) cache.Indexers {
	out := cache.Indexers{}
	for _, p := range e.served() {
		for _, l := range p.lookups[resource] {
			out[l.Index()] = func(obj any) ([]string, error) {
				o, ok := obj.(*projection.Object)
				if !ok {
					return nil, nil
				}
				return []string{l.Key(o.Unstructured().Object)}, nil
			}
		}
	}
	return out
}

// lookups answers the queries of one evaluation from the informers' caches,
// and notes them: the object then depends on what they could find.
type lookups struct {
	*Engine
	object  Key
	queries []rules.Query
}

// Find implements rules.Lookups.
func (l *lookups) Find(q rules.Query) ([]map[string]any, error) {
	l.queries = append(l.queries, q)
	// Before the cache is read: a change that comes right after is not missed.
	l.dependents.add(l.object, q)
	found, available, reason, err := l.informers.Find(q.Resource, q.Index(), q.Keys()...)
	switch {
	case err != nil:
		return nil, err
	case available == gvr.Absent && q.Optional:
		return nil, nil
	case available != gvr.Available:
		return nil, fmt.Errorf("%s: %s", rules.ResourceName(q.Resource), reason)
	}
	found = slices.DeleteFunc(found, func(u *unstructured.Unstructured) bool { return !q.Selects(u.Object) })
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	out := make([]map[string]any, len(found))
	for i, u := range found {
		out[i] = u.Object
	}
	return out, nil
}

// absentLookup says which lookup of a rule is of a resource that is not served;
// empty: none is.
func (e *Engine) absentLookup(r *rules.Rule) string {
	for _, l := range r.Lookups {
		if available, reason := e.informers.Availability(l.Resource); available == gvr.Absent && !l.Optional {
			return fmt.Sprintf("it looks up %s, which is not available: %s", rules.ResourceName(l.Resource), reason)
		}
	}
	return ""
}

// unavailable says what a rule needs to know beside the object and cannot;
// empty: it can run.
func (e *Engine) unavailable(r *rules.Rule) string {
	for _, l := range r.Lookups {
		available, reason := e.informers.Availability(l.Resource)
		if available != gvr.Available && !(available == gvr.Absent && l.Optional) {
			return fmt.Sprintf("it looks up %s, which is not available: %s", rules.ResourceName(l.Resource), reason)
		}
	}
	return ""
}

func traits(info gvr.Info) rules.Traits {
	return rules.Traits{Namespaced: info.Namespaced, HasStatus: info.HasStatus, HasScale: info.HasScale, ReplicasPath: info.ReplicasPath}
}

// parkedReason says why a rule cannot run on a resource for now; empty: it can.
// Where Namespaces may not be read, opt-outs on them are not seen, and rules
// run without: what a rule needs is only the right to read and patch what it is
// about, unless it says more. word is the reason for metrics.
func (e *Engine) parkedReason(r *rules.Rule, info gvr.Info, ns gvr.Availability, survey *resourceSurvey) (word, why string) {
	if why := r.Unfit(traits(info)); why != "" {
		return parkedUnfit, why
	}
	if why := e.unavailable(r); why != "" {
		return parkedLookup, why
	}
	if resource, lacks := survey.lacks(r); lacks {
		return parkedFields, fmt.Sprintf("it needs fields of %s, which have not been read yet", rules.ResourceName(resource))
	}
	if r.NeedsSchema {
		if why := e.schemas.missing(info.Resource); why != "" {
			return parkedSchema, why
		}
	}
	if !info.Namespaced {
		return "", ""
	}
	if r.NeedsNamespace && ns != gvr.Available || r.OptOut && ns != gvr.Available && ns != gvr.Denied {
		_, reason := e.informers.Availability(namespaces)
		if len(e.opts.Namespaces) > 0 {
			reason = fmt.Sprintf("with --namespace %s, Namespaces could not be read", strings.Join(e.opts.Namespaces, ","))
		}
		return parkedNamespaces, "it reads Namespaces, which are not available: " + reason
	}
	return "", ""
}

// watched lists the resources that need an informer: rbac is where that is
// decided, so that the role it prints is the one that is needed.
func watched(set *rules.Set) []schema.GroupVersionResource { return rbac.Watched(set) }
