package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two teams take the same name for their release, each in a namespace of its own,
// with metrics, which need roles of the cluster, and with Roles in a namespace that
// both look at. Neither is in the way of the other.
func TestTwoReleasesOfOneName(t *testing.T) {
	s := newShell(t).inCluster()
	for _, ns := range []string{"twice-a", "twice-b", "twice-shared"} {
		s.must("kubectl create namespace " + ns)
		t.Cleanup(func() { s.must("kubectl delete namespace " + ns + " --timeout 60s") })
	}
	everywhere := "metrics: {enabled: true, readers: [{namespace: twice-shared, name: default}]}"
	shared, _ := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, "--builtin none --namespace twice-shared")
	for _, values := range []string{everywhere, shared + everywhere} {
		for _, ns := range []string{"twice-a", "twice-b"} {
			s.mustWith(values, "helm upgrade --install "+release+" deploy/chart --namespace "+ns+" --set replicaCount=0 --values -")
			t.Cleanup(func() { s.must("helm uninstall " + release + " --namespace " + ns + " --ignore-not-found --wait") })
		}
	}
	before := s.must("kubectl get clusterroles,clusterrolebindings -o name -l app.kubernetes.io/instance=" + release)
	if n := strings.Count(before, "\n"); n != 8 {
		t.Errorf("there are %d roles and bindings of the cluster:\n%s", n, before)
	}
	// One that goes takes nothing of the other.
	s.must("helm uninstall " + release + " --namespace twice-a --wait")
	left := s.must("kubectl get clusterroles,clusterrolebindings,roles,rolebindings -n twice-shared -o name -l app.kubernetes.io/instance=" + release)
	want := `clusterrole.rbac.authorization.k8s.io/rectifier:twice-b:authorize
clusterrole.rbac.authorization.k8s.io/rectifier:twice-b:metrics-reader
clusterrolebinding.rbac.authorization.k8s.io/rectifier:twice-b:authorize
clusterrolebinding.rbac.authorization.k8s.io/rectifier:twice-b:metrics-reader
role.rbac.authorization.k8s.io/rectifier:twice-b
rolebinding.rbac.authorization.k8s.io/rectifier:twice-b
`
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// The API server takes the longest names that can be given.
func TestLongNames(t *testing.T) {
	s := newShell(t).inCluster()
	long := strings.Repeat("n", 63)
	s.must("kubectl create namespace " + long)
	t.Cleanup(func() { s.must("kubectl delete namespace " + long + " --wait=false") })
	stream := s.mustWith("metrics: {enabled: true}", "helm template "+strings.Repeat("r", 53)+" deploy/chart --namespace "+long+" --values -")
	s.mustWith(stream, "kubectl apply --server-side --validate=strict --dry-run=server -f -")
}
