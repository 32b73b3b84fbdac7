package lint

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var podTemplate = &Check{
	ID: "pod-template", Severity: Warning, Summary: "The patch replaces all pods of a workload",
	Run: runPodTemplate,
}

func runPodTemplate(p *Pass) {
	workload := anyResource(p.Rule, func(gr schema.GroupResource) bool {
		return isWorkload(gr, "deployments", "statefulsets", "daemonsets")
	})
	for _, w := range p.Rule.Writes() {
		if workload && w.Subresource == "" && isPath(w, "spec", "template") {
			p.Reportf(w.Pos, "a change of the pod template (%s) replaces the pods of each workload that the rule changes: all at once, as soon as the rule runs", strings.Join(w.Path, "."))
			return
		}
	}
}
