package chaos

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// release is a rule about objects that are being deleted: it lets them go.
const release = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: release}
spec:
  resource: {version: v1, resource: configmaps}
  match: {namespaces: [NS], deleting: true}
  condition: object.metadata.?deletionTimestamp.hasValue() && has(object.metadata.finalizers) && object.data.?release.hasValue()
  patch: {merge: {metadata: {finalizers: null}}}
`

// terminateNamespace has kube-controller-manager delete a namespace while fixes in it
// are on their way. Finalizers hold it until a rule takes them off; then it is
// created again.
func terminateNamespace(t *trial) {
	const n = 100
	testcluster.RequireControllerManager(t)
	l := t.own(controlplane.Options{ControllerManager: true})
	l.logs = &logLines{}
	doomed := *l
	doomed.ns = l.ns + "-doomed"
	inDoomed := strings.NewReplacer("NS", doomed.ns)
	p := l.start(nil, follow, strings.Replace(inDoomed.Replace(follow), "name: follow", "name: doomed", 1), inDoomed.Replace(release))
	bird := &canary{patient: p}
	bird.sing()
	before := p.rest()

	doomed.begin()
	doomed.held(n, "first")
	doomed.atLeastRight(time.Minute, n/10, "first") // the others are on their way
	if err := l.client.Resource(namespaces).Delete(l.Context(), doomed.ns, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
	testcluster.Eventually(l, time.Minute, func() error {
		list, err := l.client.Resource(configmaps).Namespace(doomed.ns).List(l.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, u := range list.Items {
			if u.GetDeletionTimestamp() == nil {
				return fmt.Errorf("%s is not being deleted", u.GetName())
			}
		}
		return nil
	})
	bird.sing()
	p.quiet()
	sent := p.traffic.since(nil)
	doomed.mergeAll(n, `{"data":{"want":"ignored"}}`)
	bird.sing()
	p.quiet()
	if extra := p.traffic.since(sent)["patch configmaps"]; extra > 1 { // that of the canary
		l.Errorf("%d PATCHes of objects that are being deleted", extra-1)
	}
	doomed.mergeAll(n, `{"data":{"release":"yes"}}`)
	released := time.Now()
	testcluster.Eventually(l, 2*time.Minute, func() error {
		if _, err := l.client.Resource(namespaces).Get(l.Context(), doomed.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is still there (%v)", err)
		}
		return nil
	})
	l.saw("the rule took %d finalizers off, and the namespace had gone %.1f s later", n, time.Since(released).Seconds())
	bird.sing()

	doomed.begin()
	doomed.held(n, "second")
	l.saw("the same names in a new namespace: all right after %.1f s", doomed.allRight(time.Minute, n, "second").Seconds())
	bird.sing()
	bird.end()

	p.wantLines("Sync failed", n/10)
	p.wantLines("Rule failed", 0)
	p.wantLines("Not allowed", 0)
	p.judge(before, bounds{
		// Two fixes and one release for each object, and the canary.
		"patch configmaps": 3*n + 50, "patch events": anyNumber, "create *": anyNumber,
		"discovery": 2 * (int(time.Since(before.at)/(10*time.Second)) + 1),
	})
	doomed.mergeAll(n, `{"metadata":{"finalizers":null}}`)
}

// begin creates the lab's namespace.
func (l *lab) begin() {
	l.Helper()
	l.create(namespaces, "", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": l.ns},
	}})
}

// held creates ConfigMaps that want a value and have a finalizer.
func (l *lab) held(n int, want string) {
	l.Helper()
	l.parallel(n, func(name string) error {
		_, err := l.client.Resource(configmaps).Namespace(l.ns).Create(l.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "finalizers": []any{"example.io/hold"}},
			"data": map[string]any{"want": want},
		}}, metav1.CreateOptions{})
		return err
	})
}

// mergeAll changes the ConfigMaps of held.
func (l *lab) mergeAll(n int, patch string) {
	l.Helper()
	l.parallel(n, func(name string) error {
		_, err := l.client.Resource(configmaps).Namespace(l.ns).Patch(l.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

func (l *lab) parallel(n int, do func(name string) error) {
	l.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return do(fmt.Sprintf("cm-%d", i)) })
	}
	if err := group.Wait(); err != nil {
		l.Fatal(err)
	}
}
