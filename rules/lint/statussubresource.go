package lint

import (
	"fmt"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// statusSubresource finds status that is written through the main endpoint: the
// API server answers 200 and drops it.
var statusSubresource = &Check{
	ID: "status-subresource", Severity: Error, Summary: "A patch writes status, but not through the subresource status",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			if !one.kind.known || !one.kind.HasStatus {
				return
			}
			p.eachTarget(one, func(t *target) {
				if t.subresource == "" && len(t.path) == 1 && t.path[0] == "status" && t.op != "test" {
					report(t.at, fmt.Sprintf("status of %s is a subresource: the server drops what is written to it here; give the patch subresource: status", one.gvr.Resource))
				}
			})
		})
	},
}
