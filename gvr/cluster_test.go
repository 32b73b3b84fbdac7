package gvr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// The tests in this file run against the real API server. Each has an API group of its own.

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// customResource returns the manifest of a CRD "widgets" in a group of the test's own, and the GVR of its v1.
func customResource(t testing.TB) (map[string]any, schema.GroupVersionResource) {
	group := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())) + ".example.com"
	crd := manifest(t, widgetCRD, "example.com", group)
	delete(crd, "status")
	delete(crd, "metadata")
	u := unstructured.Unstructured{Object: crd}
	u.SetName("widgets." + group)
	return crd, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
}

func create(t testing.TB, gvr schema.GroupVersionResource, namespace string, object map[string]any) *unstructured.Unstructured {
	t.Helper()
	u, err := testcluster.Dynamic(t).Resource(gvr).Namespace(namespace).
		Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// remove deletes an object and waits until it is gone. An absent one is fine.
func remove(t testing.TB, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	client := testcluster.Dynamic(t).Resource(gvr).Namespace(namespace)
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := client.Delete(context.Background(), name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s %s is still there (%v)", gvr.Resource, name, err)
			return
		}
		sleep(context.Background(), 20*time.Millisecond)
	}
}

func createCRD(t testing.TB, definition map[string]any) {
	t.Helper()
	u := create(t, crdResource, "", runtimeCopy(definition))
	t.Cleanup(func() { remove(t, crdResource, "", u.GetName()) })
}

func runtimeCopy(object map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: object}).DeepCopy().Object
}

// createWidget creates a custom object; a new CRD is not served at once.
func createWidget(t testing.TB, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": "Widget", "metadata": map[string]any{"name": name},
	}}
	var created *unstructured.Unstructured
	testcluster.Eventually(t, 20*time.Second, func() (err error) {
		created, err = testcluster.Dynamic(t).Resource(gvr).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{})
		return err
	})
	return created
}

func configMapNamed(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}
}

// seen waits until the cache has an object with that uid.
func seen(t testing.TB, m *Manager, gvr schema.GroupVersionResource, want *unstructured.Unstructured) {
	t.Helper()
	testcluster.Eventually(t, 5*time.Second, func() error {
		got, ok := m.Get(gvr, want.GetNamespace(), want.GetName())
		if !ok || got.GetUID() != want.GetUID() {
			return fmt.Errorf("%s %s with uid %s is not in the cache", gvr.Resource, want.GetName(), want.GetUID())
		}
		return nil
	})
}

func user(t testing.TB, name string) *rest.Config {
	t.Helper()
	config, err := testcluster.Start(t).User(name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// grant lets a user list and watch a resource, in the cluster or in a namespace.
func grant(t testing.TB, user, namespace, group, resource string) {
	t.Helper()
	scope := ""
	if namespace == "" {
		scope = "cluster"
	}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	name := user + "-" + resource
	kind := map[string]string{"cluster": "ClusterRole", "": "Role"}[scope]
	for _, object := range []map[string]any{
		{"kind": kind, "rules": []any{map[string]any{
			"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{"list", "watch"},
		}}},
		{"kind": kind + "Binding", "roleRef": map[string]any{"apiGroup": rbac.Group, "kind": kind, "name": name},
			"subjects": []any{map[string]any{"apiGroup": rbac.Group, "kind": "User", "name": user}}},
	} {
		object["apiVersion"] = rbac.String()
		object["metadata"] = map[string]any{"name": name}
		gvr := rbac.WithResource(strings.ToLower(object["kind"].(string)) + "s")
		create(t, gvr, namespace, object)
		t.Cleanup(func() { remove(t, gvr, namespace, name) })
	}
}

func TestObjectsOfBuiltinResource(t *testing.T) {
	namespace := testcluster.Namespace(t)
	m, _, _ := run(t, Options{Config: testcluster.Start(t).AdminConfig()}, configmaps)
	object := configMapNamed("a")
	object["data"] = map[string]any{"key": "value"}
	created := create(t, configmaps, namespace, object)
	if len(created.GetManagedFields()) == 0 {
		t.Fatal("the test needs managedFields")
	}
	seen(t, m, configmaps, created)
	cached, _ := m.Get(configmaps, namespace, "a")
	if len(cached.GetManagedFields()) != 0 {
		t.Error("managedFields are in the cache")
	}
	testcluster.Eventually(t, 5*time.Second, func() error {
		if c, err := resourceversion.CompareResourceVersion(m.LastSyncVersion(configmaps, namespace), created.GetResourceVersion()); err != nil || c < 0 {
			return fmt.Errorf("LastSyncVersion %q, object %q, %v", m.LastSyncVersion(configmaps, namespace), created.GetResourceVersion(), err)
		}
		return nil
	})
	info, ok := m.Info(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"})
	if !ok || info.Kind != "StatefulSet" || !info.HasScale || !info.HasStatus || !slices.Equal(info.ReplicasPath, []string{"spec", "replicas"}) {
		t.Errorf("Info of statefulsets is %+v, %v", info, ok)
	}
}

// The whole life of a CRD: absent, created, deleted, created again within a second, another version, deleted.
// A canary on another resource works throughout, and the log stays short.
func TestCRDLifecycle(t *testing.T) {
	namespace := testcluster.Namespace(t)
	definition, widgets := customResource(t)
	m, logs, _ := run(t, Options{Config: testcluster.Start(t).AdminConfig()}, configmaps, widgets)
	canary := func(name string) {
		t.Helper()
		created := create(t, configmaps, namespace, configMapNamed(name))
		testcluster.Eventually(t, 30*time.Second, func() error {
			if _, ok := m.Get(configmaps, namespace, created.GetName()); !ok {
				return errors.New("the canary is not seen")
			}
			return nil
		})
	}
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 10*time.Second, m, widgets, Waiting, "not served")
	canary("absent")

	createCRD(t, definition)
	eventually(t, 5*time.Second, m, widgets, Synced, "")
	first := createWidget(t, widgets, namespace, "w")
	seen(t, m, widgets, first)
	if info, ok := m.Info(widgets); !ok || !info.HasStatus || !info.HasScale || !slices.Equal(info.ReplicasPath, []string{"spec", "size"}) {
		t.Errorf("Info is %+v, %v", info, ok)
	}
	canary("created")

	remove(t, crdResource, "", "widgets."+widgets.Group)
	createCRD(t, definition)
	second := createWidget(t, widgets, namespace, "w")
	seen(t, m, widgets, second)
	eventually(t, 5*time.Second, m, widgets, Synced, "")
	canary("recreated")

	m.Use([]schema.GroupVersionResource{configmaps, widgets, widgets.GroupResource().WithVersion("v1beta1")})
	eventually(t, time.Second, m, widgets.GroupResource().WithVersion("v1beta1"), Waiting, "version not served (available: v1, v1alpha1)")

	remove(t, crdResource, "", "widgets."+widgets.Group)
	eventually(t, 5*time.Second, m, widgets, Waiting, "")
	if _, ok := m.Get(widgets, namespace, "w"); ok {
		t.Error("the store of a deleted CRD still answers")
	}
	canary("deleted")
	if lines := logs.matching(widgets.GroupResource().String()); len(lines) > 2*linesPerMinute { // of two versions
		t.Errorf("%d log lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// A version that a CRD serves no longer stops its informer; another one starts at once (case DSC-05).
func TestVersionNoLongerServed(t *testing.T) {
	definition, v1 := customResource(t)
	v1alpha1 := v1.GroupResource().WithVersion("v1alpha1")
	createCRD(t, definition)
	m, _, _ := run(t, Options{Config: testcluster.Start(t).AdminConfig()}, v1alpha1)
	eventually(t, 15*time.Second, m, v1alpha1, Synced, "")
	_, err := testcluster.Dynamic(t).Resource(crdResource).Patch(t.Context(), "widgets."+v1.Group, "application/json-patch+json",
		[]byte(`[{"op": "replace", "path": "/spec/versions/1/served", "value": false}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, m, v1alpha1, Waiting, "version not served (available: v1)")
	m.Use([]schema.GroupVersionResource{v1})
	eventually(t, 5*time.Second, m, v1, Synced, "")
}

// Without permission to read CRDs, polling does the same, later.
func TestCRDsNotReadable(t *testing.T) {
	namespace := testcluster.Namespace(t)
	definition, widgets := customResource(t)
	grant(t, "crdless", "", widgets.Group, "widgets")
	m, logs, _ := run(t, Options{Config: user(t, "crdless"), DiscoveryInterval: time.Second}, widgets)
	eventually(t, 10*time.Second, m, widgets, Waiting, "not served")
	createCRD(t, definition)
	eventually(t, 15*time.Second, m, widgets, Synced, "")
	seen(t, m, widgets, createWidget(t, widgets, namespace, "w"))
	if info, ok := m.Info(widgets); !ok || info.ReplicasPath != nil || !info.HasScale {
		t.Errorf("Info is %+v, %v", info, ok)
	}

	remove(t, crdResource, "", "widgets."+widgets.Group)
	createCRD(t, definition)
	seen2 := createWidget(t, widgets, namespace, "w")
	testcluster.Eventually(t, 30*time.Second, func() error {
		if got, ok := m.Get(widgets, namespace, "w"); !ok || got.GetUID() != seen2.GetUID() {
			return errors.New("the new object is not in the cache")
		}
		return nil
	})
	remove(t, crdResource, "", "widgets."+widgets.Group)
	eventually(t, 15*time.Second, m, widgets, Waiting, "not served")
	if lines := logs.matching("customresourcedefinitions"); len(lines) > 0 {
		t.Errorf("polling is not quiet: %q", lines)
	}
}

// One dead aggregated API breaks neither discovery nor running informers (case DSC-04).
func TestDeadAggregatedAPI(t *testing.T) {
	namespace := testcluster.Namespace(t)
	dead := schema.GroupVersionResource{Group: "dead.example.com", Version: "v1", Resource: "things"}
	create(t, apiServices, "", map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.dead.example.com"},
		"spec": map[string]any{
			"group": dead.Group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": namespace, "name": "missing"},
		},
	})
	t.Cleanup(func() { remove(t, apiServices, "", "v1.dead.example.com") })
	m, _, _ := run(t, Options{Config: testcluster.Start(t).AdminConfig(), DiscoveryInterval: time.Second}, configmaps, dead)
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 20*time.Second, m, dead, Waiting, "discovery of dead.example.com/v1 failed")
	if !m.Discovered() {
		t.Error("Discovered is false")
	}
	seen(t, m, configmaps, create(t, configmaps, namespace, configMapNamed("a")))
}

// A CRD whose conversion webhook is missing fails alone, and recovers when the webhook is no longer asked (DSC-06).
func TestBrokenConversion(t *testing.T) {
	namespace := testcluster.Namespace(t)
	definition, v1 := customResource(t)
	createCRD(t, definition)
	createWidget(t, v1.GroupResource().WithVersion("v1"), namespace, "w")
	patch := func(body string) {
		t.Helper()
		if _, err := testcluster.Dynamic(t).Resource(crdResource).Patch(t.Context(), "widgets."+v1.Group,
			"application/merge-patch+json", []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec": {"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
		"clientConfig": {"service": {"namespace": "default", "name": "missing"}}}}}}`)
	v1alpha1 := v1.GroupResource().WithVersion("v1alpha1")
	testcluster.Eventually(t, 30*time.Second, func() error { // the API server takes a moment
		if _, err := testcluster.Dynamic(t).Resource(v1alpha1).List(t.Context(), metav1.ListOptions{}); err == nil {
			return errors.New("it is converted without the webhook")
		}
		return nil
	})
	m, _, _ := run(t, Options{Config: testcluster.Start(t).AdminConfig()}, configmaps, v1alpha1)
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 30*time.Second, m, v1alpha1, Failing, "HTTP 500")
	patch(`{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`)
	eventually(t, 30*time.Second, m, v1alpha1, Synced, "")
}

// What may not be listed is named, parks nobody else, and starts by itself when the Role comes (case RBC-01).
func TestForbiddenThenGranted(t *testing.T) {
	namespace := testcluster.Namespace(t)
	secret := create(t, secrets, namespace, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}})
	grant(t, "reader", "", "", "configmaps")
	m, logs, _ := run(t, Options{Config: user(t, "reader")}, configmaps, secrets)
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 10*time.Second, m, secrets, Forbidden, "list secrets at cluster scope")
	seen(t, m, configmaps, create(t, configmaps, namespace, configMapNamed("a")))
	grant(t, "reader", "", "", "secrets")
	eventually(t, 25*time.Second, m, secrets, Synced, "")
	seen(t, m, secrets, secret)
	if lines := logs.matching(`"secrets"`); len(lines) != 2 { // forbidden, synced
		t.Errorf("%d log lines, want 2:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// Limited to namespaces, each has its own informer and its own state, and nothing cluster-wide is asked (RBC-02).
func TestNamespaces(t *testing.T) {
	a, b, other := testcluster.Namespace(t), testcluster.Namespace(t), testcluster.Namespace(t)
	grant(t, "team", a, "", "configmaps")
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	m, _, _ := run(t, Options{Config: user(t, "team"), Namespaces: []string{b, a}}, configmaps, nodes)

	inA := create(t, configmaps, a, configMapNamed("x"))
	create(t, configmaps, other, configMapNamed("x"))
	seen(t, m, configmaps, inA)
	byNamespace := func(namespace string) Status {
		for _, s := range m.Status() {
			if s.Resource == configmaps && s.Namespace == namespace {
				return s
			}
		}
		return Status{}
	}
	testcluster.Eventually(t, 10*time.Second, func() error {
		if inA, inB := byNamespace(a), byNamespace(b); inA.State != Synced || inB.State != Forbidden ||
			inB.Reason != fmt.Sprintf("list configmaps in namespace %q", b) {
			return fmt.Errorf("a: %+v, b: %+v", inA, inB)
		}
		return nil
	})
	if m.Synced(configmaps) {
		t.Error("Synced although one namespace is not")
	}
	if s := stateOf(m, nodes); s.State != Forbidden || !strings.Contains(s.Reason, "cluster-scoped, which is not read with --namespace "+min(a, b)+","+max(a, b)) {
		t.Errorf("nodes: %+v", s)
	}
	if _, ok := m.Get(configmaps, other, "x"); ok {
		t.Error("an object of another namespace is in the cache")
	}
	grant(t, "team", b, "", "configmaps")
	seen2 := create(t, configmaps, b, configMapNamed("y"))
	testcluster.Eventually(t, 25*time.Second, func() error {
		if _, ok := m.Get(configmaps, b, seen2.GetName()); !ok || !m.Synced(configmaps) {
			return errors.New("the second namespace has not recovered")
		}
		return nil
	})
}

// Two groups with the same kind and plural do not get mixed up (case DSC-08).
func TestSameKindInTwoGroups(t *testing.T) {
	namespace := testcluster.Namespace(t)
	definition, one := customResource(t)
	createCRD(t, definition)
	two := one
	two.Group = "other." + one.Group
	other := runtimeCopy(definition)
	other["metadata"] = map[string]any{"name": "widgets." + two.Group}
	other["spec"].(map[string]any)["group"] = two.Group
	createCRD(t, other)
	m, _, _ := run(t, Options{Config: testcluster.Start(t).AdminConfig()}, two)
	createWidget(t, one, namespace, "only-in-one")
	seen(t, m, two, createWidget(t, two, namespace, "a"))
	if len(m.List(one)) != 0 || len(m.Keys(two)) != 1 {
		t.Errorf("%d and %d objects, want 0 and 1", len(m.List(one)), len(m.Keys(two)))
	}
}

// Stopping leaves nothing behind: neither one resource, nor the whole Manager.
func TestNothingLeaks(t *testing.T) {
	config := testcluster.Start(t).AdminConfig()
	definition, widgets := customResource(t)
	settled := func(most int, what string) int {
		t.Helper()
		n := 0
		testcluster.Eventually(t, 20*time.Second, func() error {
			if n = runtime.NumGoroutine(); n > most {
				buffer := make([]byte, 1<<20)
				return fmt.Errorf("%s: %d goroutines, want at most %d:\n%s", what, n, most, buffer[:runtime.Stack(buffer, true)])
			}
			return nil
		})
		return n
	}
	before := runtime.NumGoroutine()
	m, _, stop := run(t, Options{Config: config}, configmaps, secrets)
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 10*time.Second, m, secrets, Synced, "")
	testcluster.Eventually(t, 10*time.Second, func() error {
		m.mu.RLock()
		defer m.mu.RUnlock()
		if !m.world.crdsLive {
			return errors.New("CRDs are not watched")
		}
		return nil
	})
	running := settled(runtime.NumGoroutine(), "before the CRD")
	m.Use([]schema.GroupVersionResource{configmaps, secrets, widgets})
	createCRD(t, definition)
	eventually(t, 10*time.Second, m, widgets, Synced, "")
	remove(t, crdResource, "", "widgets."+widgets.Group)
	eventually(t, 10*time.Second, m, widgets, Waiting, "")
	settled(running+2, "after the CRD has gone")
	m.Use([]schema.GroupVersionResource{configmaps})
	stop()
	if got := m.Status(); len(got) != 1 || got[0].Reason != "stopped" || len(m.Keys(configmaps)) != 0 {
		t.Errorf("after the stop: %+v", got)
	}
	settled(before+2, "after the stop")
}

// The API server crashes and comes back: caches are kept meanwhile, and watches go on where they were.
func TestAPIServerRestart(t *testing.T) {
	plane := testcluster.Start(t)
	namespace := testcluster.Namespace(t)
	definition, widgets := customResource(t)
	createCRD(t, definition)
	m, _, _ := run(t, Options{Config: plane.AdminConfig()}, configmaps, widgets)
	kept := create(t, configmaps, namespace, configMapNamed("a"))
	seen(t, m, configmaps, kept)
	eventually(t, 10*time.Second, m, widgets, Synced, "")
	if err := plane.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, m, configmaps, Failing, "connection refused")
	if _, ok := m.Get(configmaps, namespace, "a"); !ok || !m.Synced(configmaps) {
		t.Error("the cache was lost with the API server")
	}
	if err := plane.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, m, configmaps, Synced, "")
	eventually(t, 30*time.Second, m, widgets, Synced, "")
	seen(t, m, configmaps, create(t, configmaps, namespace, configMapNamed("b")))
}

// The table of built-in kinds says what the real API server says about itself, with all of its APIs switched on.
func TestBuiltinTable(t *testing.T) {
	testcluster.RequireVersion(t, "1.37", "the table is that of 1.37: older ones serve less")
	plane, err := controlplane.Start(t.Context(), controlplane.Options{APIServerArgs: map[string][]string{
		"runtime-config": {"api/all=true"},
		"feature-gates":  {"AllAlpha=true,AllBeta=true"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	m, _, _ := run(t, Options{Config: plane.AdminConfig()})
	testcluster.Eventually(t, 10*time.Second, func() error {
		if !m.Discovered() {
			return errors.New("not discovered")
		}
		return nil
	})
	m.mu.RLock()
	served := m.world.discovered.resources
	m.mu.RUnlock()
	missing := maps.Clone(builtinKinds)
	for gvr, r := range served {
		gk := schema.GroupKind{Group: gvr.Group, Kind: r.info.Kind}
		delete(missing, gk)
		if !r.watchable && gk.Kind != "ComponentStatus" {
			continue // not stored: reviews, bindings
		}
		b, ok := builtinKinds[gk]
		if !ok {
			t.Errorf("%s (%s) is not in builtinTable", r.info.Kind, gvr)
			continue
		}
		want := builtin{gvr.Resource, r.info.Namespaced, r.info.HasStatus, r.info.HasScale}
		if b != want {
			t.Errorf("%s of %s is %+v in builtinTable, the API server says %+v", r.info.Kind, gvr, b, want)
		}
		if r.info.HasScale && r.info.ReplicasPath == nil {
			t.Errorf("%s has /scale and no ReplicasPath", gvr)
		}
	}
	for gk := range missing {
		t.Errorf("%s is in builtinTable, but not served", gk)
	}
}
