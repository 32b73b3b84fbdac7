package install

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// The default installation works with just its rights: it fixes, tells of it,
// leaves kube-system alone, hands the Lease over, and ends in time.
func TestInstallDefault(t *testing.T) {
	i := newInstallation(t, "install-default")
	i.wantLevelRestricted()
	i.makeNamespace("shop-default", "team: shop")
	i.deployment("shop-default", "web")
	i.deployment("kube-system", "passed-over")
	i.Cleanup(func() { i.must("kubectl delete deployment passed-over -n kube-system") })
	i.uninstallAfter()
	i.helm("{}", "")

	i.wantReplicas("shop-default", "web")
	i.wantEvent("shop-default", "web")
	i.wantRights()

	before := i.podNames()
	if len(before) != 2 {
		t.Errorf("the pods are %v", before)
	}
	leader := i.replaceLeader()
	if leader.stopped > 15*time.Second || leader.stopped == 0 {
		t.Errorf("a graceful stop took %s", leader.stopped)
	}
	i.drift("shop-default", "web")
	i.wantReplicas("shop-default", "web")
	if n := i.replicas("kube-system", "passed-over"); n != 1 {
		t.Errorf("in kube-system, a Deployment was scaled to %d", n)
	}
	for _, p := range i.kubelet.pods {
		if p.starts != 1 || len(p.codes) > 0 && p.codes[0] != 0 {
			t.Errorf("the pod %s was started %d times, and ended with %v", p.name, p.starts, p.codes)
		}
	}
	i.wantNothingRefused()
	i.wantAMissingRightTold("shop-default", "web")
}

// wantLevelRestricted checks that the namespace refuses what is not of the level
// "restricted": otherwise its taking Rectifier's pods would say nothing.
func (i *installation) wantLevelRestricted() {
	i.Helper()
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: bad, namespace: " + i.namespace + "}, spec: {containers: [{name: a, image: a}]}}"
	testcluster.Eventually(i, 20*time.Second, func() error { // the namespace's ServiceAccount is needed first
		if out := i.refused(pod, "kubectl create -f -"); !strings.Contains(out, `violates PodSecurity "restricted:latest"`) {
			return fmt.Errorf("a pod without a security context: %s", out)
		}
		return nil
	})
}

func (i *installation) wantEvent(namespace, name string) {
	i.Helper()
	testcluster.Eventually(i, 20*time.Second, func() error {
		out := i.must("kubectl describe deployment " + name + " -n " + namespace)
		if !strings.Contains(out, "ReplicasAdjusted") || !strings.Contains(out, "adjust replicas from 1 to 3") {
			return fmt.Errorf("kubectl describe tells of no fix:\n%s", out)
		}
		return nil
	})
}

// wantRights asks as the ServiceAccount whether something is missing.
func (i *installation) wantRights() {
	i.Helper()
	kubeconfig, _ := i.serviceAccount(i.namespace, release)
	if missing := i.must("rectifier rbac --check --leader-elect --kubeconfig " + kubeconfig); missing != "" {
		i.Errorf("rectifier rbac --check: %s", missing)
	}
}

// wantAMissingRightTold takes away what the rule needs most.
func (i *installation) wantAMissingRightTold(namespace, name string) {
	i.Helper()
	role, err := i.client.RbacV1().ClusterRoles().Get(i.Context(), release+":"+i.namespace, metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	var kept []rbacv1.PolicyRule
	for _, r := range role.Rules {
		if r.Resources[0] != "deployments/scale" {
			kept = append(kept, r)
		}
	}
	role.Rules = kept
	if _, err := i.client.RbacV1().ClusterRoles().Update(i.Context(), role, metav1.UpdateOptions{}); err != nil {
		i.Fatal(err)
	}
	kubeconfig, _ := i.serviceAccount(i.namespace, release)
	testcluster.Eventually(i, 20*time.Second, func() error {
		stdout, stderr, ok := i.run("rectifier rbac --check --kubeconfig "+kubeconfig, "")
		if ok || !strings.Contains(stdout, "patch deployments.apps/scale") {
			return fmt.Errorf("rectifier rbac --check: %s%s", stdout, stderr)
		}
		return nil
	})
	i.drift(namespace, name)
	leader := i.leader()
	testcluster.Eventually(i, time.Minute, func() error {
		_, body := i.fetch("http", leader.ports[8080], "/readyz", "")
		if !strings.Contains(body, "[!] apps/v1/deployments: forbidden: patch deployments/scale in namespace "+namespace) {
			return fmt.Errorf("/readyz does not name the missing right:\n%s", body)
		}
		return nil
	})
}

// fetch gets a page of a pod.
func (i *installation) fetch(scheme, address, path, token string) (code int, body string) {
	i.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(i.Context(), http.MethodGet, scheme+"://"+address+path, nil)
	if err != nil {
		i.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		i.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		i.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// All that can be turned on is taken by the API server, and works.
func TestInstallEverything(t *testing.T) {
	i := newInstallation(t, "install-everything")
	i.makeNamespace("monitoring", "team: sre")
	i.makeNamespace("shop-everything", "team: shop")
	i.makeNamespace("vendor", "team: vendor")
	i.deployment("shop-everything", "web")
	i.deployment("vendor", "passed-over")
	i.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus-k8s, namespace: monitoring}}")
	i.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: somebody, namespace: monitoring}}")
	for _, crd := range operatorCRDs(t) {
		i.must("kubectl apply --server-side -f " + crd)
	}
	i.must("kubectl wait --for=condition=Established crd/servicemonitors.monitoring.coreos.com crd/prometheusrules.monitoring.coreos.com")
	i.mustWith(everything, "helm template "+release+" deploy/chart --namespace "+i.namespace+" --values - | kubectl apply --server-side --validate=strict --dry-run=server -f -")
	i.uninstallAfter()
	i.helm(everything, "")
	i.wantReplicas("shop-everything", "web")
	if n := i.replicas("vendor", "passed-over"); n != 1 {
		t.Errorf("in an excluded namespace, a Deployment was scaled to %d", n)
	}

	leader := i.leader()
	address := leader.ports[8443]
	_, reader := i.serviceAccount("monitoring", "prometheus-k8s")
	_, other := i.serviceAccount("monitoring", "somebody")
	for _, tc := range []struct {
		who, token, path string
		want             int
	}{
		{"nobody", "", "/metrics", http.StatusUnauthorized},
		{"somebody", other, "/metrics", http.StatusForbidden},
		{"Prometheus", reader, "/metrics", http.StatusOK},
		{"Prometheus", reader, "/api/status", http.StatusNotFound},
	} {
		code, body := i.fetch("https", address, tc.path, tc.token)
		if code != tc.want {
			t.Errorf("%s gets %s: %d, not %d\n%s", tc.who, tc.path, code, tc.want, body)
		}
		if code == http.StatusOK && !strings.Contains(body, "rectifier_leader 1") {
			t.Errorf("metrics: %s", body)
		}
	}
	// The page is for a port-forward, which is asked for no token.
	for path, want := range map[string]string{"/": "<html", "/readyz": "[+] apps/v1/deployments", "/metrics": "rectifier_leader 1"} {
		if code, body := i.fetch("http", leader.ports[8080], path, ""); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("on loopback, %s is %d, without %s\n%s", path, code, want, body)
		}
	}
	i.replaceLeader()
	i.wantNothingRefused()
}

// With Roles in two namespaces, it works there, and asks for nothing beyond.
func TestInstallInNamespaces(t *testing.T) {
	i := newInstallation(t, "install-namespaced")
	for _, ns := range []string{"team-a", "team-b", "team-c"} {
		i.makeNamespace(ns, "team: "+ns)
		i.configMap(ns, "settings")
	}
	values, _ := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, "--builtin none --namespace team-a,team-b")
	i.uninstallAfter()
	i.helm(values, "")
	i.wantLabel("team-a", "settings", "fixed")
	i.wantLabel("team-b", "settings", "fixed")
	if labels := i.labels("team-c", "settings"); labels["fixed"] != "" {
		t.Errorf("in team-c, the ConfigMap has the labels %v", labels)
	}
	if out := i.must("kubectl get clusterroles,clusterrolebindings -o name -l app.kubernetes.io/instance=" + release); out != "" {
		t.Errorf("there are roles of the cluster: %s", out)
	}
	i.wantNotes(values)
	for _, e := range i.requests() {
		// Whether its own namespaces exist is a question that a Role does not grant.
		if e.ResponseStatus.Code == 403 && e.ObjectRef.Resource != "namespaces" {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
		if ns := e.ObjectRef.Namespace; ns != "" && ns != "team-a" && ns != "team-b" && ns != i.namespace {
			t.Errorf("beyond its namespaces: %s %s", e.Verb, e.RequestURI)
		}
	}
}

// wantNotes runs what helm tells people to run: rights for these rules, which are
// those of the values that were given, and none is missing.
func (i *installation) wantNotes(values string) {
	i.Helper()
	notes := strings.ReplaceAll(i.must("helm get notes "+release+" --namespace "+i.namespace), "\\\n", "")
	var commands []string
	for line := range strings.Lines(notes) {
		if command, _, _ := strings.Cut(strings.TrimSpace(line), " >"); strings.HasPrefix(command, "rectifier rbac ") {
			commands = append(commands, command)
		}
	}
	if len(commands) != 2 {
		i.Fatalf("notes:\n%s", notes)
	}
	dir := i.dir
	defer func() { i.dir = dir }()
	i.dir = i.TempDir()
	i.must("mkdir rules")
	i.mustWith(labelRule("fixed"), "cat > rules/team.yaml")
	if diff := cmp.Diff(values, i.must(commands[0])); diff != "" {
		i.Errorf("%s (-values +output):\n%s", commands[0], diff)
	}
	if missing := i.must(commands[1]); missing != "" {
		i.Errorf("%s: %s", commands[1], missing)
	}
}

// A dry run writes nothing but the Lease, and may write nothing else.
func TestInstallDryRun(t *testing.T) {
	i := newInstallation(t, "install-dry-run")
	i.makeNamespace("shop-dry-run", "team: shop")
	i.deployment("shop-dry-run", "web")
	i.uninstallAfter()
	i.helm("dryRun: true", "")
	leader := i.leader()
	testcluster.Eventually(t, time.Minute, func() error {
		if !strings.Contains(leader.log.String(), "shop-dry-run/web") {
			return fmt.Errorf("the log does not say what would be done")
		}
		return nil
	})
	if n := i.replicas("shop-dry-run", "web"); n != 1 {
		t.Errorf("a dry run scaled a Deployment to %d", n)
	}
	for _, e := range i.requests() {
		write := e.Verb == "create" || e.Verb == "update" || e.Verb == "patch" || e.Verb == "delete"
		if write && e.ObjectRef.Resource != "leases" && e.ObjectRef.Resource != "selfsubjectaccessreviews" {
			t.Errorf("it writes: %s %s", e.Verb, e.RequestURI)
		}
	}
	i.replaceLeader()
	i.wantNothingRefused()
	// Then it may.
	i.helm("dryRun: false", "")
	i.wantReplicas("shop-dry-run", "web")
}

// Rules and their rights come in one command. Other rules restart no pod, and are
// in force all the same. What was installed goes, but for the Lease, which the
// instances made.
func TestInstallRules(t *testing.T) {
	i := newInstallation(t, "install-rules")
	i.makeNamespace("shop-rules", "team: shop")
	i.configMap("shop-rules", "settings")
	_, dir := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, "")
	i.uninstallAfter()
	i.must("rectifier rbac --rules " + dir + " -o helm | helm upgrade --install " + release + " deploy/chart --namespace " + i.namespace + " --wait -f -")
	i.wantLabel("shop-rules", "settings", "fixed")
	pods := i.podNames()

	values, _ := fragment(t, map[string]string{"team.yaml": labelRule("again"), "services.yaml": strings.NewReplacer("configmaps", "services", "name: label", "name: services").Replace(labelRule("fixed"))}, "")
	i.helm(values, "")
	i.wantLabel("shop-rules", "settings", "again")
	if diff := cmp.Diff(pods, i.podNames()); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
	i.apply("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop-rules, labels: {team: shop}}, spec: {ports: [{port: 80}]}}")
	testcluster.Eventually(t, time.Minute, func() error {
		service, err := i.client.CoreV1().Services("shop-rules").Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && service.Labels["fixed"] != "true" {
			err = fmt.Errorf("the Service has the labels %v", service.Labels)
		}
		return err
	})

	// A pipe whose first command fails leaves everything as it is.
	if out := i.refused("", "rectifier rbac --rules nowhere -o helm | helm upgrade "+release+" deploy/chart --namespace "+i.namespace+" -f -"); !strings.Contains(out, "Error: ") || !strings.Contains(out, "read the rules: stat nowhere") {
		t.Errorf("helm takes the output of a command that failed:\n%s", out)
	}

	i.must("helm uninstall " + release + " --namespace " + i.namespace + " --wait")
	left := i.must("kubectl get all,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,leases,secrets -o name -n " + i.namespace)
	left += i.must("kubectl get clusterroles,clusterrolebindings -o name -l app.kubernetes.io/instance=" + release)
	if want := "configmap/kube-root-ca.crt\nserviceaccount/default\nlease.coordination.k8s.io/rectifier\n"; left != want {
		t.Errorf("left:\n%s", left)
	}
}

// An object that somebody else changes with kubectl is still the chart's: an
// upgrade takes what the chart sets, and leaves the rest.
func TestUpgradeAfterAnEdit(t *testing.T) {
	i := newInstallation(t, "install-edited")
	i.uninstallAfter()
	i.helm("{}", "")
	patch := []byte(`{"metadata":{"annotations":{"example.io/note":"kept"}}}`)
	if _, err := i.client.AppsV1().Deployments(i.namespace).Patch(t.Context(), release, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	i.helm("replicaCount: 1", "")
	d, err := i.client.AppsV1().Deployments(i.namespace).Get(t.Context(), release, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Annotations["example.io/note"] != "kept" || *d.Spec.Replicas != 1 {
		t.Errorf("annotations %v, %d replicas", d.Annotations, *d.Spec.Replicas)
	}
	// Without any values, those of the last release hold; with one, the defaults.
	for _, tc := range []struct{ flags, want string }{{"", "1"}, {"--set verbosity=1", "2"}} {
		i.must("helm upgrade " + release + " deploy/chart --namespace " + i.namespace + " --wait " + tc.flags)
		if got := i.must("kubectl get deployment " + release + " -n " + i.namespace + " -o jsonpath={.spec.replicas}"); got != tc.want {
			t.Errorf("an upgrade with the flags %q has %s replicas, not %s", tc.flags, got, tc.want)
		}
	}
}
