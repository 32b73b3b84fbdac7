package main

import (
	"os"
	"strings"
	"testing"
)

const versionedRules = `
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: both}
spec:
  resources: [{group: apps, version: v1beta1, resource: deployments}, {group: apps, version: v1, resource: deployments}]
  patch: {merge: {metadata: {labels: {both: x}}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: oldver}
spec:
  resource: {group: apps, version: v1beta1, resource: deployments}
  patch: {merge: {metadata: {labels: {old: x}}}}
`

// A rule about a version that is not served is told of beside the object that it
// was meant for, as readyz and diff tell of it.
func TestExplainLiveTellsOfVersionsThatAreNotServed(t *testing.T) {
	f := newExplainFixture(t, map[string]string{"deployments.apps": "get", "horizontalpodautoscalers.autoscaling": "list"})
	const reason = "it is not about this object: apps/v1beta1/deployments: version not served (available: v1)"
	write := func(rules string) {
		t.Helper()
		if err := os.WriteFile(f.rules, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(versionedRules)
	for _, name := range []string{"deployments/web", "deploy/web", "deployment.apps/web"} {
		code, out, told := f.explain(name)
		if code != exitFindings || !strings.Contains(out, "\n  oldver              Parked   "+reason+"\n") || !strings.Contains(out, "\n  both                Patch\n") || strings.Count(out, "both ") != 1 {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, told)
		}
	}
	if code, out, _ := f.explain("deploy/web", "-o", "json"); code != exitFindings || !strings.Contains(out, `"outcome": "Parked"`) || !strings.Contains(out, `"error": "`+reason+`"`) {
		t.Errorf("as JSON: exit code %d\n%s", code, out)
	}
	// Also where no other rule is about the object.
	_, old, _ := strings.Cut(versionedRules, "---\n")
	write(old)
	if code, out, _ := f.explain("deploy/web", "--rule", "oldver"); code != exitFindings || !strings.Contains(out, "no rule is about objects of kind Deployment in apps/v1") || !strings.Contains(out, "oldver   Parked   "+reason) {
		t.Errorf("alone: exit code %d\n%s", code, out)
	}
	// What is excluded is so in any case: the rule is no finding.
	if code, out, _ := f.explain("deploy/web", "--rule", "oldver", "--exclude-namespace", f.ns); code != exitFine || !strings.Contains(out, "oldver   Skip") {
		t.Errorf("excluded: exit code %d\n%s", code, out)
	}
}

// Without a cluster nobody knows what is served: it is a note.
func TestExplainFilesTellsOfOtherVersions(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/rules.yaml", []byte(versionedRules))
	write(t, dir+"/web.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n"))
	code, out, told := invoke(t, "explain", "--rules", dir+"/rules.yaml", "-f", dir+"/web.yaml")
	want := "note: rule oldver is about apps/v1beta1/deployments: without a cluster, it does not see an object in apps/v1\n"
	if code != exitFine || !strings.Contains(out, want) || strings.Count(out, "note:") != 1 || !strings.Contains(out, "both   Patch") {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
}
