package lint

import (
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
)

// olderVersion finds rules that write through a version which may not know all of
// the object: the API server stores what that version can hold.
var olderVersion = &Check{
	ID: "older-version", Severity: Warning, Summary: "A custom resource is written through a version that is not the preferred one",
	Run: func(p *Pass) {
		if p.Rule.Mode != rules.Enforce {
			return
		}
		for i, resource := range p.Rule.Resources {
			kind := p.typing.kinds.of(resource)
			if !kind.known || kind.Preferred == "" {
				continue
			}
			at := resourceNode(p, i)
			if _, version := yamldoc.Field(resourceFields(p, i), "version"); version != nil {
				at = version
			}
			p.Reportf(p.Doc.Pos(at), "what only %s of %s knows may be lost by a write through %s: name %[1]s", kind.Preferred, resource.Resource, resource.Version)
		}
	},
}
