package chaos

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
)

var (
	configmaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// trial is one run of a scenario.
type trial struct {
	*testing.T
	began    time.Time
	happened []string // for the table
	ended    bool
}

// saw notes what happened, for the table.
func (t *trial) saw(format string, args ...any) {
	t.happened = append(t.happened, fmt.Sprintf(format, args...))
}

// lab is a control plane, and a namespace in it for one trial.
type lab struct {
	*trial
	cp     *controlplane.ControlPlane
	client dynamic.Interface // the administrator's
	ns     string
	// logHasHoles: the API server was killed, and what it was just doing is not
	// in its audit log.
	logHasHoles bool
	// logs takes what engines log from their start on; nil: it goes to the test.
	logs *logLines
}

// shared is a lab on the control plane that all trials share: for faults that
// hurt nobody else.
func (t *trial) shared() *lab {
	t.Helper()
	return t.newLab(testcluster.Start(t))
}

// own is a lab with a control plane of its own, with an audit log.
func (t *trial) own(opts controlplane.Options) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	opts.Audit = true
	cp, err := controlplane.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return t.newLab(cp)
}

var labs atomic.Int64

func (t *trial) newLab(cp *controlplane.ControlPlane) *lab {
	t.Helper()
	client, err := dynamic.NewForConfig(cp.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{trial: t, cp: cp, client: client, ns: fmt.Sprintf("chaos-%d", labs.Add(1))}
	l.create(namespaces, "", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": l.ns},
	}})
	return l
}

// object reads an object from JSON.
func (l *lab) object(j string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(j)); err != nil {
		panic(fmt.Sprintf("%s: %v", j, err)) // a mistake in the test
	}
	return u
}

func (l *lab) create(resource schema.GroupVersionResource, namespace string, object *unstructured.Unstructured) *unstructured.Unstructured {
	l.Helper()
	created, err := l.client.Resource(resource).Namespace(namespace).Create(l.Context(), object, metav1.CreateOptions{})
	if err != nil {
		l.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return created
}

// patient is a Rectifier under test, as a user of its own, so that the audit log
// tells its requests from all others.
type patient struct {
	*lab
	user    string
	engine  *engine.Engine
	traffic *traffic // what it sends
	stop    func()   // and wait until it has ended

	goroutinesBefore int // of engines, before it was started
}

// follow is the rule of most scenarios: data.is of a ConfigMap has to follow
// data.want.
const follow = `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: follow}
spec:
  resource: {version: v1, resource: configmaps}
  match: {namespaces: [NS]}
  condition: object.?data.want.hasValue() && object.data.?is.orValue('') != object.data.want
  patch: {merge: {data: {is: "${object.data.want}"}}}
`

// user gives a config for a fresh user who may do everything.
func (l *lab) user() (string, *rest.Config) {
	l.Helper()
	name := fmt.Sprintf("rectifier-%d", labs.Add(1))
	config, err := l.cp.User(name, "system:masters")
	if err != nil {
		l.Fatal(err)
	}
	return name, config
}

// start runs an engine in this process; NS in the rules stands for the
// namespace of the lab. change may alter the options.
func (l *lab) start(change func(*engine.Options), ruleYAML ...string) *patient {
	l.Helper()
	p := &patient{lab: l, traffic: &traffic{}, goroutinesBefore: goroutines()}
	var opts engine.Options
	p.user, opts.Config = l.user()
	opts.Config.Wrap(p.traffic.wrap)
	opts.Rules, opts.QPS = l.rules(ruleYAML...), -1
	if change != nil {
		change(&opts)
	}
	e, err := engine.New(opts)
	if err != nil {
		l.Fatal(err)
	}
	p.engine = e
	_, ctx := ktesting.NewTestContext(l.T)
	if l.logs != nil {
		ctx = klog.NewContext(ctx, l.logs.logger())
	}
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx)))
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stopped := false
	p.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				l.Errorf("the engine ended with: %v", err)
			}
		case <-time.After(time.Minute):
			l.Error("the engine does not stop")
		}
	}
	l.Cleanup(p.stop)
	return p
}

func (l *lab) rules(ruleYAML ...string) *rules.Set {
	l.Helper()
	set, err := loadRules(l.here(ruleYAML...))
	if err != nil {
		l.Fatal(err)
	}
	return set
}

// here puts the namespace of the lab for NS.
func (l *lab) here(ruleYAML ...string) []string {
	out := make([]string, len(ruleYAML))
	for i, y := range ruleYAML {
		out[i] = strings.ReplaceAll(y, "NS", l.ns)
	}
	return out
}

// drift makes n ConfigMaps want a value, those that are missing are created:
// names are cm-0, cm-1, ….
func (l *lab) drift(n int, want string) {
	l.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return l.driftOne(i, want) })
	}
	if err := group.Wait(); err != nil {
		l.Fatalf("drift: %v", err)
	}
}

func (l *lab) driftOne(i int, want string) error {
	name := fmt.Sprintf("cm-%d", i)
	_, err := l.client.Resource(configmaps).Namespace(l.ns).Patch(l.Context(), name, types.ApplyPatchType, fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"want":%q}}`, name, want),
		metav1.PatchOptions{FieldManager: "drift"})
	return err
}

// allRight waits until every ConfigMap of drift is as it should be, and returns
// how long that took.
func (l *lab) allRight(timeout time.Duration, n int, want string) time.Duration {
	l.Helper()
	began := time.Now()
	l.atLeastRight(timeout, n, want)
	return time.Since(began)
}

// atLeastRight waits until that many of them are.
func (l *lab) atLeastRight(timeout time.Duration, n int, want string) {
	l.Helper()
	testcluster.Eventually(l, timeout, func() error {
		right, err := l.right(want)
		if err == nil && right < n {
			err = fmt.Errorf("%d of %d are right", right, n)
		}
		return err
	})
}

// right counts the ConfigMaps of drift that are as they should be.
func (l *lab) right(want string) (n int, err error) {
	list, err := l.client.Resource(configmaps).Namespace(l.ns).List(l.Context(), metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, u := range list.Items {
		if is, _, _ := unstructured.NestedString(u.Object, "data", "is"); is == want {
			n++
		}
	}
	return n, nil
}

// pause lets a fault last.
func (l *lab) pause(d time.Duration) {
	select {
	case <-l.Context().Done():
	case <-time.After(d):
	}
}

// touch writes to a ConfigMap of drift what no rule reads.
func (l *lab) touch(i int) {
	l.Helper()
	l.merge(configmaps, l.ns, fmt.Sprintf("cm-%d", i), fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, labs.Add(1)))
}

func (l *lab) merge(resource schema.GroupVersionResource, namespace, name, patch string) {
	l.Helper()
	_, err := l.client.Resource(resource).Namespace(namespace).Patch(l.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		l.Fatalf("patch %s %s: %v", resource.Resource, name, err)
	}
}

// readyz is what the engine's /readyz reports.
func (p *patient) readyz() string {
	w := httptest.NewRecorder()
	p.engine.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	return w.Body.String()
}

// requests returns what the audit log holds of the patient's requests to a
// resource.
func (p *patient) requests(resource string) []controlplane.AuditEvent {
	p.Helper()
	return p.requestsOf(p.user, resource)
}

func (l *lab) requestsOf(user, resource string) []controlplane.AuditEvent {
	l.Helper()
	events, err := l.cp.AuditEvents(func(e *controlplane.AuditEvent) bool {
		return e.User.Username == user && e.ObjectRef.Resource == resource
	})
	if err != nil {
		l.Fatal(err)
	}
	return events
}

// writes counts the patient's PATCH requests to a resource, and fails the trial
// if it sent any other write, or one without uid and resourceVersion.
func (p *patient) writes(resource string) (accepted, all int) {
	p.Helper()
	for _, e := range p.requests(resource) {
		switch e.Verb {
		case "get", "list", "watch":
			continue
		case "patch":
		default:
			p.Errorf("it sent a %s to %s", e.Verb, e.RequestURI)
			continue
		}
		body := string(e.RequestObject)
		if body != "" && (!strings.Contains(body, "resourceVersion") || !strings.Contains(body, "uid")) {
			p.Errorf("a PATCH without uid and resourceVersion: %s", body)
		}
		all++
		if e.ResponseStatus.Code == 200 {
			accepted++
		}
	}
	return accepted, all
}
