package lint

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

var sensitiveTarget = &Check{
	ID: "sensitive-target", Severity: Warning, Summary: "The rule writes what decides about deletion, rights or admission",
	Run: runSensitiveTarget,
}

func runSensitiveTarget(p *Pass) {
	for _, w := range p.Rule.Writes() {
		if why := sensitive(p.Rule, w); why != "" {
			p.Reportf(w.Pos, "sensitive: %s", why)
			return // the others are of the same kind, as a rule
		}
	}
}

// sensitive says why a write deserves a second look; empty: it does not.
func sensitive(r *rules.Rule, w *rules.Write) string {
	is := func(f func(schema.GroupResource) bool) bool { return anyResource(r, f) }
	label := ""
	if isPath(w, "metadata", "labels") && len(w.Path) > 2 {
		label = w.Path[2]
	}
	switch {
	case isPath(w, "metadata", "ownerReferences"):
		return "owner references decide what the garbage collector deletes"
	case isPath(w, "metadata", "finalizers"):
		return "finalizers hold back a deletion until somebody has cleaned up; without them nobody does"
	case isPath(w, "metadata", "annotations", rules.SkipAnnotation), isPath(w, "metadata", "annotations", rules.SkipUntilAnnotation):
		return "this annotation turns rules off for the object"
	case strings.HasPrefix(label, "pod-security.kubernetes.io/"):
		return "this label decides which pods the namespace admits, or warns of"
	case strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"):
		return "this label adds the rules of the role to others"
	case slices.Equal(w.Path, []string{"metadata", "labels"}) && is(isNamespace):
		return "all labels of the Namespace are replaced or removed, those that decide which pods it admits among them"
	case slices.Equal(w.Path, []string{"metadata", "labels"}) && is(isRBAC):
		return "all labels of the role are replaced or removed, those that add its rules to other roles among them"
	case isPath(w, "metadata", "labels"), isPath(w, "metadata", "annotations"):
		return ""
	case is(isRBAC):
		return "a change of roles and bindings gives or takes rights"
	case is(isAdmission):
		return "a change of webhooks and admission policies decides about each request to the API server"
	case is(isAPIService):
		return "an APIService decides which server answers for an API group"
	case is(func(gr schema.GroupResource) bool {
		return gr.Group == "coordination.k8s.io" && gr.Resource == "leases"
	}):
		return "a Lease says who leads, rectifier itself among others: whoever writes it takes that away"
	}
	return ""
}

func isNamespace(gr schema.GroupResource) bool { return gr.Group == "" && gr.Resource == "namespaces" }

func isRBAC(gr schema.GroupResource) bool { return gr.Group == "rbac.authorization.k8s.io" }

func isAdmission(gr schema.GroupResource) bool {
	return gr.Group == "admissionregistration.k8s.io"
}

func isAPIService(gr schema.GroupResource) bool { return gr.Group == "apiregistration.k8s.io" }
