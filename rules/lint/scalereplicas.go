package lint

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

var scaleReplicas = &Check{
	ID: "scale-replicas", Severity: Warning, Summary: "The rule scales workloads without a look at their autoscalers",
	Run: runScaleReplicas,
}

func runScaleReplicas(p *Pass) {
	workload := anyResource(p.Rule, func(gr schema.GroupResource) bool {
		return isWorkload(gr, "deployments", "statefulsets", "replicasets")
	})
	if !workload || slices.ContainsFunc(p.Rule.Lookups, looksUpAutoscalers) {
		return
	}
	for _, w := range p.Rule.Writes() {
		if w.Subresource != "status" && isPath(w, "spec", "replicas") {
			p.Reportf(w.Pos, "the rule scales a workload, and so may an autoscaler: the two would undo each other's work; look up HorizontalPodAutoscalers that target the object and leave it alone if there are any")
			return
		}
	}
}

func looksUpAutoscalers(l *rules.Lookup) bool {
	return l.Resource.Group == "autoscaling" && l.Resource.Resource == "horizontalpodautoscalers" || l.Resource.Group == "keda.sh"
}
