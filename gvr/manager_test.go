package gvr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// logBuffer collects what a Manager logs.
type logBuffer struct {
	mu    sync.Mutex
	lines []string
}

func (b *logBuffer) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, args)
	}, funcr.Options{})
}

func (b *logBuffer) matching(part string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []string
	for _, line := range b.lines {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// run starts a Manager and stops it at the end of the test. The returned function stops it earlier and waits.
func run(t testing.TB, options Options, inUse ...schema.GroupVersionResource) (*Manager, *logBuffer, func()) {
	t.Helper()
	m, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	m.Use(inUse)
	logs := &logBuffer{}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logs.logger()))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Run has not returned 10 s after its context ended")
		}
	})
	t.Cleanup(stop)
	return m, logs, stop
}

// stateOf returns the state of a resource: that of its first scope.
func stateOf(m *Manager, gvr schema.GroupVersionResource) Status {
	for _, s := range m.Status() {
		if s.Resource == gvr {
			return s
		}
	}
	return Status{}
}

func eventually(t testing.TB, timeout time.Duration, m *Manager, gvr schema.GroupVersionResource, state State, reason string) {
	t.Helper()
	testcluster.Eventually(t, timeout, func() error {
		if s := stateOf(m, gvr); s.State != state || !strings.Contains(s.Reason, reason) {
			return fmt.Errorf("%s is %s (%q), want %s (%q)", gvr.Resource, s.State, s.Reason, state, reason)
		}
		return nil
	})
}

func TestNewErrors(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("New without Config: no error")
	}
	if _, err := New(Options{Config: &rest.Config{}, Namespaces: []string{"a", ""}}); err == nil {
		t.Error("New with an empty namespace: no error")
	}
}

func TestRunOnce(t *testing.T) {
	m, _, stop := run(t, Options{Config: newFakeServer(t, nil).config()})
	testcluster.Eventually(t, 5*time.Second, func() error {
		if !m.Discovered() {
			return errors.New("not discovered")
		}
		return nil
	})
	stop()
	if err := m.Run(t.Context()); err == nil {
		t.Error("second Run: no error")
	}
}

// A resource that needs long, and one that cannot be read, hold back nobody else.
func TestEachInformerAlone(t *testing.T) {
	release := make(chan struct{})
	var forbidden atomic.Bool
	forbidden.Store(true)
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{
		configmaps: healthy("a", "b"),
		deployments: func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			healthy("slow")(w, r)
		},
		secrets: func(w http.ResponseWriter, r *http.Request) {
			if forbidden.Load() {
				writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)
				return
			}
			healthy("c")(w, r)
		},
		widgets: func(w http.ResponseWriter, _ *http.Request) {
			writeStatus(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
		},
	})
	m, logs, _ := run(t, Options{Config: server.config()}, configmaps, deployments, secrets, widgets)

	eventually(t, 5*time.Second, m, configmaps, Synced, "")
	eventually(t, 5*time.Second, m, secrets, Forbidden, "list secrets at cluster scope")
	eventually(t, 5*time.Second, m, widgets, Failing, "list widgets.example.com: InternalError (HTTP 500)")
	eventually(t, 0, m, deployments, Syncing, "")
	if !m.Synced(configmaps) || m.Synced(deployments) || m.Synced(secrets) || m.Synced(widgets) {
		t.Error("Synced is wrong")
	}
	if got := m.LastSyncVersion(configmaps, "default"); got != "100" {
		t.Errorf("LastSyncVersion is %q, want 100", got)
	}
	if got := len(m.Keys(configmaps)); got != 2 || len(m.List(configmaps)) != 2 {
		t.Errorf("%d keys, %d objects, want 2", got, len(m.List(configmaps)))
	}
	if u, ok := m.Get(configmaps, "default", "a"); !ok || u.GetName() != "a" {
		t.Error("Get does not find the object")
	}
	close(release)
	eventually(t, 5*time.Second, m, deployments, Synced, "")
	forbidden.Store(false)
	eventually(t, 20*time.Second, m, secrets, Synced, "")

	m.Use([]schema.GroupVersionResource{secrets})
	if _, ok := m.Get(configmaps, "default", "a"); ok {
		t.Error("the store of a resource that is not in use still answers")
	}
	if got := m.Status(); len(got) != 1 || got[0].State != Synced || got[0].Objects != 1 {
		t.Errorf("status is %+v", got)
	}
	for _, line := range logs.matching("") {
		if strings.Contains(line, "hunter2") {
			t.Errorf("a server message was logged: %s", line)
		}
	}
	for _, s := range m.Status() {
		if strings.Contains(s.Reason, "hunter2") {
			t.Errorf("a server message was published: %s", s.Reason)
		}
	}
}

// Without an API server the Manager waits, says why, and starts when it comes.
func TestAPIServerComesLater(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	m, _, _ := run(t, Options{Config: &rest.Config{Host: address}}, configmaps)
	eventually(t, 5*time.Second, m, configmaps, Failing, "discovery: ")
	if _, ok := m.Info(configmaps); ok || m.Discovered() {
		t.Error("something is known without an API server")
	}

	listener, err = net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	fake := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: healthy("a")})
	server := &http.Server{Handler: fake}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	eventually(t, 15*time.Second, m, configmaps, Synced, "")
	if info, ok := m.Info(configmaps); !ok || info.Kind != "Thing" || !info.Namespaced {
		t.Errorf("Info is %+v, %v", info, ok)
	}
}

// A server whose every answer is 410, and one that ends every watch at once, are not flooded (cases WCH-01, WCH-02).
func TestBoundedRate(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{
		configmaps: func(w http.ResponseWriter, _ *http.Request) {
			writeStatus(w, http.StatusGone, metav1.StatusReasonExpired)
		},
		secrets: func(w http.ResponseWriter, r *http.Request) {
			if isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" {
				w.WriteHeader(http.StatusOK)
				return
			}
			healthy("a")(w, r)
		},
		widgets: func(w http.ResponseWriter, r *http.Request) { // as an event, also in answer to a streamed list
			if isWatch(r) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410}}`)
				return
			}
			healthy("a")(w, r)
		},
		deployments: healthy("a"),
	})
	start := time.Now()
	m, logs, _ := run(t, Options{Config: server.config()}, configmaps, secrets, widgets, deployments)
	eventually(t, 30*time.Second, m, configmaps, Failing, "Expired (HTTP 410)")
	eventually(t, 30*time.Second, m, secrets, Failing, "every watch ends at once")
	eventually(t, 30*time.Second, m, widgets, Failing, "every watch ends at once")
	eventually(t, 0, m, deployments, Synced, "")
	if !m.Synced(secrets) || !m.Synced(widgets) {
		t.Error("a list that was answered does not count")
	}
	// One back-off step of the reflector is at least 800 ms, and has at most a streamed list, two lists and a watch.
	most := 4 * (int(time.Since(start)/(800*time.Millisecond)) + 1)
	for _, resource := range []string{"configmaps", "secrets", "widgets"} {
		if n := server.count("LIST "+resource) + server.count("WATCH "+resource); n > most {
			t.Errorf("%d requests for %s, at most %d expected", n, resource, most)
		}
		if lines := logs.matching(resource); len(lines) > linesPerMinute {
			t.Errorf("%d log lines about %s:\n%s", len(lines), resource, strings.Join(lines, "\n"))
		}
	}
}

// A watch that is refused while lists are allowed keeps the cache and is named by its verb.
func TestWatchForbidden(t *testing.T) {
	var allowed atomic.Bool
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{
		secrets: func(w http.ResponseWriter, r *http.Request) {
			if isWatch(r) && !allowed.Load() {
				writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)
				return
			}
			healthy("a")(w, r)
		},
	})
	m, _, _ := run(t, Options{Config: server.config()}, secrets)
	eventually(t, 5*time.Second, m, secrets, Forbidden, "watch secrets at cluster scope")
	if _, ok := m.Get(secrets, "default", "a"); !ok || !m.Synced(secrets) {
		t.Error("what was listed is not in the cache")
	}
	allowed.Store(true)
	eventually(t, 20*time.Second, m, secrets, Synced, "")
	if n := server.count("LIST secrets"); n != 1 {
		t.Errorf("%d lists, want 1: the watch should go on where the list ended", n)
	}
}

// OnStateChange sees changes in order, one at a time, and may call the Manager.
func TestOnStateChange(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: healthy("a"), secrets: healthy("b")})
	var (
		m      *Manager
		inside atomic.Int32
		mu     sync.Mutex
		states []string
	)
	ready := make(chan struct{})
	options := Options{Config: server.config(), OnStateChange: func(s Status) {
		<-ready
		if inside.Add(1) != 1 {
			t.Error("two calls at a time")
		}
		defer inside.Add(-1)
		mu.Lock()
		states = append(states, s.Resource.Resource+" "+string(s.State))
		mu.Unlock()
		if s.Resource == configmaps && s.State == Synced {
			m.Use([]schema.GroupVersionResource{configmaps, secrets})
		}
		_ = m.Status()
	}}
	m, _, _ = run(t, options, configmaps)
	close(ready)
	eventually(t, 5*time.Second, m, secrets, Synced, "")
	testcluster.Eventually(t, 5*time.Second, func() error {
		mu.Lock()
		defer mu.Unlock()
		got := strings.Join(states, ", ")
		if diff := cmp.Diff("configmaps WaitingForResource, configmaps Syncing, configmaps Synced, secrets Syncing, secrets Synced", got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

// A CRD with another uid is another CRD, even if nobody saw that the first one was deleted: a fresh informer. That a
// uid becomes known is none.
func TestReplacedCRD(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{widgets: healthy("a")})
	m, _, _ := run(t, Options{Config: server.config()}, widgets)
	definition, err := parseCRD(manifest(t, widgetCRD))
	if err != nil {
		t.Fatal(err)
	}
	current := func() *informer {
		eventually(t, 5*time.Second, m, widgets, Synced, "")
		m.mu.RLock()
		defer m.mu.RUnlock()
		return m.resources[widgets].informers[""]
	}
	readCRD := func(uid types.UID) {
		definition.uid = uid
		m.mu.Lock()
		m.world.crdsLive = true // the fake server has no CRDs to watch
		m.mu.Unlock()
		m.crdEvent(func() { m.world.crds[definition.resource] = definition })
	}
	first := current()
	readCRD("one")
	if current() != first {
		t.Error("the informer was restarted although its CRD is the same")
	}
	readCRD("two")
	if current() == first || !first.stopped {
		t.Error("the informer of the CRD before is still there")
	}
}

func TestHandlerAndResync(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: healthy("a")})
	var added, updated atomic.Int32
	_, _, _ = run(t, Options{Config: server.config(), Resync: time.Second, Handler: func(schema.GroupVersionResource) cache.ResourceEventHandler {
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { added.Add(1) },
			UpdateFunc: func(any, any) { updated.Add(1) },
		}
	}}, configmaps)
	testcluster.Eventually(t, 10*time.Second, func() error {
		if added.Load() != 1 || updated.Load() == 0 {
			return fmt.Errorf("%d added, %d resynced", added.Load(), updated.Load())
		}
		return nil
	})
}

func TestChangeLogIsBounded(t *testing.T) {
	logs := &logBuffer{}
	l := &changeLog{last: map[string]Status{}}
	now := time.Now()
	for i := range 600 { // ten changes a second, for a minute
		s := Status{Resource: widgets, State: Failing, Reason: fmt.Sprint(i)}
		if i%2 == 0 {
			s = Status{Resource: widgets, State: Waiting}
		}
		l.write(logs.logger(), s, now.Add(time.Duration(i)*100*time.Millisecond))
	}
	if got := len(logs.matching("widgets.example.com")); got != linesPerMinute {
		t.Errorf("%d lines in a minute, want %d", got, linesPerMinute)
	}
	l.write(logs.logger(), Status{Resource: widgets, State: Synced}, now.Add(2*time.Minute))
	if got := logs.matching(`"suppressedLines"=298`); len(got) != 1 {
		t.Errorf("the next line does not say how many were new and not logged: %q", logs.matching("Synced"))
	}
	l.write(logs.logger(), Status{Resource: widgets, State: Synced}, now.Add(3*time.Minute))
	if got := len(logs.matching("")); got != linesPerMinute+1 {
		t.Errorf("%d lines, want %d: the same state is logged once", got, linesPerMinute+1)
	}
}

func TestDescribeHidesServerMessages(t *testing.T) {
	invalid := apierrors.NewInternalError(errors.New("conversion of {password: hunter2} failed"))
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("failed to list: %w", invalid), "InternalError (HTTP 500)"},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 418, Message: "hunter2"}}, "I'm a teapot (HTTP 418)"},
		{&url.Error{Op: "Get", URL: "https://hunter2/", Err: errors.New("connection refused")}, "connection refused"},
		{errors.New(`invalid character 'h' in "hunter2"`), "the answer could not be read"},
		{fmt.Errorf("get: %w", context.DeadlineExceeded), "no answer in time"},
	} {
		if got := describe(c.err); got != c.want {
			t.Errorf("describe(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}
