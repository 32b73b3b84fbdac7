package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rectifier-dev/rectifier/internal/input"
)

// TestPolicyAndBindingTogether has what a policy and its binding match
// between them, and what the rules say of it.
func TestPolicyAndBindingTogether(t *testing.T) {
	const rule = "{apiGroups: [%s], apiVersions: [%s], operations: [%s], resources: [%s]%s}"
	r := func(group, versions, ops, resources, more string) string {
		return fmt.Sprintf(rule, group, versions, ops, resources, more)
	}
	for _, tc := range []struct {
		name            string
		policy, binding string // members of matchConstraints and matchResources
		want            []string
		lost            int
	}{
		{"another version of the binding is the same object", "resourceRules: [" + r("autoscaling", "v2", "UPDATE", "horizontalpodautoscalers", "") + "]",
			"resourceRules: [" + r("autoscaling", "v1", "UPDATE", "horizontalpodautoscalers", "") + "]", []string{"autoscaling v2 horizontalpodautoscalers"}, 0},
		{"unless the binding is exact", "resourceRules: [" + r("autoscaling", "v2", "UPDATE", "horizontalpodautoscalers", "") + "]",
			"matchPolicy: Exact, resourceRules: [" + r("autoscaling", "v1", "UPDATE", "horizontalpodautoscalers", "") + "]", nil, 0},
		{"each names a part of what the other leaves open", "resourceRules: [" + r("apps", `"*"`, "CREATE", `"*"`, "") + "]",
			"resourceRules: [" + r(`"*"`, "v1", `"*"`, "deployments", "") + "]", []string{"apps v1 deployments"}, 0},
		{"what both leave open is lost", "resourceRules: [" + r(`apps, "*"`, "v1", "CREATE", "deployments", "") + "]",
			"resourceRules: [" + r(`batch, "*"`, "v1", `"*"`, "deployments, jobs", "") + "]", []string{"apps v1 deployments", "batch v1 deployments"}, 1},
		{"no request is for both", "resourceRules: [" + r("apps", "v1", "CREATE", "deployments", "") + "]",
			"resourceRules: [" + r("apps", "v1", "UPDATE", "deployments", "") + "]", nil, 0},
		{"names of both", "resourceRules: [" + r("apps", "v1", "CREATE", "deployments", ", resourceNames: [a, b]") + "]",
			"resourceRules: [" + r("apps", "v1", "CREATE", "deployments", ", resourceNames: [b, c]") + "]", []string{"apps v1 deployments names [b]"}, 0},
		{"names and all", "resourceRules: [" + r("apps", "v1", "CREATE", "deployments", ", resourceNames: [a]") + ", " + r("apps", "v1", "UPDATE", "deployments", "") + "]", "",
			[]string{"apps v1 deployments"}, 0},
		{"excluded by both", "resourceRules: [" + r("apps", "v1", `"*"`, "deployments", "") + "], excludeResourceRules: [" + r("apps", "v1beta1", `"*"`, "deployments", ", resourceNames: [a]") + "]",
			"excludeResourceRules: [" + r(`"*"`, `"*"`, `"*"`, `"*"`, ", resourceNames: [b]") + "]", []string{"apps v1 deployments excludeNames [a, b]"}, 0},
		{"excluded for one operation only", "resourceRules: [" + r("apps", "v1", "CREATE, UPDATE", "deployments", "") + "], excludeResourceRules: [" + r("apps", "v1", "CREATE", "deployments", "") + "]", "",
			[]string{"apps v1 deployments"}, 0},
		{"all excluded", "resourceRules: [" + r("apps", "v1", "CREATE", "deployments", "") + "]",
			"excludeResourceRules: [" + r("apps", "v1", "CREATE", "deployments/*", "") + "]", nil, 0},
		{"labels that exclude each other", "objectSelector: {matchLabels: {a: x, b: w}}, resourceRules: [" + r("apps", "v1", "CREATE", "deployments", "") + "]",
			"objectSelector: {matchLabels: {a: z}}", []string{"apps v1 deployments labels a=x,a in (z),b=w"}, 0},
		{"the labels of a namespace itself", "namespaceSelector: {matchLabels: {a: x}}, resourceRules: [" + r(`""`, "v1", "CREATE", "namespaces, pods", "") + "]",
			"objectSelector: {matchLabels: {b: w}}", []string{" v1 namespaces labels a=x,b=w", " v1 pods labels b=w namespaces a=x"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, rest, _ := strings.Cut(base, "  matchConditions:")
			in := "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n  matchConstraints: {" +
				tc.policy + "}\n  matchConditions:" + rest + "  matchResources: {" + tc.binding + "}\n"
			result, _ := importMarked(in)
			lost := 0
			for _, f := range result.Findings {
				if f.Severity == Lost {
					lost++
				}
			}
			if lost != tc.lost {
				t.Errorf("%d things are lost, want %d: %v", lost, tc.lost, result.Findings)
			}
			if diff := cmp.Diff(tc.want, brief(t, in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// brief tells of each resource of a policy how it is matched.
func brief(t *testing.T, in string) []string {
	t.Helper()
	im := &importer{result: &Result{}, names: map[string]bool{}}
	im.file(input.File{Name: "policy.yaml", Data: []byte(in)})
	for _, b := range im.bindings {
		im.bind(b)
	}
	var out []string
	p := im.policies[0]
	for _, g := range p.resources(p.bindings[0]) {
		for _, gvr := range g.resources {
			s := gvr.Group + " " + gvr.Version + " " + gvr.Resource
			if names := g.names.globs(); len(names) > 0 && g.names.allBut {
				s += " excludeNames " + flowList(names)
			} else if len(names) > 0 {
				s += " names " + flowList(names)
			}
			if !isEmpty(g.labels) {
				s += " labels " + metav1.FormatLabelSelector(&g.labels)
			}
			if !isEmpty(g.namespaces) {
				s += " namespaces " + metav1.FormatLabelSelector(&g.namespaces)
			}
			out = append(out, s)
		}
	}
	return out
}
