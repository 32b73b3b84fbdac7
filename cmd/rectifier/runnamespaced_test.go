package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// running is a `rectifier run` in a process of its own.
type running struct {
	*testing.T
	stderr *lockedBuffer
	stop   func() // and wait until it has ended
}

func (f *rbacFixture) run(args ...string) *running {
	f.Helper()
	r := &running{T: f.T, stderr: &lockedBuffer{}}
	cmd := exec.Command("rectifier", append([]string{"run", "--kubeconfig", f.kubeconfig, "--bind-address", "127.0.0.1:0"}, args...)...) // TestMain makes it
	cmd.Stderr = r.stderr
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	r.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if strings.Contains(r.stderr.String(), "DATA RACE") {
			f.Errorf("there is a data race:\n%s", r.stderr)
		}
	})
	f.Cleanup(r.stop)
	return r
}

var servingAt = regexp.MustCompile(`Serving status, metrics and health checks" address="([^"]+)"`)

// wantReadyz waits until /readyz has these texts in it.
func (r *running) wantReadyz(texts ...string) {
	r.Helper()
	testcluster.Eventually(r, 30*time.Second, func() error {
		at := servingAt.FindStringSubmatch(r.stderr.String())
		if at == nil {
			return fmt.Errorf("it serves nothing:\n%s", r.stderr)
		}
		resp, err := http.Get("http://" + at[1] + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		for _, text := range texts {
			if !strings.Contains(string(body), text) {
				return fmt.Errorf("readyz has no %q:\n%s", text, body)
			}
		}
		return err
	})
}

// RBC-02, from end to end: `run --namespace a,b` as a ServiceAccount that has no
// more than the Roles that `rbac` prints for it. It works in both, and asks for
// nothing beyond but whether they exist.
func TestRunInNamespacesWithRolesOnly(t *testing.T) {
	f := newRBACFixture(t)
	other, elsewhere := testcluster.Namespace(t), testcluster.Namespace(t)
	dir := f.rules(ruleFile("label", `
resource: {version: v1, resource: configmaps}
match: {names: [drifted]}
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`), ruleFile("elsewhere", `
resource: {version: v1, resource: configmaps}
match: {namespaces: ["elsewhere-*"]}
patch: {merge: {metadata: {labels: {wrong: "true"}}}}`))
	common := []string{"--rules", dir, "--builtin", "none", "--namespace", f.ns + "," + other}
	f.create(f.must(append([]string{"rbac", "--service-account", f.ns + "/engine"}, common...)...))
	drifted := func(namespace string) {
		t.Helper()
		f.create(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted, namespace: %s}}`, namespace))
	}
	for _, namespace := range []string{f.ns, elsewhere} {
		drifted(namespace)
	}
	r := f.run(common...)
	drifted(other) // while it runs
	f.wantLabel(f.ns)
	f.wantLabel(other)
	r.wantReadyz("\nready", "v1/configmaps in "+f.ns+": synced", "v1/configmaps in "+other+": synced",
		"[!] rule elsewhere: it matches in none of --namespace "+f.ns+","+other)
	r.stop() // a watch is in the audit log when it has ended
	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	f.wantField(configmaps, elsewhere, "drifted", nil, "metadata", "labels", "fixed")

	lists := 0
	for _, e := range f.requests() {
		lists += map[string]int{"list": 1, "watch": 1}[e.Verb]
		if e.ObjectRef.Resource == "namespaces" && (slices.Contains([]string{f.ns, other}, e.ObjectRef.Name) || strings.Contains(e.RequestURI, "fieldSelector=metadata.name%3D")) {
			continue // whether it exists
		}
		if !slices.Contains([]string{f.ns, other}, e.ObjectRef.Namespace) {
			t.Errorf("beyond the namespaces: %s %s (%d)", e.Verb, e.RequestURI, e.ResponseStatus.Code)
		}
		if e.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	if lists == 0 {
		t.Error("the audit log has no list and no watch")
	}
}

// wantLabel waits until the ConfigMap in a namespace is right.
func (f *rbacFixture) wantLabel(namespace string) {
	f.Helper()
	client := testcluster.Dynamic(f).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	testcluster.Eventually(f, 30*time.Second, func() error {
		u, err := client.Get(f.Context(), "drifted", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(u.Object, "metadata", "labels", "fixed"); got != "true" {
			return fmt.Errorf("in %s it is labelled %v", namespace, u.GetLabels())
		}
		return nil
	})
}
