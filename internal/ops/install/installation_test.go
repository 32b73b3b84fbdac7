package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// installation is Rectifier in a namespace that lets in only pods of the level
// "restricted", with a kubelet for its pods.
type installation struct {
	*shell
	client    *kubernetes.Clientset
	namespace string
	kubelet   *kubelet
	begin     time.Time
}

// newInstallation makes the namespace; the test installs.
func newInstallation(t *testing.T, namespace string) *installation {
	t.Helper()
	i := &installation{shell: newShell(t).inCluster(), namespace: namespace, begin: time.Now()}
	i.client, _ = clients(t)
	i.makeNamespace(namespace, "pod-security.kubernetes.io/enforce: restricted")
	i.kubelet = startKubelet(t, namespace)
	return i
}

func (i *installation) makeNamespace(name, label string) {
	i.Helper()
	i.apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", labels: {" + label + "}}}")
	i.Cleanup(func() {
		i.must("kubectl delete namespace " + name + " --ignore-not-found --timeout 60s")
	})
}

func (i *installation) apply(manifest string) {
	i.Helper()
	i.mustWith(manifest, "kubectl apply --server-side --validate=strict -f -")
}

// helm installs or upgrades the release, and waits until its pods are ready.
func (i *installation) helm(values, flags string) {
	i.Helper()
	i.mustWith(values, "helm upgrade --install "+release+" deploy/chart --namespace "+i.namespace+" --wait --timeout 3m --values - "+flags)
}

// uninstallAfter ends the release with the test: what it has in the cluster would
// stay.
func (i *installation) uninstallAfter() {
	i.Cleanup(func() {
		i.must("helm uninstall " + release + " --namespace " + i.namespace + " --ignore-not-found --wait")
	})
}

func (i *installation) user() string {
	return "system:serviceaccount:" + i.namespace + ":" + release
}

// deployment makes a Deployment whose replicas drifted.
func (i *installation) deployment(namespace, name string) {
	i.Helper()
	i.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s, annotations: {example.io/expected-replicas: "3"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
`, name, namespace))
}

func (i *installation) drift(namespace, name string) {
	i.Helper()
	patch := []byte(`{"spec":{"replicas":1}}`)
	if _, err := i.client.AppsV1().Deployments(namespace).Patch(i.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		i.Fatal(err)
	}
}

func (i *installation) replicas(namespace, name string) int32 {
	i.Helper()
	d, err := i.client.AppsV1().Deployments(namespace).Get(i.Context(), name, metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	return *d.Spec.Replicas
}

func (i *installation) wantReplicas(namespace, name string) {
	i.Helper()
	testcluster.Eventually(i, time.Minute, func() error {
		if n := i.replicas(namespace, name); n != 3 {
			return fmt.Errorf("the Deployment %s has %d replicas", name, n)
		}
		return nil
	})
}

func (i *installation) configMap(namespace, name string) {
	i.Helper()
	i.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + ", labels: {team: shop}}}")
}

// wantLabel waits until a ConfigMap has a label.
func (i *installation) wantLabel(namespace, name, label string) {
	i.Helper()
	testcluster.Eventually(i, time.Minute, func() error {
		if labels := i.labels(namespace, name); labels[label] != "true" {
			return fmt.Errorf("the ConfigMap %s/%s has the labels %v", namespace, name, labels)
		}
		return nil
	})
}

func (i *installation) labels(namespace, name string) map[string]string {
	i.Helper()
	c, err := i.client.CoreV1().ConfigMaps(namespace).Get(i.Context(), name, metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	return c.Labels
}

// podNames are the pods that are not on their way out.
func (i *installation) podNames() []string {
	i.Helper()
	list, err := i.client.CoreV1().Pods(i.namespace).List(i.Context(), metav1.ListOptions{})
	if err != nil {
		i.Fatal(err)
	}
	var out []string
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod.Name)
		}
	}
	slices.Sort(out)
	return out
}

// leader is the pod that holds the Lease, once there is one of the pods now.
func (i *installation) leader() *podProcess {
	i.Helper()
	var out *podProcess
	testcluster.Eventually(i, time.Minute, func() error {
		lease, err := i.client.CoordinationV1().Leases(i.namespace).Get(i.Context(), release, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return fmt.Errorf("nobody holds the Lease")
		}
		i.kubelet.mu.Lock()
		defer i.kubelet.mu.Unlock()
		for _, p := range i.kubelet.pods {
			for line := range strings.Lines(p.log.String()) {
				if strings.Contains(line, `"Leading"`) && strings.Contains(line, *lease.Spec.HolderIdentity) {
					out = p
					return nil
				}
			}
		}
		return fmt.Errorf("%s holds the Lease, which is none of the pods", *lease.Spec.HolderIdentity)
	})
	return out
}

// serviceAccount writes a kubeconfig with a token of a ServiceAccount, and gives
// the token.
func (i *installation) serviceAccount(namespace, name string) (kubeconfig, token string) {
	i.Helper()
	answer, err := i.client.CoreV1().ServiceAccounts(namespace).CreateToken(i.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		i.Fatal(err)
	}
	kubeconfig = i.TempDir() + "/kubeconfig"
	writeKubeconfig(i.T, kubeconfig, namespace, answer.Status.Token)
	return kubeconfig, answer.Status.Token
}

// requests are what the ServiceAccount has sent in this test. To be sure that the
// log has all of them, they are followed by another user's, which is waited for.
func (i *installation) requests() []controlplane.AuditEvent {
	i.Helper()
	probe := fmt.Sprintf("probe-%d", time.Now().UnixNano())
	_, _ = i.client.CoreV1().ConfigMaps("default").Get(context.Background(), probe, metav1.GetOptions{})
	testcluster.Eventually(i, 20*time.Second, func() error {
		seen, err := world.cluster.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.ObjectRef.Name == probe })
		if err == nil && len(seen) == 0 {
			err = fmt.Errorf("the audit log lags behind")
		}
		return err
	})
	events, err := world.cluster.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return e.User.Username == i.user() && !e.RequestReceivedTimestamp.Before(i.begin)
	})
	if err != nil {
		i.Fatal(err)
	}
	return events
}

// replaceLeader lets another instance lead: a watch is in the audit log when it
// has ended.
func (i *installation) replaceLeader() (before *podProcess) {
	i.Helper()
	before = i.leader()
	i.must("kubectl delete pod -n " + i.namespace + " --wait " + before.name)
	if i.leader() == before {
		i.Error("the deleted pod still leads")
	}
	return before
}

// wantNothingRefused checks that the ServiceAccount has asked for nothing that it
// may not do, nor for anything that the roles of the installation do not name.
// They are all used as soon as replaceLeader has been called.
func (i *installation) wantNothingRefused() {
	i.Helper()
	granted := i.granted()
	unused := map[string]bool{}
	for _, right := range granted {
		unused[right] = true
	}
	for _, e := range i.requests() {
		if e.ResponseStatus.Code == 403 || e.ResponseStatus.Code == 401 {
			i.Errorf("refused (%d): %s %s", e.ResponseStatus.Code, e.Verb, e.RequestURI)
		}
		if e.ObjectRef.Resource == "" || e.ObjectRef.Resource == "selfsubjectaccessreviews" {
			continue // discovery, and questions that every identity may ask
		}
		gr := schema.GroupResource{Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource}
		right := e.Verb + " " + strings.TrimSuffix(gr.String()+"/"+e.ObjectRef.Subresource, "/")
		named := right + " " + e.ObjectRef.Name
		if !slices.Contains(granted, right) && !slices.Contains(granted, named) {
			i.Errorf("beyond the roles: %s %s", e.Verb, e.RequestURI)
		}
		delete(unused, right)
		delete(unused, named)
	}
	for right := range unused {
		// Lists are streamed by watches where the server can; an Event is patched when it comes again.
		if !strings.HasPrefix(right, "list ") && right != "patch events.events.k8s.io" {
			i.Errorf("granted, but never used: %s", right)
		}
	}
}

// granted lists what the roles grant that are bound to the ServiceAccount.
func (i *installation) granted() []string {
	i.Helper()
	var out []string
	clusterRoles, err := i.client.RbacV1().ClusterRoles().List(i.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
	if err != nil {
		i.Fatal(err)
	}
	for _, role := range clusterRoles.Items {
		if !strings.HasSuffix(role.Name, ":metrics-reader") {
			out = append(out, rights(role.Rules)...)
		}
	}
	roles, err := i.client.RbacV1().Roles("").List(i.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
	if err != nil {
		i.Fatal(err)
	}
	for _, role := range roles.Items {
		out = append(out, rights(role.Rules)...)
	}
	return out
}
