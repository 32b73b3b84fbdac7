package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// With just the roles that are printed for --leader-elect, an instance takes the
// lease, works, and releases it, and no request is refused; without the Role for
// the lease, the check names its rights.
func TestTheRolesForLeaderElectionAreEnough(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "rectifier")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f := newRBACFixture(t)
	dir := f.rules(ruleFile("label", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: ["drifted-*"]}
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`))
	common := []string{"--rules", dir, "--builtin", "none"}
	f.create(f.must(append([]string{"rbac", "--name", f.ns, "--service-account", f.ns + "/engine"}, common...)...))
	electing := append([]string{"--leader-elect", "--lease-name", f.ns + "/l"}, common...)
	f.wantMissing(exitFindings, []string{"create leases.coordination.k8s.io", "get leases.coordination.k8s.io", "update leases.coordination.k8s.io"}, electing...)
	roles := f.must(append([]string{"rbac", "--name", f.ns, "--service-account", f.ns + "/engine", "--leader-elect", "--lease-name", "l"}, common...)...)
	role := slices.IndexFunc(strings.Split(roles, "---\n"), func(doc string) bool { return strings.Contains(doc, "kind: Role\n") })
	f.create(strings.Join(strings.Split(roles, "---\n")[role:], "---\n"))
	f.wantMissing(exitFine, []string{}, electing...)

	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for _, name := range []string{"drifted-1", "drifted-2"} { // the first run creates the lease, the second finds it
		f.create(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}", name))
		run := exec.Command(binary, append([]string{"run", "--kubeconfig", f.kubeconfig, "--bind-address", ""}, electing...)...)
		var log lockedBuffer
		run.Stderr = &log
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = run.Process.Kill() })
		testcluster.Eventually(f, 30*time.Second, func() error {
			u, err := testcluster.Dynamic(f).Resource(configmaps).Namespace(f.ns).Get(f.Context(), name, metav1.GetOptions{})
			if err == nil && u.GetLabels()["fixed"] == "" {
				err = fmt.Errorf("%s is not fixed; the log:\n%s", name, log.String())
			}
			return err
		})
		if err := run.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		stuck := time.AfterFunc(40*time.Second, func() { _ = run.Process.Kill() })
		if err := run.Wait(); err != nil {
			t.Errorf("run ended with %v\n%s", err, log.String())
		}
		stuck.Stop()
		f.wantField(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, f.ns, "l", "", "spec", "holderIdentity")
	}
	used := map[string]bool{}
	for _, e := range f.requests() {
		used[target(e)] = true
		if e.ResponseStatus.Code == 403 && e.ObjectRef.Resource != "namespaces" {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	for _, verb := range []string{"create", "get", "update"} {
		if !used[verb+" leases.coordination.k8s.io"] {
			t.Errorf("granted, but never used: %s leases", verb)
		}
	}
}

// Where the lease is looked for if --lease-name does not say.
func TestTheNamespaceOfTheLease(t *testing.T) {
	if _, err := os.Stat(podNamespaceFile); err == nil {
		t.Skip("this is a pod")
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: here, contexts: [
{name: here, context: {namespace: ops}}, {name: there, context: {namespace: other}}, {name: nowhere, context: {}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		flags   leaseFlags
		context string
		account string
		want    types.NamespacedName // zero: an error
	}{
		"the flag":            {flags: leaseFlags{elect: true, name: "a/b"}, account: "sa", want: types.NamespacedName{Namespace: "a", Name: "b"}},
		"the ServiceAccount":  {flags: leaseFlags{elect: true, name: "b"}, account: "sa", want: types.NamespacedName{Namespace: "sa", Name: "b"}},
		"the current context": {flags: leaseFlags{elect: true, name: "b"}, want: types.NamespacedName{Namespace: "ops", Name: "b"}},
		"another context":     {flags: leaseFlags{elect: true, name: "b"}, context: "there", want: types.NamespacedName{Namespace: "other", Name: "b"}},
		"none is named":       {flags: leaseFlags{elect: true, name: "b"}, context: "nowhere"},
	} {
		got, err := tc.flags.lease(&clusterFlags{kubeconfig: kubeconfig, context: tc.context}, tc.account)
		if got != tc.want || (err != nil) != (tc.want.Name == "") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
