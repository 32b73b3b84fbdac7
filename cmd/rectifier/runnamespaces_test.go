package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// A namespace that does not exist looks like one that is empty: it is told, and
// not any more when it has come. And who starts run sees which built-in rules are on.
func TestRunTellsOfANamespaceThatIsNotThere(t *testing.T) {
	f := newRBACFixture(t)
	if err := f.cp.WriteKubeconfig(f.kubeconfig, "runner-of-"+f.ns, "system:masters"); err != nil {
		t.Fatal(err)
	}
	coming := f.ns + "-coming"
	r := f.run("--namespace", f.ns+","+coming)
	missing := fmt.Sprintf("[!] --namespace: there is no namespace %q", coming)
	r.wantReadyz("\nready", missing)
	if !strings.Contains(r.stderr.String(), `builtin=["expected-replicas"]`) {
		t.Errorf("it does not say which built-in rules are on:\n%s", r.stderr)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: coming}}
	if _, err := f.admin.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testcluster.Eventually(t, time.Minute, func() error {
		resp, err := http.Get("http://" + servingAt.FindStringSubmatch(r.stderr.String())[1] + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && strings.Contains(string(body), missing) {
			err = fmt.Errorf("it is still missing:\n%s", body)
		}
		return err
	})
	if n := strings.Count(r.stderr.String(), "there is no namespace"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, r.stderr)
	}
}
