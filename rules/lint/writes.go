package lint

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// trial tries rules of a resource on made-up objects.
func (p *Pass) trial(resource schema.GroupVersionResource) rules.Trial {
	if p.Known != nil {
		if known, ok := p.Known.Resource(context.Background(), resource); ok {
			return known.Trial(resource)
		}
	}
	return rules.Trial{Resource: resource, Namespaced: true}
}

// Trial tries rules on made-up objects of the resource.
func (r Resource) Trial(resource schema.GroupVersionResource) rules.Trial {
	trial := rules.Trial{Resource: resource, Kind: r.Kind, Namespaced: r.Namespaced, ReplicasPath: r.ReplicasPath}
	if r.Schema != nil {
		trial.Schema = r.Schema
	}
	return trial
}

// shared are the resources that two rules are both about.
func shared(a, b *rules.Rule) []schema.GroupVersionResource {
	return slices.DeleteFunc(slices.Clone(a.Resources), func(r schema.GroupVersionResource) bool { return !slices.Contains(b.Resources, r) })
}

// rivals are the enforced rules that come before this one and are about the
// same resource. Whether they may change one object is asked of those few that
// have anything to do with this one: see apart.
func (p *Pass) rivals() []*rules.Definition {
	if p.Rule.Mode != rules.Enforce {
		return nil
	}
	var out []*rules.Definition
	for _, other := range p.All {
		if other.Name < p.Name && other.Rule.Mode == rules.Enforce && len(shared(p.Rule, other.Rule)) > 0 {
			out = append(out, other)
		}
	}
	return out
}

// writesAny reports whether a rule may change what is at one of some paths.
func writesAny(r *rules.Rule, paths ...[]string) bool {
	return slices.ContainsFunc(r.Writes(), func(w *rules.Write) bool {
		return slices.ContainsFunc(paths, func(path []string) bool {
			n := min(len(path), len(w.Path))
			return slices.Equal(path[:n], w.Path[:n])
		})
	})
}

// feeds returns where a rule writes what another one reads; nil: nowhere.
func feeds(from, to *rules.Rule) *rules.Write {
	for _, w := range from.Writes() {
		if w.Feeds(to.ConditionReads()) {
			return w
		}
	}
	return feedsValues(from, to)
}

// feedsValues returns where a rule writes what the values of another one are
// computed from; nil: nowhere.
func feedsValues(from, to *rules.Rule) *rules.Write {
	for _, w := range from.Writes() {
		for i := range to.Patches() {
			if reads, _ := to.PatchReads(i); w.Feeds(reads) {
				return w
			}
		}
	}
	return nil
}

// isPath reports whether a write changes what is at or below a path, as far as
// that can be told: one that may change anything does not count.
func isPath(w *rules.Write, path ...string) bool {
	if len(w.Path) < len(path) {
		return w.Exact && len(w.Path) > 0 && slices.Equal(w.Path, path[:len(w.Path)])
	}
	return slices.Equal(w.Path[:len(path)], path)
}

// isWorkload reports whether a resource keeps pods of a template running.
func isWorkload(r schema.GroupResource, names ...string) bool {
	return r.Group == "apps" && slices.Contains(names, r.Resource) || r.Group == "argoproj.io" && r.Resource == "rollouts"
}

// anyResource reports whether a rule is about a resource for which f holds.
func anyResource(r *rules.Rule, f func(schema.GroupResource) bool) bool {
	return slices.ContainsFunc(r.Resources, func(gvr schema.GroupVersionResource) bool { return f(gvr.GroupResource()) })
}

// position names where another rule does something, as people say it.
func position(d *rules.Definition, w *rules.Write) string {
	return fmt.Sprintf("the rule %s (%s)", d.Name, w.Pos)
}
