package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// selecting makes a rule choose by labels of Namespaces.
func selecting(rule string) string {
	return strings.Replace(rule, "match: {", "match: {namespaceSelector: {matchLabels: {team: shop}}, ", 1)
}

// With --namespace, Namespaces are still read: what they choose and ask for
// counts, and explain says the same.
func TestDiffLiveOfANamespaceReadsIt(t *testing.T) {
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces"}, "get")},
		selecting(labelRule("chosen", "configmaps", "chosen: x")), labelRule("any", "configmaps", "any: x"))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	label := func(patch string) {
		t.Helper()
		if _, err := f.admin.CoreV1().Namespaces().Patch(t.Context(), f.ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	label(`{"metadata": {"labels": {"team": "shop"}}}`)
	code, out, told := f.diff("-n", f.ns)
	parks := "note: run --namespace NS parks chosen: what reads Namespaces is done by a run for the whole cluster, or by run --once\n"
	if code != exitFindings || !strings.Contains(out, "chosen: x") || !strings.Contains(out, "any: x") || !strings.HasSuffix(told, parks) {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
	if _, out, _ := f.diff("-n", f.ns, "-o", "json"); !strings.Contains(out, `"run --namespace NS parks chosen: `) {
		t.Errorf("the JSON has no note:\n%s", out)
	}
	if _, _, told := f.diff(); strings.Contains(told, "note:") {
		t.Errorf("a note about the whole cluster:\n%s", told)
	}
	label(`{"metadata": {"annotations": {"rectifier.dev/skip": "any"}}}`)
	code, out, told = f.diff("-n", f.ns)
	if code != exitFindings || !strings.Contains(out, "chosen: x") || strings.Contains(out, "any: x") || !strings.Contains(told, "left alone 1 (they ask for it)") ||
		!strings.Contains(told, "note: run --namespace NS does not see that Namespace NS asks to be left alone (rectifier.dev/skip)\n") {
		t.Errorf("with an opt-out on the Namespace: exit code %d\n%s%s", code, out, told)
	}
	code, out, told = invoke(t, "explain", "--kubeconfig", f.kubeconfig, "--rules", f.rules, "--builtin", "none", "-n", f.ns, "cm/a")
	if code != exitFine || !strings.Contains(out, "chosen   Patch") || !strings.Contains(out, "any      Skip") {
		t.Errorf("explain: exit code %d\n%s%s", code, out, told)
	}
}

// Where a Role allows no more than what is in the namespace, it is told for what
// that is not enough.
func TestDiffLiveWithoutTheNamespace(t *testing.T) {
	f := newDiffFixture(t, nil, selecting(labelRule("chosen", "configmaps", "chosen: x")), labelRule("any", "configmaps", "any: x"))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{may("", []string{"configmaps"})}}
	if _, err := f.admin.RbacV1().Roles(f.ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: f.user}}}
	if _, err := f.admin.RbacV1().RoleBindings(f.ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	code, out, told := f.diff("-n", f.ns)
	if code != exitFindings || !strings.Contains(out, "any: x") || strings.Contains(told, "engine") || strings.Contains(told, "rbac") ||
		!strings.Contains(told, "rule chosen on v1/configmaps: parked: it reads Namespaces, which are not available: with --namespace NS, Namespaces could not be read") {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
	// What is refused has a way out.
	code, out, told = f.diff()
	if code != exitCluster || out != "" || strings.Contains(told, "RULE") || !strings.Contains(told, "\nrectifier rbac --read-only prints the role that is needed\n") {
		t.Errorf("of the whole cluster: exit code %d\n%s%s", code, out, told)
	}
	code, out, told = invoke(t, "explain", "--kubeconfig", f.kubeconfig, "--rules", f.rules, "-n", f.ns, "cm/a")
	if code != exitCluster || !strings.Contains(told, "explain needs the right to get the object") {
		t.Errorf("explain without the right to get: exit code %d\n%s%s", code, out, told)
	}
	code, _, told = invoke(t, "rbac", "--check", "--kubeconfig", f.kubeconfig, "--rules", f.rules)
	if code != exitFindings || !strings.HasSuffix(told, "| kubectl apply -f -\n") {
		t.Errorf("rbac --check: exit code %d\n%s", code, told)
	}
}

func TestANamespaceThatIsNotThere(t *testing.T) {
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces"}, "get")}, labelRule("any", "configmaps", "any: x"))
	typo := f.ns + "d"
	want := fmt.Sprintf("rectifier: there is no namespace %q (did you mean ", typo)
	for _, args := range [][]string{{"diff", "--cluster"}, {"run", "--once", "--dry-run"}, {"explain", "cm/a"}} {
		code, out, told := invoke(t, append(args, "--kubeconfig", f.kubeconfig, "--rules", f.rules, "--builtin", "none", "-n", typo)...)
		if code != exitUsage || out != "" || !strings.Contains(told, want) {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, told)
		}
	}
}

// What run would change, diff shows: with the same built-in rules.
func TestDiffLiveHasTheRulesOfRun(t *testing.T) {
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces"}), may("apps", []string{"deployments"}), may("autoscaling", []string{"horizontalpodautoscalers"})},
		strings.Replace(labelRule("told", "configmaps", "any: x"), "  match:", "  mode: Audit\n  match:", 1))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {example.io/expected-replicas: "5"}}, spec: {replicas: 3, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`)
	args := []string{"--kubeconfig", f.kubeconfig, "--rules", f.rules, "-n", f.ns}
	code, out, told := invoke(t, append([]string{"diff", "--cluster"}, args...)...)
	if code != exitFindings || !strings.Contains(out, "+  replicas: 5") || !strings.Contains(told, "expected-replicas  1        0      0") {
		t.Errorf("diff: exit code %d\n%s%s", code, out, told)
	}
	code, out, told = invoke(t, append([]string{"run", "--once", "--dry-run"}, args...)...)
	if code != exitFindings || !strings.HasPrefix(out, "fixed 0, failed 0, would fix 1, audit 2") {
		t.Errorf("run: exit code %d\n%s%s", code, out, told)
	}
}

// Who is refused is told at once, without counts of what nobody has seen.
func TestAClusterThatRefusesDiscovery(t *testing.T) {
	for status, reason := range map[int]string{401: "Unauthorized", 403: "Forbidden"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "code": %d}`, reason, status)
		}))
		defer server.Close()
		dir := t.TempDir()
		write(t, dir+"/rule.yaml", []byte(labelRule("label", "configmaps", "a: b")))
		write(t, dir+"/kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
`, server.URL))
		for _, args := range [][]string{{"diff", "--cluster"}, {"run", "--once"}} {
			began := time.Now()
			code, out, told := invoke(t, append(args, "--kubeconfig", dir+"/kubeconfig", "--rules", dir+"/rule.yaml", "-n", "shop")...)
			if code != exitCluster || out != "" || !strings.Contains(told, fmt.Sprintf("%s (HTTP %d)", reason, status)) || strings.Contains(told, "RULE") || strings.Contains(told, "matched") {
				t.Errorf("%d, %q: exit code %d\n%s%s", status, args, code, out, told)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%d, %q: it took %v", status, args, took)
			}
		}
	}
}
