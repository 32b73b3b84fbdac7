package lint

import (
	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// eventRule finds rules about what the cluster writes by itself all the time.
var eventRule = &Check{ID: "event-rule", Severity: Warning, Summary: "The rule is about Events or Leases, which change all the time", Run: func(p *Pass) {
	for i, resource := range p.Rule.Resources {
		at := p.Doc.Pos(resourceNode(p, i))
		switch resource.GroupResource().String() {
		case "events", "events.events.k8s.io":
			p.Reportf(at, "the rule is about Events: each fix makes an Event, which the rule then sees, and Events are deleted after an hour")
		case "leases.coordination.k8s.io":
			p.Reportf(at, "the rule is about Leases: their holders write them every few seconds, rectifier's own among them, and a patch in between can cost the holder its lease")
		}
	}
}}

// resourceFields is the mapping that names a rule's resource.
func resourceFields(p *Pass, i int) *yaml.Node {
	if list := p.Field("spec", "resources"); list != nil && i < len(list.Content) {
		return yamldoc.Resolve(list.Content[i])
	}
	return p.Field("spec", "resource")
}

// resourceNode is where a rule's resource stands.
func resourceNode(p *Pass, i int) *yaml.Node {
	n := resourceFields(p, i)
	if _, name := yamldoc.Field(n, "resource"); name != nil {
		return name
	}
	return n
}
