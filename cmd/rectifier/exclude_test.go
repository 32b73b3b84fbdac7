package main

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// What run leaves alone because of --exclude-namespace, diff leaves out, and says
// so where it was asked for by name; explain tells why nothing is done.
func TestExcludedNamespacesInDiffAndExplain(t *testing.T) {
	const labelNamespaces = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: ns}
spec:
  resource: {version: v1, resource: namespaces}
  match: {names: [NS]}
  patch: {merge: {metadata: {labels: {chosen: x}}}}
`
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces"}, "get")}, labelRule("any", "configmaps", "any: x"), labelNamespaces)
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + f.ns + `}}`)
	glob := f.ns[:len(f.ns)-1] + "?"
	code, out, told := f.diff()
	if code != exitFindings || !strings.Contains(out, "any: x") || !strings.Contains(out, "chosen: x") {
		t.Errorf("without: exit code %d\n%s%s", code, out, told)
	}
	code, out, told = f.diff("--exclude-namespace", glob)
	if code != exitFine || out != "" {
		t.Errorf("with: exit code %d\n%s%s", code, out, told)
	}
	code, out, told = f.diff("--exclude-namespace", glob, "cm/"+f.ns)
	if code != exitUsage || out != "" || !strings.Contains(told, "rectifier: left out by --exclude-namespace: cm/NS\n") {
		t.Errorf("by name: exit code %d\n%s%s", code, out, told)
	}
	code, out, told = f.diff("--exclude-namespace", "other", "cm/"+f.ns)
	if code != exitFindings || !strings.Contains(out, "any: x") {
		t.Errorf("of others: exit code %d\n%s%s", code, out, told)
	}
	common := []string{"--kubeconfig", f.kubeconfig, "--rules", f.rules, "--builtin", "none", "--exclude-namespace", glob}
	for object, want := range map[string]string{
		"cm/" + f.ns: "any   Skip   its namespace is excluded: --exclude-namespace " + glob + "\n",
		"ns/" + f.ns: "ns   Skip   this Namespace is excluded: --exclude-namespace " + glob + "\n",
	} {
		args := append([]string{"explain", object}, common...)
		if strings.HasPrefix(object, "cm") {
			args = append(args, "-n", f.ns)
		}
		code, out, told = invoke(t, args...)
		if code != exitFine || !strings.Contains(out, want) || strings.Contains(out, "\n    event ") {
			t.Errorf("explain %s: exit code %d\n%s%s", object, code, out, told)
		}
	}
	code, out, told = invoke(t, append([]string{"run", "--once", "--dry-run"}, common...)...)
	if code != exitFine || !strings.HasPrefix(out, "fixed 0, failed 0, would fix 0") {
		t.Errorf("run: exit code %d\n%s%s", code, out, told)
	}
}
