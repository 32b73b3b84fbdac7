package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// wholeLookup finds lookups that no index answers, of resources that grow with the
// cluster: each evaluation that reads one parses all objects of the resource. A
// lookup in one namespace takes the objects of that, and is not reported; where cost
// has a loop to show, that says enough.
var wholeLookup = &Check{ID: "whole-lookup", Severity: Warning, Summary: "A lookup takes all objects of a resource that grows with the cluster", Run: func(p *Pass) {
	list := p.Field("spec", "lookups")
	if list == nil {
		return
	}
	s := newScene(p)
	looped := s.loopedOver()
	for _, item := range list.Content {
		item = yamldoc.Resolve(item)
		_, name := yamldoc.Field(item, "name")
		i := slices.IndexFunc(p.Rule.Lookups, func(l *rules.Lookup) bool { return name != nil && l.Name == name.Value })
		if i < 0 || slices.Contains(looped, "lookups."+name.Value) {
			continue
		}
		l := p.Rule.Lookups[i]
		if l.Namespaced || len(l.Where) > 0 || !s.grows(l.Resource) {
			continue
		}
		also := ""
		if _, selector := yamldoc.Field(item, "labelSelector"); selector != nil {
			also = "; labelSelector looks at each of them"
		}
		p.Reportf(p.Doc.Pos(name), "lookups.%s takes all %s of the cluster, each time that it is read, some µs for each: let where, or namespace, find those that are meant%s", l.Name, l.Resource.Resource, also)
	}
}}

// loopedOver are the lookups of which cost reports a loop over all objects.
func (s *scene) loopedOver() []string {
	var out []string
	for _, e := range s.pass.Expressions {
		s.loops(s.trees[e], nil, func(n *expression.Node, _ []*expression.Node) {
			if lookup := s.lookupOf(n.Target); lookup != "" && s.unbounded(lookup) {
				out = append(out, lookup)
			}
		})
	}
	return out
}

// grows reports whether there surely are the more objects of a resource the larger
// the cluster is: what is in namespaces, and what stands for machines, disks and teams.
// Classes, policies and the like of the whole cluster are few.
func (s *scene) grows(resource schema.GroupVersionResource) bool {
	kind := s.pass.typing.kinds.of(resource)
	if kind.known && kind.Namespaced {
		return true
	}
	of := resource.GroupResource()
	return of.Group == "" && slices.Contains([]string{"namespaces", "nodes", "persistentvolumes"}, of.Resource)
}
