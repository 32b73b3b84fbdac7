package rbac

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Role grants needs: a ClusterRole, or a Role in a namespace.
type Role struct {
	Name string
	// Namespace is that of a Role; empty for a ClusterRole.
	Namespace string
	// Grants are sorted by group, resource, subresource and name.
	Grants []Grant
	// Subject is the ServiceAccount that gets it; the zero value: none.
	Subject types.NamespacedName
}

// Grant is one entry of a role.
type Grant struct {
	Resource    schema.GroupResource
	Subresource string
	// Names are the only objects that are concerned; empty: all.
	Names []string
	Verbs []string
	// Reasons say for whom it is, one line each.
	Reasons []string
}

// Roles returns the roles that grant just these needs: a ClusterRole for those
// at cluster scope, then a Role for each namespace, by name.
func Roles(needs Needs, name string, subject types.NamespacedName) []Role {
	var out []Role
	for _, n := range needs.All { // by namespace
		if len(out) == 0 || out[len(out)-1].Namespace != n.Namespace {
			out = append(out, Role{Name: name, Namespace: n.Namespace, Subject: subject})
		}
		out[len(out)-1].grant(n)
	}
	for i := range out {
		for j := range out[i].Grants {
			out[i].Grants[j].Reasons = mergeReasons(out[i].Grants[j].Reasons)
		}
	}
	return out
}

// grant adds a need, which comes in order: what has the same object is its
// neighbour.
func (r *Role) grant(n Need) {
	var names []string
	if n.Name != "" {
		names = []string{n.Name}
	}
	if last := len(r.Grants) - 1; last < 0 || !r.Grants[last].about(n.Right, names) {
		r.Grants = append(r.Grants, Grant{Resource: n.Resource, Subresource: n.Subresource, Names: names})
	}
	g := &r.Grants[len(r.Grants)-1]
	g.Verbs = append(g.Verbs, n.Verb)
	g.Reasons = append(g.Reasons, n.Verb+": "+n.reason())
}

func (g *Grant) about(r Right, names []string) bool {
	return g.Resource == r.Resource && g.Subresource == r.Subresource && slices.Equal(g.Names, names)
}

// reason says in one line for whom a need is.
func (n Need) reason() string {
	switch {
	case n.Optional:
		return "optional: " + n.Why
	case n.Why != "":
		return n.Why
	}
	return strings.Join(n.Rules, ", ")
}

// mergeReasons joins the verbs that have the same reason: "list: a", "watch: a"
// become "list, watch: a".
func mergeReasons(lines []string) []string {
	var verbs, reasons []string
	for _, line := range lines {
		verb, reason, _ := strings.Cut(line, ": ")
		if i := slices.Index(reasons, reason); i >= 0 {
			verbs[i] += ", " + verb
			continue
		}
		verbs, reasons = append(verbs, verb), append(reasons, reason)
	}
	out := make([]string, len(reasons))
	for i := range reasons {
		out[i] = fmt.Sprintf("%s: %s", verbs[i], reasons[i])
	}
	return out
}

// Warnings tell what is delicate about granting these needs, sorted: who may
// read Secrets everywhere, or write RBAC objects, is powerful.
func (n Needs) Warnings() []string {
	var out []string
	for _, need := range n.All {
		if need.Optional || need.Name != "" {
			continue
		}
		rules := strings.Join(need.Rules, ", ")
		switch secret := need.Resource == (schema.GroupResource{Resource: "secrets"}); {
		case secret && need.Verb == "list":
			out = append(out, fmt.Sprintf("%s: may read every Secret %s", rules, need.Scope()))
		case secret && need.Verb == "patch":
			out = append(out, fmt.Sprintf("%s: may change every Secret %s", rules, need.Scope()))
		case need.Resource.Group == "rbac.authorization.k8s.io" && need.Verb == "patch":
			out = append(out, fmt.Sprintf("%s: may change %s %s; the API server still refuses to grant what the identity does not have itself (escalate and bind are not given here)", rules, need.Target(), need.Scope()))
		}
	}
	slices.Sort(out)
	return out
}
