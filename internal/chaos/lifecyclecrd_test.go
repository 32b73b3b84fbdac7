package chaos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// custom is a custom resource of the lab's own: widgets, whose spec.is has to
// follow spec.want.
type custom struct {
	*lab
	resource schema.GroupVersionResource // v1
}

func (l *lab) custom() *custom {
	return &custom{l, schema.GroupVersionResource{Group: l.ns + ".example.io", Version: "v1", Resource: "widgets"}}
}

// rule is the one that a version of the resource has to follow.
func (c *custom) rule(version string) string {
	return fmt.Sprintf(`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: widgets}
spec:
  resource: {group: %s, version: %s, resource: widgets}
  match: {namespaces: [NS]}
  condition: object.spec.?want.hasValue() && object.spec.?is.orValue('') != object.spec.want
  patch: {merge: {spec: {is: "${object.spec.want}"}}}
`, c.resource.Group, version)
}

// plain is the schema of a version, and graded another one.
var (
	plain  = map[string]any{"want": map[string]any{"type": "string"}, "is": map[string]any{"type": "string"}}
	graded = map[string]any{"want": map[string]any{"type": "string"}, "is": map[string]any{"type": "string", "maxLength": int64(20)},
		"grade": map[string]any{"type": "integer", "default": int64(1)}}
)

// version is one of a CRD.
func crdVersion(name string, stored bool, properties map[string]any) map[string]any {
	return map[string]any{"name": name, "served": true, "storage": stored, "schema": map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
	}}}
}

// install creates the CRD.
func (c *custom) install(conversion map[string]any, versions ...any) {
	c.Helper()
	spec := map[string]any{
		"group": c.resource.Group, "scope": "Namespaced",
		"names":    map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
		"versions": versions,
	}
	if conversion != nil {
		spec["conversion"] = conversion
	}
	c.create(crds, "", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": c.name()}, "spec": spec,
	}})
}

func (c *custom) name() string { return c.resource.GroupResource().String() }

// uninstall deletes the CRD, and returns when it has gone with all objects.
func (c *custom) uninstall() {
	c.Helper()
	if err := c.client.Resource(crds).Delete(c.Context(), c.name(), metav1.DeleteOptions{}); err != nil {
		c.Fatalf("delete the CRD: %v", err)
	}
	testcluster.Eventually(c, 2*time.Minute, func() error {
		if _, err := c.client.Resource(crds).Get(c.Context(), c.name(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the CRD is still there (%v)", err)
		}
		return nil
	})
}

// fill creates widgets of a version, w-0, w-1, …, that want a value. A CRD that
// has only just been created is not served at once.
func (c *custom) fill(n int, version, want string) {
	c.Helper()
	objects := c.client.Resource(c.resource.GroupResource().WithVersion(version)).Namespace(c.ns)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error {
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				_, err := objects.Create(c.Context(), &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": c.resource.Group + "/" + version, "kind": "Widget",
					"metadata": map[string]any{"name": fmt.Sprintf("w-%d", i)},
					"spec":     map[string]any{"want": want},
				}}, metav1.CreateOptions{})
				if err == nil || time.Now().After(deadline) {
					return err
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		c.Fatalf("create widgets: %v", err)
	}
}

// right waits until that many widgets are as they should be.
func (c *custom) right(timeout time.Duration, n int, version, want string) time.Duration {
	c.Helper()
	began := time.Now()
	objects := c.client.Resource(c.resource.GroupResource().WithVersion(version)).Namespace(c.ns)
	testcluster.Eventually(c, timeout, func() error {
		list, err := objects.List(c.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		right := 0
		for _, u := range list.Items {
			if is, _, _ := unstructured.NestedString(u.Object, "spec", "is"); is == want {
				right++
			}
		}
		if right < n {
			return fmt.Errorf("%d of %d widgets are right", right, n)
		}
		return nil
	})
	return time.Since(began)
}

// replaceCRD deletes the CRD while fixes of n objects are on their way, and
// creates it again with objects of the same names.
func replaceCRD(t *trial, n, rounds int) {
	l := t.shared()
	l.logs = &logLines{}
	c := l.custom()
	p := l.start(nil, follow, c.rule("v1"))
	bird := &canary{patient: p}
	bird.sing()
	p.wantReady(time.Minute, "v1/widgets: WaitingForResource: not served by the cluster; parked: widgets")
	v1 := crdVersion("v1", true, plain)
	c.install(nil, v1)
	p.wantReady(time.Minute, "v1/widgets: synced")
	before := p.rest()

	for round := range rounds {
		c.fill(n, "v1", fmt.Sprintf("%d-lost", round))
		c.right(time.Minute, n/10, "v1", fmt.Sprintf("%d-lost", round)) // the others are on their way
		c.uninstall()
		bird.sing()
		switch round {
		case 1:
			p.wantReady(time.Minute, "v1/widgets: WaitingForResource: ")
			bird.sing()
		case 2:
			v1 = crdVersion("v1", true, graded)
		case 3:
			c.install(nil, crdVersion("v2", true, plain))
			c.fill(n, "v2", "untouched")
			p.wantReady(time.Minute, "v1/widgets: WaitingForResource: version not served (available: v2); parked: widgets")
			bird.sing()
			c.uninstall()
		}
		c.install(nil, v1)
		want := fmt.Sprintf("%d-kept", round)
		c.fill(n, "v1", want)
		l.saw("round %d: %d new objects right after %.1f s", round+1, n, c.right(2*time.Minute, n, "v1", want).Seconds())
		bird.sing()
		if round < rounds-1 {
			c.uninstall()
			c.install(nil, v1)
		}
	}
	bird.end()

	if accepted, all := p.writes("widgets"); all > 2*(2*rounds*n) || accepted > 2*rounds*n {
		l.Errorf("%d PATCHes, %d accepted, for %d objects", all, accepted, 2*rounds*n)
	}
	for _, e := range p.requests("widgets") {
		if e.ObjectRef.APIVersion == "v2" {
			l.Errorf("a %s of %s, which no rule names", e.Verb, e.RequestURI)
		}
	}
	took := time.Since(before.at)
	p.wantLines(c.name()+`" version`, 5*(2+int(took/time.Minute))) // at most 5 a minute
	p.wantLines("Sync failed", 2*rounds*n/10)
	changes := 4 * rounds // of the CRD, at most
	p.judge(before, bounds{
		"list *": 2 * changes, "stream *": 4 * changes, "watch *": 6 * changes,
		"discovery":     2 * (int(took/(10*time.Second)) + int(took/time.Second) + 1),
		"patch widgets": 2 * (2 * rounds * n),
		"patch *":       2*rounds*n + 10*rounds,
		"create *":      2*rounds*n + 10*rounds,
	})
}

// deadAggregatedAPI has an APIService that answers nothing (case DSC-04).
func deadAggregatedAPI(t *trial) {
	l := t.shared()
	l.logs = &logLines{}
	group := l.ns + ".example.net"
	apiServices := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	declare := func(version string) {
		l.Cleanup(func() {
			if err := l.client.Resource(apiServices).Delete(context.Background(), version+"."+group, metav1.DeleteOptions{}); err != nil {
				l.Error(err)
			}
		})
		l.create(apiServices, "", &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + "." + group},
			"spec": map[string]any{
				"group": group, "version": version, "groupPriorityMinimum": int64(100), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
				"service": map[string]any{"namespace": l.ns, "name": "missing"},
			},
		}})
	}
	declare("v1")
	things := strings.NewReplacer("name: follow", "name: things", "{version: v1, resource: configmaps}", "{group: "+group+", version: v1, resource: things}").Replace(follow)
	p := l.start(nil, follow, things)
	bird := &canary{patient: p}
	bird.sing()
	p.wantReady(time.Minute, group+"/v1/things: WaitingForResource: discovery of "+group+"/v1 failed; parked: things", "v1/configmaps: synced")
	before := p.rest()
	declare("v2")
	for range 5 {
		bird.sing()
	}
	p.wantReady(time.Minute, "v1/configmaps: synced")
	bird.end()
	p.wantLines(group, 5)
	took := time.Since(before.at)
	p.judge(before, bounds{"discovery": 2 * (int(took/(10*time.Second)) + 2), "patch *": 10, "create *": 10})
}
