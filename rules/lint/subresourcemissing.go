package lint

import (
	"fmt"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// subresourceMissing finds patches through an endpoint that there is not.
var subresourceMissing = &Check{
	ID: "subresource-missing", Severity: Error, Summary: "A patch goes to a subresource that the resource does not have",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			if !one.kind.known {
				return
			}
			for _, n := range p.PatchNodes() {
				_, v := yamldoc.Field(n, "subresource")
				if v == nil {
					continue
				}
				at, name := p.Doc.Pos(v), yamldoc.Resolve(v).Value
				switch {
				case name == "status" && !one.kind.HasStatus:
					report(at, fmt.Sprintf("%s has no subresource status: leave subresource out", one.gvr.Resource))
				case name == "scale" && !one.kind.HasScale:
					report(at, fmt.Sprintf("%s has no subresource scale: leave subresource out, and write the field itself", one.gvr.Resource))
				case name == "scale" && one.kind.ReplicasPath == nil:
					report(at, fmt.Sprintf("where %s keeps its replica count is not known: leave subresource out, and write the field itself", one.gvr.Resource))
				}
			}
		})
	},
}
