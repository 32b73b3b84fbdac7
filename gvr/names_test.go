package gvr

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestResourceCandidates(t *testing.T) {
	for kind, want := range map[string]string{
		"Deployment":     "deployments",
		"Gateway":        "gateways",
		"NetworkPolicy":  "networkpolicies",
		"Ingress":        "ingresses",
		"IngressClass":   "ingressclasses",
		"Endpoints":      "endpoints",
		"Index":          "indices",
		"Vertex":         "vertexes",
		"Prometheus":     "prometheuses",
		"Kafka":          "kafkas",
		"Proxy":          "proxies",
		"Search":         "searches",
		"VirtualService": "virtualservices",
		"Data":           "data",
	} {
		if got := ResourceCandidates(kind); !slices.Contains(got, want) {
			t.Errorf("ResourceCandidates(%q) = %q, want %q among them", kind, got, want)
		}
	}
	if got := ResourceCandidates("Gateway")[0]; got != "gateways" {
		t.Errorf("the likeliest resource of Gateway is %q, want gateways", got)
	}
	if got := ResourceCandidates(""); got != nil {
		t.Errorf("ResourceCandidates of nothing = %q, want none", got)
	}
}

// Every built-in kind must be found by the guess, too: it is what custom kinds depend on.
func TestResourceCandidatesOfBuiltinKinds(t *testing.T) {
	for gk, b := range builtinKinds {
		if got := ResourceCandidates(gk.Kind)[0]; got != b.resource {
			if gk.Kind == "Endpoints" {
				continue // a plural itself
			}
			t.Errorf("the likeliest resource of %s is %q, want %q", gk, got, b.resource)
		}
	}
}

func TestKindMatches(t *testing.T) {
	for _, c := range []struct {
		group, kind, resource string
		want                  bool
	}{
		{"apps", "Deployment", "deployments", true},
		{"apps", "Deployment", "deployment", false}, // built in: exact
		{"", "Endpoints", "endpoints", true},
		{"example.com", "Deployment", "deployments", true},
		{"gateway.networking.k8s.io", "Gateway", "gateways", true},
		{"gateway.networking.k8s.io", "Gateway", "httproutes", false},
	} {
		if got := KindMatches(schema.GroupKind{Group: c.group, Kind: c.kind}, c.resource); got != c.want {
			t.Errorf("KindMatches(%s.%s, %s) = %v", c.kind, c.group, c.resource, got)
		}
	}
}

func TestClusterScoped(t *testing.T) {
	for gk, want := range map[schema.GroupKind]bool{
		{Kind: "Node"}:      true,
		{Kind: "Namespace"}: true,
		{Kind: "Pod"}:       false,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true,
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        false,
		{Group: "example.com", Kind: "Node"}:                      false,
	} {
		if got := ClusterScoped(gk); got != want {
			t.Errorf("ClusterScoped(%s) = %v", gk, got)
		}
	}
}
