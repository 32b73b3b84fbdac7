package engine

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// gate holds reads of a resource back while it is closed.
type gate struct {
	resource string
	closed   atomic.Pointer[chan struct{}] // nil: open
	waited   atomic.Int32                  // requests that had to wait
}

func (g *gate) close() {
	opened := make(chan struct{})
	g.closed.Store(&opened)
}

func (g *gate) open() { close(*g.closed.Swap(nil)) }

func (g *gate) pass(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if opened := g.closed.Load(); opened != nil && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+g.resource) {
		g.waited.Add(1)
		select {
		case <-*opened:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return next.RoundTrip(r)
}

// CRDs that are read late tell where /scale keeps the replicas while the informer
// of the resource runs: rules that waited for it then run.
func TestTheReplicasPathComesLate(t *testing.T) {
	f := newFixture(t)
	group := f.ns + ".example.io"
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	f.crd(group, `    subresources:
      scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}`)
	f.create(widgets, `{apiVersion: %s/v1, kind: Widget, metadata: {name: w}, spec: {copies: 1}}`, group)
	crdsComeLate := &gate{resource: crds.Resource}
	crdsComeLate.close()
	f.startAs(f.between(crdsComeLate.pass), Options{}, rule("scale", fmt.Sprintf(`
resource: {group: %s, version: v1, resource: widgets}
patch: {subresource: scale, merge: {spec: {replicas: 4}}}`, group)))
	f.wantReadyz(15*time.Second, "widgets: synced, 1 object", "rule scale on "+group+"/v1/widgets: parked: ")
	f.quietQueue()
	f.wantWrites("widgets", 0)
	crdsComeLate.open()
	f.eventually(15*time.Second, widgets, "w", int64(4), "spec", "copies")
	f.wantWrites("widgets", 1)
}

// While the objects are read again for a rule that reads managedFields, the
// others go on with the cache they have, and the rule waits.
func TestOtherRulesGoOnWhileManagedFieldsAreRead(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {some: owner}}`)
	lists := &gate{resource: configmaps.Resource}
	f.startAs(f.between(lists.pass), Options{}, valueRule("one"))
	f.eventually(10*time.Second, configmaps, "c", "one", "data", "value")
	f.wantReadyz(10*time.Second, "configmaps: synced")
	lists.close()
	f.reload(valueRule("one"), rule("unowned", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?managedFields.orValue([]).size() == 0
patch: {merge: {data: {unowned: "yes"}}}`), rule("owned", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?managedFields.orValue([]).size() > 0
patch: {merge: {data: {owned: "yes"}}}`))
	testcluster.Eventually(t, 10*time.Second, func() error {
		if lists.waited.Load() == 0 {
			return fmt.Errorf("nothing is read")
		}
		return nil
	})
	f.wantReadyz(0, "configmaps: synced", "rule owned on v1/configmaps: parked: it needs fields of v1/configmaps")
	if code, body := f.readyz(); code != http.StatusOK || strings.Contains(body, "rule value on") {
		t.Errorf("readyz: %d\n%s", code, body)
	}
	f.merge(configmaps, "c", `{"data":{"value":"drifted"}}`)
	f.eventually(10*time.Second, configmaps, "c", "one", "data", "value")
	f.quietQueue()
	if data := f.get(configmaps, "c").Object["data"].(map[string]any); data["owned"] != nil || lists.waited.Load() == 0 {
		t.Errorf("a rule that reads managedFields has run: %v", data)
	}
	lists.open()
	f.eventually(10*time.Second, configmaps, "c", "yes", "data", "owned")
	f.settle("configmaps")
	if got := f.get(configmaps, "c").Object["data"].(map[string]any)["unowned"]; got != nil {
		t.Error("an object was taken for one without managedFields")
	}
}

// What is remembered of an object stays when its resource is read again.
func TestHoldsOutliveAReread(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: true, data: {value: two}}`)
	f.start(valueRule("one"))
	f.wantEvent("c", "PatchRefused")
	f.quietQueue()
	testcluster.Eventually(t, 5*time.Second, func() error { return f.remembers(1, 0) })
	before := len(f.requests("configmaps"))
	f.reload(valueRule("one"), rule("owned", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?managedFields.orValue([]).size() == 99
patch: {merge: {data: {owned: "yes"}}}`))
	testcluster.Eventually(t, 10*time.Second, func() error {
		if len(f.engine.survey(f.engine.policy.Load()).lacking) > 0 {
			return fmt.Errorf("not read yet")
		}
		return nil
	})
	f.settle("configmaps")
	if err := f.remembers(1, 0); err != nil {
		t.Error(err)
	}
	if after := len(f.requests("configmaps")); after != before {
		t.Errorf("%d requests for what is held", after-before)
	}
}

// An informer recovers when it has synced, for its own namespace, whatever the
// others do; its objects begin anew with short waits.
func TestRecoveryIsPerNamespace(t *testing.T) {
	opts := (&fixture{T: t, ns: "a"}).options(&rest.Config{Host: "http://127.0.0.1:1"}, Options{Namespaces: []string{"a", "b"}}, valueRule("one"))
	e, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	key := func(namespace string) Key {
		return Key{Resource: configmaps.GroupResource(), Namespace: namespace, Name: "c"}
	}
	failAgain := func(namespace string) {
		s := newObjectState("uid")
		s.delays, s.notBefore = 20, time.Now().Add(time.Hour)
		e.objects.keep(key(namespace), s)
	}
	say := func(namespace string, state gvr.State) {
		e.stateChanged(gvr.Status{Resource: configmaps, Namespace: namespace, State: state})
	}
	check := func(what, namespace string, fails, waits bool) {
		t.Helper()
		d := &decision{Engine: e, view: view{resource: configmaps}, key: key(namespace)}
		if got := d.informerFails(); got != fails {
			t.Errorf("%s: the informer of %s fails: %v, want %v", what, namespace, got, fails)
		}
		s := e.objects.get(key(namespace), "uid")
		if got := s.wait(time.Now()) > 0; got != waits || waits != (s.delays > 0) {
			t.Errorf("%s: the object in %s waits: %v, want %v; %d delays", what, namespace, got, waits, s.delays)
		}
	}
	failAgain("a")
	failAgain("b")
	say("a", gvr.Failing)
	say("b", gvr.Failing)
	say("a", gvr.Synced)
	check("a recovers", "a", false, false)
	check("a recovers", "b", true, true)
	say("b", gvr.Forbidden)
	check("b is forbidden", "b", true, true)
	say("b", gvr.Syncing)
	check("b begins anew", "b", true, true)
	say("b", gvr.Synced)
	check("b recovers", "b", false, false)
	failAgain("a")
	say("b", gvr.Synced)
	check("nothing had failed", "a", false, true)
}

// After an outage the queue retries what fails again as if it had not failed
// before.
func TestRecoveryForgetsTheFailuresInTheQueue(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(f.options(config, Options{}, valueRule("one")))
	if err != nil {
		t.Fatal(err)
	}
	e.startInforming() // and nobody takes from the queue
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.informers.Run(ctx) }()
	defer func() { stop(); <-ended }()
	key := Key{Resource: configmaps.GroupResource(), Namespace: f.ns, Name: "c"}
	testcluster.Eventually(t, 10*time.Second, func() error {
		if _, ok := e.informers.Get(configmaps, f.ns, "c"); !ok || !e.informers.Synced(configmaps) {
			return fmt.Errorf("not synced")
		}
		return nil
	})
	for range 5 {
		e.queue.AddRateLimited(key)
	}
	e.stateChanged(gvr.Status{Resource: configmaps, State: gvr.Failing})
	if got := e.queue.NumRequeues(key); got != 5 {
		t.Errorf("%d failures, want 5", got)
	}
	e.stateChanged(gvr.Status{Resource: configmaps, State: gvr.Synced})
	if got := e.queue.NumRequeues(key); got != 0 {
		t.Errorf("%d failures after the recovery", got)
	}
}
