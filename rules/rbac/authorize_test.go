package rbac_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules/rbac"
)

// What run --authorize asks is cluster-scoped: with --namespace too, it takes a
// ClusterRole, and that holds nothing else. It is not optional.
func TestNeedsOfAuthorize(t *testing.T) {
	want := []string{"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"}
	for name, namespaces := range map[string][]string{"the whole cluster": nil, "in namespaces": {"b", "a"}} {
		t.Run(name, func(t *testing.T) {
			with := rbac.For(load(t, rule("a", configmaps)), rbac.Options{Authorize: true, Known: known, Namespaces: namespaces})
			without := rbac.For(load(t, rule("a", configmaps)), rbac.Options{Known: known, Namespaces: namespaces})
			added := slices.DeleteFunc(lines(with.All), func(l string) bool { return slices.Contains(lines(without.All), l) })
			if diff := cmp.Diff(want, added); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			roles := rbac.Roles(with, "engine", rbac.Role{}.Subject)
			text, err := rbac.YAML(roles[:1])
			if err != nil {
				t.Fatal(err)
			}
			if roles[0].Namespace != "" || !strings.Contains(string(text), "# create: who may read metrics and status (--authorize)") {
				t.Errorf("%s", text)
			}
			if namespaces != nil && len(roles[0].Grants) != 2 {
				t.Errorf("the ClusterRole beside the Roles grants more:\n%s", text)
			}
		})
	}
}
