package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// With --cluster, lint knows what that serves: CRDs that nobody gave it, and
// what is not there.
func TestLintKnowsTheCluster(t *testing.T) {
	cp := testcluster.Start(t)
	group := strings.ReplaceAll(testcluster.Namespace(t), "-", "") + ".example.io"
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lids.GROUP}
spec:
  group: GROUP
  scope: Cluster
  names: {plural: lids, singular: lid, kind: Lid}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {colour: {type: string}}}}}}
`, "GROUP", group)), &definition.Object); err != nil {
		t.Fatal(err)
	}
	crds := testcluster.Dynamic(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = crds.Delete(context.Background(), definition.GetName(), metav1.DeleteOptions{}) })

	dir := t.TempDir()
	config, rule := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "rule.yaml")
	if err := cp.WriteKubeconfig(config, "linter"); err != nil { // discovery needs no rights
		t.Fatal(err)
	}
	text := strings.ReplaceAll(`
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: lids}
spec:
  resource: {group: GROUP, version: v1, resource: lids}
  match: {names: [a]}
  condition: object.spec.color != 'red'
  patch: {merge: {spec: {colour: red}}}
`, "GROUP", group)
	write(t, rule, []byte(text))
	testcluster.Eventually(t, 30*time.Second, func() error { // schemas are published after a while
		code, out, told := invoke(t, "lint", "--cluster", "--kubeconfig", config, rule)
		if code != exitFindings || !strings.Contains(out, ":8:") || !strings.Contains(out, "color") {
			return fmt.Errorf("exit code %d: %s%s", code, out, told)
		}
		return nil
	})
	write(t, rule, []byte(strings.ReplaceAll(strings.ReplaceAll(text, "version: v1,", "version: v2,"), "color", "colour")))
	if code, out, told := invoke(t, "lint", "--cluster", "--kubeconfig", config, rule); code != exitFindings || !strings.Contains(out, "v2") {
		t.Errorf("a version that is not served: exit code %d\n%s%s", code, out, told)
	}
}

func TestLintOfAClusterThatDoesNotAnswer(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, config, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`))
	code, out, told := invoke(t, "lint", "--cluster", "--kubeconfig", config, "--builtin", "expected-replicas")
	if code != exitCluster || out != "" || !strings.Contains(told, "read what the cluster serves: ") {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
	if code, _, told := invoke(t, "lint", "--kubeconfig", config, "--builtin", "expected-replicas"); code != exitUsage || !strings.Contains(told, "are for --cluster") {
		t.Errorf("exit code %d: %s", code, told)
	}
}
