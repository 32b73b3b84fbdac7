package engine

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// slowPatches are PATCHes of ConfigMaps that take a while, counted.
type slowPatches struct {
	begun, finished, cut atomic.Int64
	takes                time.Duration
}

func (s *slowPatches) pass(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/configmaps/") {
		return next.RoundTrip(r)
	}
	s.begun.Add(1)
	select {
	case <-time.After(s.takes):
	case <-r.Context().Done():
		s.cut.Add(1)
		return nil, r.Context().Err()
	}
	resp, err := next.RoundTrip(r)
	if err != nil {
		s.cut.Add(1)
	} else {
		s.finished.Add(1)
	}
	return resp, err
}

// fixed counts the ConfigMaps that the rule has marked.
func (f *fixture) fixed() (n int) {
	f.Helper()
	list, err := f.client.Resource(configmaps).Namespace(f.ns).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for _, u := range list.Items {
		if value, _, _ := unstructured.NestedString(u.Object, "data", "fixed"); value == "yes" {
			n++
		}
	}
	return n
}

// eventsAbout counts the Events on the test's objects of a kind.
func (f *fixture) eventsAbout(kind string) (n int) {
	f.Helper()
	list, err := f.client.Resource(eventsGVR).Namespace(f.ns).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range list.Items {
		if about, _, _ := unstructured.NestedString(e.Object, "regarding", "kind"); about == kind {
			n++
		}
	}
	return n
}

// engineGoroutines are the stacks of goroutines that belong to engines.
func engineGoroutines() []string {
	buf := make([]byte, 8<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	return slices.DeleteFunc(stacks, func(stack string) bool {
		for _, of := range []string{"engine.(*Engine)", "engine.(*recorder)", "gvr.(*Manager)", "client-go/util/workqueue", "client-go/tools/cache"} {
			if strings.Contains(stack, of) {
				return false
			}
		}
		return true
	})
}

// wantNoGoroutines waits until no goroutines of engines are left but those that
// were there before. (An engine that was made and never run keeps those of its
// queue.)
func wantNoGoroutines(t *testing.T, before []string) {
	t.Helper()
	id := func(stack string) string { return strings.Join(strings.Fields(stack)[:2], " ") }
	known := map[string]bool{}
	for _, stack := range before {
		known[id(stack)] = true
	}
	testcluster.Eventually(t, soon, func() error {
		left := slices.DeleteFunc(engineGoroutines(), func(stack string) bool { return known[id(stack)] })
		if len(left) > 0 {
			return fmt.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		return nil
	})
}

// started runs an engine on slow writes until some are done and most are not.
func (f *fixture) started(slow *slowPatches, objects int, grace time.Duration) {
	f.Helper()
	for i := range objects {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	f.startAs(f.between(slow.pass), Options{ShutdownGrace: grace}, rule("mark", mark))
	// Before, the handler is at the first list, with the objects of other tests in
	// it: what is not enqueued yet is not drained.
	f.wantReadyz(20*time.Second, "v1/configmaps: synced")
	testcluster.Eventually(f, 20*time.Second, func() error {
		if slow.finished.Load() < 5 {
			return fmt.Errorf("%d writes are done", slow.finished.Load())
		}
		return nil
	})
	if waiting := f.engine.queue.Len(); waiting < objects/2 {
		f.Fatalf("only %d keys are queued", waiting)
	}
}

// What is queued when the shutdown begins is worked off, with its Events, and
// nothing is left running.
func TestAShutdownDrainsTheQueue(t *testing.T) {
	before := engineGoroutines()
	f := newFixture(t)
	const objects = 500
	slow := &slowPatches{takes: 15 * time.Millisecond}
	f.started(slow, objects, time.Minute)
	began := time.Now()
	f.stop()
	t.Logf("the shutdown took %v", time.Since(began))
	if n := f.fixed(); n != objects {
		t.Errorf("%d of %d objects are fixed", n, objects)
	}
	if n := f.eventsAbout("ConfigMap"); n != objects {
		t.Errorf("%d Events on %d objects", n, objects)
	}
	if cut := slow.cut.Load(); cut != 0 || slow.begun.Load() != objects {
		t.Errorf("%d writes for %d objects, %d of them cut off", slow.begun.Load(), objects, cut)
	}
	wantNoGoroutines(t, before)
}

// When the grace period is over, the rest is left; what has begun is finished.
func TestAShutdownThatTakesTooLong(t *testing.T) {
	before := engineGoroutines()
	f := newFixture(t)
	logs := captureLogs(t)
	const objects, grace = 300, time.Second
	slow := &slowPatches{takes: 300 * time.Millisecond}
	f.started(slow, objects, grace)
	began := time.Now()
	f.stop()
	took := time.Since(began)
	t.Logf("the shutdown took %v", took)
	if took < grace || took > grace+lastWrites+eventGrace {
		t.Errorf("with %v of grace the shutdown took %v", grace, took)
	}
	if cut := slow.cut.Load(); cut != 0 {
		t.Errorf("%d writes were cut off", cut)
	}
	fixed := f.fixed()
	if fixed == objects || int64(fixed) != slow.begun.Load() {
		t.Errorf("%d writes were begun, and %d objects are fixed", slow.begun.Load(), fixed)
	}
	if n := f.eventsAbout("ConfigMap"); n != fixed {
		t.Errorf("%d Events on %d fixed objects", n, fixed)
	}
	if got := logs.matching("the next start looks at all objects"); len(got) != 1 {
		t.Errorf("with %d objects left it is told:\n%s", objects-fixed, strings.Join(got, ""))
	}
	wantNoGoroutines(t, before)

	// The next start finishes it.
	f.start(rule("mark", mark))
	testcluster.Eventually(t, 20*time.Second, func() error {
		if n := f.fixed(); n != objects {
			return fmt.Errorf("%d of %d objects are fixed", n, objects)
		}
		return nil
	})
}

// A write that hangs does not keep the process longer than it may.
func TestAShutdownDuringAWriteThatHangs(t *testing.T) {
	before := engineGoroutines()
	f := newFixture(t)
	logs := captureLogs(t)
	slow := &slowPatches{takes: time.Hour}
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	const grace = 100 * time.Millisecond
	f.startAs(f.between(slow.pass), Options{ShutdownGrace: grace}, rule("mark", mark))
	testcluster.Eventually(t, 10*time.Second, func() error {
		if slow.begun.Load() == 0 {
			return fmt.Errorf("no write has begun")
		}
		return nil
	})
	began := time.Now()
	f.stop()
	if took := time.Since(began); took > grace+lastWrites+eventGrace {
		t.Errorf("with %v of grace the shutdown took %v", grace, took)
	}
	if got := logs.matching("Sync failed"); len(got) > 0 {
		t.Errorf("the end is told as a failure:\n%s", strings.Join(got, ""))
	}
	wantNoGoroutines(t, before)
}

// An engine that is there before the API server waits for it, says so, and does
// not fill the log.
func TestStartBeforeTheAPIServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dynamic.NewForConfig(cp.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, cp: cp, client: client, ns: metav1.NamespaceDefault, user: "early"}
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: early}}`)
	if err := cp.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	logs := f.captureLogs()
	began := time.Now()
	f.start(rule("mark", mark))
	f.wantReadyz(soon, "[-] discovery: has not succeeded yet: ", "connection refused", "not ready")
	if code, _ := f.readyz(); code != http.StatusServiceUnavailable {
		t.Errorf("readyz answers %d", code)
	}
	away, cancel := context.WithTimeout(t.Context(), 12*time.Second) // some attempts of the engine
	defer cancel()
	<-away.Done()
	if code, _ := f.readyz(); code != http.StatusServiceUnavailable {
		t.Errorf("readyz answers %d", code)
	}
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.eventually(30*time.Second, configmaps, "early", "yes", "data", "fixed")
	f.wantReadyz(30*time.Second, "discovery: done", "v1/configmaps: synced", "\nready")
	got, most := logs.matching(""), 15+int(time.Since(began)/(10*time.Second))
	t.Logf("%d lines in %v", len(got), time.Since(began))
	if len(got) == 0 || len(got) > most {
		t.Errorf("%d lines for a start without an API server:\n%s", len(got), strings.Join(got, ""))
	}
}
