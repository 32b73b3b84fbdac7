package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configmaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	eventsGVR   = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// fixture is one engine on the shared API server, under a user of its own, so
// that the audit log tells its requests from all others.
type fixture struct {
	*testing.T
	cp     *controlplane.ControlPlane
	client dynamic.Interface // the administrator's
	ns     string
	user   string
	engine *Engine
	stop   func()
	logs   *lines // of f.captureLogs; nil: the test's own log
}

var users atomic.Int64

// newFixture prepares a namespace, but starts no engine yet.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, cp: testcluster.Start(t), client: testcluster.Dynamic(t), ns: testcluster.Namespace(t)}
	f.user = fmt.Sprintf("engine-%d", users.Add(1))
	return f
}

// start runs an engine that may do everything, with these rules; NS in them
// stands for the test's namespace.
func (f *fixture) start(ruleYAML ...string) *fixture {
	f.Helper()
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		f.Fatal(err)
	}
	return f.startAs(config, Options{}, ruleYAML...)
}

func (f *fixture) startAs(config *rest.Config, opts Options, ruleYAML ...string) *fixture {
	f.Helper()
	return f.run(f.options(config, opts, ruleYAML...))
}

// run runs an engine with these options until the test or f.stop ends it.
func (f *fixture) run(opts Options) *fixture {
	f.Helper()
	e, err := New(opts)
	if err != nil {
		f.Fatal(err)
	}
	_, ctx := ktesting.NewTestContext(f)
	switch {
	case f.logs != nil:
		ctx = klog.NewContext(ctx, f.logs.logger(0))
	case capturing.Load():
		ctx = klog.NewContext(ctx, klog.Background())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stopped := false
	f.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.Errorf("the engine ended with: %v", err)
			}
		case <-time.After(40 * time.Second):
			f.Error("the engine does not stop")
		}
	}
	f.Cleanup(f.stop)
	f.engine = e
	return f
}

func (f *fixture) options(config *rest.Config, opts Options, ruleYAML ...string) Options {
	f.Helper()
	var sources []rules.Source
	for i, y := range ruleYAML {
		y = strings.ReplaceAll(y, "NS", f.ns)
		sources = append(sources, rules.Source{Name: fmt.Sprintf("rule-%d.yaml", i), Data: []byte(y)})
	}
	set, problems := rules.Load(sources...)
	for _, p := range problems {
		f.Fatal(p.Detail())
	}
	opts.Config, opts.Rules, opts.QPS = config, set, -1
	return opts
}

// rule writes a rule file: its spec in YAML, limited to the test's namespace
// unless it says otherwise.
func rule(name, spec string) string {
	spec = strings.TrimSpace(spec)
	if !strings.Contains(spec, "match:") {
		spec += "\nmatch: {namespaces: [NS]}"
	}
	return "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n  " +
		strings.ReplaceAll(spec, "\n", "\n  ") + "\n"
}

func expectedReplicas(t *testing.T) string {
	source, err := builtin.Source(builtin.Default)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(source.Data), "  variables:", "  match: {namespaces: [NS]}\n  variables:", 1)
}

// object reads an object from YAML, in the test's namespace.
func (f *fixture) object(y string, args ...any) *unstructured.Unstructured {
	f.Helper()
	data, err := yaml.YAMLToJSON([]byte(fmt.Sprintf(y, args...)))
	if err != nil {
		f.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		f.Fatal(err)
	}
	u.SetNamespace(f.ns)
	return u
}

func (f *fixture) create(gvr schema.GroupVersionResource, y string, args ...any) *unstructured.Unstructured {
	f.Helper()
	created, err := f.client.Resource(gvr).Namespace(f.ns).Create(f.Context(), f.object(y, args...), metav1.CreateOptions{})
	if err != nil {
		f.Fatalf("create: %v", err)
	}
	return created
}

func (f *fixture) get(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	f.Helper()
	u, err := f.client.Resource(gvr).Namespace(f.ns).Get(f.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.Fatalf("get: %v", err)
	}
	return u
}

func (f *fixture) merge(gvr schema.GroupVersionResource, name, patch string, subresources ...string) {
	f.Helper()
	_, err := f.client.Resource(gvr).Namespace(f.ns).Patch(f.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		f.Fatalf("patch %s: %v", name, err)
	}
}

const deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  annotations: {example.io/expected-replicas: "%s"}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "registry.example/web:1"}
`

// soon is a second on a machine that does nothing else; test machines do. It is for
// what must come, however late.
const soon = 30 * time.Second

// eventually waits until a field of an object has a value.
func (f *fixture) eventually(timeout time.Duration, gvr schema.GroupVersionResource, name string, want any, path ...string) {
	f.Helper()
	testcluster.Eventually(f, timeout, func() error {
		u, err := f.client.Resource(gvr).Namespace(f.ns).Get(f.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...); got != want {
			return fmt.Errorf("%s: %s is %v, not %v", name, strings.Join(path, "."), got, want)
		}
		return nil
	})
}

// requests returns the engine's requests to a resource, in order.
func (f *fixture) requests(resource string) []controlplane.AuditEvent {
	f.Helper()
	events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return e.User.Username == f.user && e.ObjectRef.Resource == resource && e.Verb != "list" && e.Verb != "watch"
	})
	if err != nil {
		f.Fatal(err)
	}
	return events
}

// writes counts the engine's requests to objects of a resource, and fails the
// test if there is anything but PATCH with uid and resourceVersion.
func (f *fixture) writes(resource string) (accepted, all int) {
	f.Helper()
	for _, e := range f.requests(resource) {
		if e.Verb != "patch" {
			f.Errorf("the engine sent a %s to %s", e.Verb, e.RequestURI)
			continue
		}
		if e.ResponseStatus.Code != 403 && !guarded(e.RequestObject) { // a 403 is answered before the body is read
			f.Errorf("a PATCH without uid and resourceVersion: %s", e.RequestObject)
		}
		all++
		if e.ResponseStatus.Code == 200 {
			accepted++
		}
	}
	return accepted, all
}

// answered counts the engine's requests that got an answer with a code.
func (f *fixture) answered(resource string, code int32) int {
	f.Helper()
	n := 0
	for _, e := range f.requests(resource) {
		if e.ResponseStatus.Code == code {
			n++
		}
	}
	return n
}

func guarded(body json.RawMessage) bool {
	return strings.Contains(string(body), "resourceVersion") && strings.Contains(string(body), "uid")
}

// settle proves that the engine has nothing more to do: a canary that was
// drifted after everything else is right, and then nothing happens for a
// while.
func (f *fixture) settle(resource string) {
	f.Helper()
	const quiet = time.Second
	_, before := f.writes(resource)
	since := time.Now()
	testcluster.Eventually(f, time.Minute, func() error {
		if _, now := f.writes(resource); now != before {
			before, since = now, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("the engine still sends requests: %d so far", before)
		}
		return nil
	})
}

// eventsOn returns the events on an object: reason and note.
func (f *fixture) eventsOn(name string) []string {
	f.Helper()
	list, err := f.client.Resource(eventsGVR).Namespace(f.ns).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.Object["reportingController"] != ReportingController {
			continue // the API server writes Events too: about a Service whose address it repairs
		}
		about, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
		if about == name {
			out = append(out, fmt.Sprintf("%s %s: %s", e.Object["type"], e.Object["reason"], e.Object["note"]))
		}
	}
	return out
}

func (f *fixture) wantEvent(name, want string) {
	f.Helper()
	f.wantEventWithin(soon, name, want)
}

func (f *fixture) wantEventWithin(timeout time.Duration, name, want string) {
	f.Helper()
	testcluster.Eventually(f, timeout, func() error {
		got := f.eventsOn(name)
		for _, e := range got {
			if strings.Contains(e, want) {
				return nil
			}
		}
		return fmt.Errorf("no event %q on %s; there are %q", want, name, got)
	})
}

// readyz asks the engine for its readiness.
func (f *fixture) readyz() (code int, body string) {
	w := httptest.NewRecorder()
	f.engine.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	return w.Code, w.Body.String()
}

func (f *fixture) wantReadyz(timeout time.Duration, want ...string) {
	f.Helper()
	testcluster.Eventually(f, timeout, func() error {
		_, body := f.readyz()
		for _, w := range want {
			if !strings.Contains(body, w) {
				return fmt.Errorf("readyz has no %q:\n%s", w, body)
			}
		}
		return nil
	})
}
