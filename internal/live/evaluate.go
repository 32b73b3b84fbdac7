package live

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// Evaluation is what rules make of one object.
type Evaluation struct {
	rules.Result
	// Notes are what could not be read, and what follows from it.
	Notes []string
}

// Evaluate runs the rules for an object of the cluster, with traces.
func (c *Cluster) Evaluate(ctx context.Context, all []*rules.Rule, info gvr.Info, object map[string]any, now time.Time) Evaluation {
	u := unstructured.Unstructured{Object: object}
	in := rules.Input{
		Resource: info.Resource, Object: object, ReplicasPath: info.ReplicasPath, HasStatus: info.HasStatus,
		Lookups: lookups{c, ctx}, Now: now, Explain: true, Trace: true,
	}
	var out Evaluation
	reads := func(r *rules.Rule) bool { return r.NeedsNamespace || r.OptOut }
	if info.Namespaced && slices.ContainsFunc(all, reads) {
		namespace, err := c.Namespace(ctx, u.GetNamespace())
		in.NamespaceObject = namespace
		if err != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("the Namespace %q cannot be read, so opt-outs on it are not seen: %v", u.GetNamespace(), err))
		}
	}
	if slices.ContainsFunc(all, func(r *rules.Rule) bool { return r.NeedsSchema }) {
		t, err := c.types.Type(ctx, info.Resource.GroupVersion().WithKind(info.Kind))
		if err != nil {
			out.Notes = append(out.Notes, "the schema of the kind is not known: "+schemaReason(err))
		} else {
			in.Schema = t
		}
	}
	out.Result = rules.Settle(all, in)
	return out
}

// Parked says why `rectifier run` does not run a rule on a resource, whoever
// asks; empty: it does, if it has the permissions. The engine decides the same
// from its caches.
func (c *Cluster) Parked(ctx context.Context, r *rules.Rule, info gvr.Info) string {
	if why := r.Unfit(rules.Traits{Namespaced: info.Namespaced, HasStatus: info.HasStatus, HasScale: info.HasScale, ReplicasPath: info.ReplicasPath}); why != "" {
		return why
	}
	for _, l := range r.Lookups {
		_, reason, served := c.Info(ctx, l.Resource)
		if !served && (!l.Optional || c.failed[l.Resource.GroupVersion()]) {
			return fmt.Sprintf("it looks up %s, which is not available: %s", rules.ResourceName(l.Resource), reason)
		}
	}
	return ""
}
