package lint

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// clusterScopedNamespaces finds namespaces that are asked of objects that are in
// none: such a rule matches nothing, or leaves out nothing.
var clusterScopedNamespaces = &Check{
	ID: "cluster-scoped-namespaces", Severity: Error, Summary: "Namespaces of a cluster-scoped resource are named",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			if !one.kind.known || one.kind.Namespaced {
				return
			}
			for _, field := range [][2]string{
				{"namespaces", "the rule matches none of them"},
				{"excludeNamespaces", "nothing is left out"},
				// As in admission. A Namespace has labels of its own, and beside
				// namespaced resources the selector is of use.
				{"namespaceSelector", "all of them fit the selector"},
			} {
				at := p.keyOf(field[0], "spec", "match")
				if at == nil || field[0] == "namespaceSelector" && (one.gvr == namespaces || len(p.Rule.Resources) > 1) {
					continue
				}
				report(p.Doc.Pos(at), fmt.Sprintf("%s is cluster-scoped: its objects are in no namespace, so %s", one.gvr.Resource, field[1]))
			}
		})
		for i, l := range p.Rule.Lookups {
			kind := p.typing.kinds.of(l.Resource)
			if !l.Namespaced || !kind.known || kind.Namespaced {
				continue
			}
			if list := p.Field("spec", "lookups"); list != nil && i < len(list.Content) {
				if key, _ := yamldoc.Field(yamldoc.Resolve(list.Content[i]), "namespace"); key != nil {
					p.Reportf(p.Doc.Pos(key), "%s is cluster-scoped: in a namespace nothing is ever found; leave namespace out", l.Resource.Resource)
				}
			}
		}
	},
}

// keyOf is the key of a field, nil if it is not given.
func (p *Pass) keyOf(field string, path ...string) *yaml.Node {
	n := p.Field(path...)
	if n == nil {
		return nil
	}
	key, _ := yamldoc.Field(n, field)
	return key
}
