package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// However often the informer of the autoscalers is stopped and started, and
// whatever it holds at that moment: no Deployment that has one is written.
func TestTheAutoscalersInformerRestarts(t *testing.T) {
	f := newFixture(t)
	const n = 20
	for i := range n {
		f.create(deployments, deploymentYAML, web(i), "1", 2)
		f.create(hpas, hpaYAML, web(i), web(i))
	}
	f.start(expectedReplicas(t))
	f.wantReadyz(soon, "horizontalpodautoscalers: synced", "deployments: synced")

	f.restartInformer(hpas, deployments, n)
	f.settle("deployments")
	if _, all := f.writes("deployments"); all != 0 {
		t.Errorf("%d writes to Deployments that have an autoscaler", all)
	}
	// It was not for lack of trying.
	f.deleteHPA(web(3))
	f.eventually(soon, deployments, web(3), int64(1), "spec", "replicas")
}

// The same for Namespaces: a selector that cannot be asked selects nothing, and
// an opt-out that cannot be seen is not taken for none.
func TestTheNamespacesInformerRestarts(t *testing.T) {
	f := newFixture(t)
	f.labelNamespace(`{"metadata":{"labels":{"env":"test"},"annotations":{"rectifier.dev/skip":"opted-out"}}}`)
	const n = 20
	for i := range n {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}`, web(i))
	}
	f.start(rule("selected", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], namespaceSelector: {matchLabels: {env: prod}}}
patch: {merge: {data: {selected: "yes"}}}`), rule("opted-out", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {optedOut: "yes"}}}`))
	f.wantReadyz(soon, "namespaces: synced", "configmaps: synced")
	f.restartInformer(namespaces, configmaps, n)
	f.settle("configmaps")
	if _, all := f.writes("configmaps"); all != 0 {
		t.Errorf("%d writes to objects that are not selected, or in a Namespace that opts out", all)
	}
	f.labelNamespace(`{"metadata":{"labels":{"env":"prod"}}}`)
	f.eventually(soon, configmaps, web(3), "yes", "data", "selected")
}

// restartInformer stops and starts the informer of one resource many times,
// while the engine looks at n objects of another one all the time.
func (f *fixture) restartInformer(resource, of schema.GroupVersionResource, n int) {
	f.Helper()
	const restarts = 100
	ctx, cancel := context.WithCancel(f.Context())
	var evaluating sync.WaitGroup
	evaluating.Go(func() {
		for ctx.Err() == nil {
			f.engine.enqueueAll(of)
			time.Sleep(time.Millisecond) // the pace of the load: nothing is waited for
		}
	})
	all := watched(f.engine.rules())
	without := slices.DeleteFunc(slices.Clone(all), func(r schema.GroupVersionResource) bool { return r == resource })
	before := f.engine.syncs.Load()
	for range restarts {
		f.engine.informers.Use(without)
		f.engine.informers.Use(all)
		testcluster.Eventually(f, soon, func() error {
			if available, reason := f.engine.informers.Availability(resource); available != gvr.Available {
				return fmt.Errorf("not synced yet: %s", reason)
			}
			return nil
		})
	}
	cancel()
	evaluating.Wait()
	if got := f.engine.syncs.Load() - before; got < restarts*int64(n) {
		f.Errorf("only %d evaluations meanwhile: that proves little", got)
	}
}

func (f *fixture) deleteHPA(name string) {
	f.Helper()
	if err := f.client.Resource(hpas).Namespace(f.ns).Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// When the right to see the autoscalers is taken away in mid-run, and the API
// server restarts so that open watches do not hide it, the replica rule writes
// nothing: neither where an autoscaler is, nor where one was. It goes on by
// itself when the right is back.
func TestTheRightToSeeAutoscalersIsTakenAway(t *testing.T) {
	t.Parallel()
	f := ownFixture(t, controlplane.Options{Audit: true})
	f.grantIn("apps", "deployments", "list", "watch")
	f.grantIn("apps", "deployments/scale", "patch")
	f.grantIn("autoscaling", "horizontalpodautoscalers", "list", "watch")
	f.grantIn("events.k8s.io", "events", "create", "patch")
	f.grant("configmaps", "list", "watch", "patch")
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kept", "freed"} {
		f.create(deployments, deploymentYAML, name, "5", 3)
		f.create(hpas, hpaYAML, name, name)
	}
	f.startAs(config, Options{}, expectedReplicas(t), rule("mark", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {fixed: "yes"}}}`))
	f.wantReadyz(soon, "horizontalpodautoscalers: synced", "deployments: synced")

	f.revokeHPAs()
	if err := f.cp.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := f.cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	replicas := 0
	drift := func() { // others go on scaling
		replicas = (replicas + 1) % 4
		for _, name := range []string{"kept", "freed"} {
			f.merge(deployments, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		}
	}
	testcluster.Eventually(t, 60*time.Second, func() error {
		drift()
		if _, body := f.readyz(); !strings.Contains(body, "parked: it looks up autoscaling/v2/horizontalpodautoscalers, which is not available: ") {
			return fmt.Errorf("the rule is not parked:\n%s", body)
		}
		return nil
	})
	f.deleteHPA("freed") // which the engine cannot see
	for range 10 {
		drift()
	}
	f.canaryWithin("alive", 30*time.Second)
	f.wantNoWrites("while the autoscalers cannot be seen", "kept", "freed")

	f.grantIn("autoscaling", "horizontalpodautoscalers", "list", "watch")
	f.eventually(40*time.Second, deployments, "freed", int64(5), "spec", "replicas")
	drift()
	f.eventually(soon, deployments, "freed", int64(5), "spec", "replicas")
	f.settle("deployments")
	f.wantNoWrites("while it has an autoscaler", "kept")
	f.deleteHPA("kept")
	f.eventually(soon, deployments, "kept", int64(5), "spec", "replicas")
}

// revokeHPAs takes away what grantIn gave, and waits until that is so.
func (f *fixture) revokeHPAs() {
	f.Helper()
	name := strings.Join([]string{f.user, f.ns, "horizontalpodautoscalers", "list", "watch"}, "-")
	for _, resource := range []string{"clusterrolebindings", "clusterroles"} {
		rbac := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
		if err := f.client.Resource(rbac).Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
	}
	config, err := f.cp.User(f.user)
	if err != nil {
		f.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		f.Fatal(err)
	}
	testcluster.Eventually(f, soon, func() error {
		if _, err := client.Resource(hpas).List(f.Context(), metav1.ListOptions{Limit: 1}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the autoscalers can still be listed: %v", err)
		}
		return nil
	})
}

// canaryWithin proves that the engine works on another resource.
func (f *fixture) canaryWithin(name string, timeout time.Duration) {
	f.Helper()
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}`, name)
	f.eventually(timeout, configmaps, name, "yes", "data", "fixed")
}

// wantNoWrites looks for requests to Deployments.
func (f *fixture) wantNoWrites(when string, names ...string) {
	f.Helper()
	for _, e := range f.requests("deployments") {
		if slices.Contains(names, e.ObjectRef.Name) {
			f.Errorf("%s: %s of %s, answered with %d", when, e.Verb, e.RequestURI, e.ResponseStatus.Code)
		}
	}
}
