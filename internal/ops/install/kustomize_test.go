package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

const (
	base    = root + "/deploy/kustomize/base"
	overlay = "deploy/kustomize/overlays/team-rules"
)

// byHand are the files of the base that the chart has no part in.
var byHand = []string{"kustomization.yaml", "namespace.yaml"}

var (
	source   = regexp.MustCompile(`^# Source: rectifier/templates/(\S+)\n`)
	helmOnly = regexp.MustCompile(`(?m)^\s*(app\.kubernetes\.io/managed-by: "Helm"|helm\.sh/chart: .*)\n`)
	quoted   = regexp.MustCompile(`"(rectifier[-:a-z]*|IfNotPresent)"`) // as it could be anything in a chart
)

const generated = "# Made of the chart: UPDATE=1 RECTIFIER_OPS=1 go test ./internal/ops/install -run TestKustomizeBase\n"

// baseFiles splits the chart's default rendering into files, by template, without
// what is for Helm only.
func baseFiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for doc := range strings.SplitSeq("\n"+newShell(t).must(template), "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		m := source.FindStringSubmatch(doc)
		if m == nil {
			t.Fatalf("a document without a source:\n%s", doc)
		}
		text := strings.TrimSpace(helmOnly.ReplaceAllString(strings.TrimPrefix(doc, m[0]), "")) + "\n"
		text = quoted.ReplaceAllString(text, "$1")
		if out[m[1]] == "" {
			out[m[1]] = generated + text
			continue
		}
		out[m[1]] += "---\n" + text
	}
	return out
}

// The base is the chart with its default values. UPDATE=1 writes it.
func TestKustomizeBase(t *testing.T) {
	want := baseFiles(t)
	if os.Getenv("UPDATE") == "1" {
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[string]string{}
	entries, err := os.ReadDir(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(base, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(byHand, entry.Name()) {
			got[entry.Name()] = string(content)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("UPDATE=1 writes it (-chart +base):\n%s", diff)
	}

	// What kubectl makes of it is the same too, and the namespace.
	built := parse(t, newShell(t).must("kubectl kustomize deploy/kustomize/base"))
	var ns corev1.Namespace
	built.into(t, "Namespace/rectifier", &ns)
	if ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("the labels of the namespace are %v", ns.Labels)
	}
	delete(built, "Namespace/rectifier")
	rendered := render(t, "{}", "")
	for _, object := range rendered {
		labels := object.GetLabels()
		delete(labels, "app.kubernetes.io/managed-by")
		delete(labels, "helm.sh/chart")
		object.SetLabels(labels)
	}
	if diff := cmp.Diff(rendered, built); diff != "" {
		t.Errorf("objects (-chart +base):\n%s", diff)
	}
}

// The overlay adds the rules and their rights, and nothing else.
func TestKustomizeOverlay(t *testing.T) {
	s := newShell(t)
	before, after := parse(t, s.must("kubectl kustomize deploy/kustomize/base")), parse(t, s.must("kubectl kustomize "+overlay))
	var changed []string
	for _, name := range after.names() {
		if before[name] == nil || !cmp.Equal(before[name], after[name]) {
			changed = append(changed, name)
		}
	}
	if diff := cmp.Diff([]string{"ClusterRole/rectifier:rectifier", "ConfigMap/rectifier-rules", "Deployment/rectifier"}, changed); diff != "" {
		t.Errorf("changed objects (-want +got):\n%s", diff)
	}
	if args := after.args(t); args[len(args)-1] != "--rules=/etc/rectifier/rules" || len(args) != len(before.args(t))+1 {
		t.Errorf("args: %v", args)
	}
	if want, got := s.must("rectifier rbac --rules "+overlay+"/rules"), s.must("cat "+overlay+"/clusterrole.yaml"); want != got {
		t.Errorf("clusterrole.yaml is not what `rectifier rbac` prints:\n%s", cmp.Diff(want, got))
	}
	s.must("rectifier lint " + overlay + "/rules")
}

// The base works as it is, and so does the overlay on top of it.
func TestInstallKustomize(t *testing.T) {
	i := &installation{shell: newShell(t).inCluster(), namespace: release, begin: time.Now()}
	i.client, _ = clients(t)
	t.Cleanup(func() { i.must("kubectl delete -k " + overlay + " --ignore-not-found --timeout 2m") })
	i.kubelet = startKubelet(t, release)
	i.makeNamespace("shop-kustomize", "team: shop")
	i.deployment("shop-kustomize", "web")

	apply := "kubectl apply --server-side --validate=strict -k "
	i.must(apply + "deploy/kustomize/base")
	i.wantLevelRestricted()
	i.must("kubectl rollout status deployment/rectifier -n rectifier --timeout 2m")
	i.wantReplicas("shop-kustomize", "web")

	i.must(apply + overlay)
	label := []byte(`{"metadata":{"labels":{"team":"shop"}}}`)
	if _, err := i.client.AppsV1().Deployments("shop-kustomize").Patch(t.Context(), "web", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, time.Minute, func() error {
		d, err := i.client.AppsV1().Deployments("shop-kustomize").Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil && *d.Spec.RevisionHistoryLimit != 3 {
			err = fmt.Errorf("revisionHistoryLimit is %d", *d.Spec.RevisionHistoryLimit)
		}
		return err
	})
	i.must("kubectl rollout status deployment/rectifier -n rectifier --timeout 2m")
	i.replaceLeader()
	i.wantNothingRefused()
}
