package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// writesEvent reports whether a request writes an Event.
func writesEvent(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/events") && (r.Method == http.MethodPost || r.Method == http.MethodPatch)
}

// seriesOn returns how often each Event on an object has been seen.
func (f *fixture) seriesOn(name string) map[string]int64 {
	f.Helper()
	list, err := f.client.Resource(eventsGVR).Namespace(f.ns).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	out := map[string]int64{}
	for _, e := range list.Items {
		if about, _, _ := unstructured.NestedString(e.Object, "regarding", "name"); about != name {
			continue
		}
		count, repeated, _ := unstructured.NestedInt64(e.Object, "series", "count")
		if !repeated {
			count = 1
		}
		out[e.GetName()+" "+e.Object["note"].(string)] = count
	}
	return out
}

// EVT-01: each change is told once, the same again is counted on the same Event,
// and many Events need no goroutine each.
func TestOneEventForEachChange(t *testing.T) {
	f := newFixture(t)
	const objects = 200
	for i := range objects {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	f.start(rule("mark", mark))
	before := runtime.NumGoroutine() // with all informers and workers, before most of the fixes
	testcluster.Eventually(t, 30*time.Second, func() error {
		if n := f.fixed(); n != objects {
			return fmt.Errorf("%d of %d objects are fixed", n, objects)
		}
		return nil
	})
	if waiting := len(f.engine.recorder.normal); waiting < objects/4 {
		t.Errorf("only %d Events wait: this test shows nothing", waiting)
	}
	if now := runtime.NumGoroutine(); now > before+50 {
		t.Errorf("%d goroutines while Events wait, %d before", now, before)
	}
	for range 2 {
		f.merge(configmaps, "c-0", `{"data":{"fixed":"no"}}`)
		f.eventually(soon, configmaps, "c-0", "yes", "data", "fixed")
	}
	f.stop()
	if n := f.eventsAbout("ConfigMap"); n != objects {
		t.Errorf("%d Events on %d objects", n, objects)
	}
	for event, count := range f.seriesOn("c-0") {
		if count != 3 {
			t.Errorf("%s: seen %d times, not 3", event, count)
		}
	}
}

// EVT-02: a Warning is seen behind thirty Events that tell of fixes.
func TestAWarningAfterManyFixes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {want: "0"}}`)
	f.start(rule("label", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?labels.?is.orValue('') != object.data.want
patch: {merge: {metadata: {labels: {is: "${object.data.want}"}}}}
event: {message: "label set to ${object.data.want}"}`))
	const fixes = 30
	for i := range fixes {
		f.merge(configmaps, "c", fmt.Sprintf(`{"data":{"want":"%d"}}`, i))
		f.eventually(soon, configmaps, "c", fmt.Sprint(i), "metadata", "labels", "is")
	}
	f.merge(configmaps, "c", `{"data":{"want":"not a label!"}}`)
	f.wantEventWithin(soon, "c", "Warning PatchRefused")
	testcluster.Eventually(t, soon, func() error {
		if n := len(f.seriesOn("c")); n != fixes+1 {
			return fmt.Errorf("%d Events for %d fixes and a Warning", n, fixes)
		}
		return nil
	})
}

// EVT-04: Events about objects in no Namespace are in the default one.
func TestEventsOnClusterScopedObjects(t *testing.T) {
	f := newFixture(t)
	f.start(rule("label", `
resource: {version: v1, resource: namespaces}
match: {names: [NS]}
patch: {merge: {metadata: {labels: {fixed: "yes"}}}}`))
	testcluster.Eventually(t, soon, func() error {
		list, err := f.client.Resource(eventsGVR).Namespace(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			kind, _, _ := unstructured.NestedString(e.Object, "regarding", "kind")
			name, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			if kind == "Namespace" && name == f.ns && e.Object["action"] == "label" {
				return nil
			}
		}
		return errors.New("there is no Event on the Namespace")
	})
}

// An Event store that is down, or does not answer, holds up no fix and no end, and
// is told of once.
func TestEventsThatCannotBeWritten(t *testing.T) {
	before := engineGoroutines()
	t.Run("store", func(t *testing.T) { // ends when those that run beside one another have
		for name, answer := range map[string]func(*http.Request) (*http.Response, error){
			"down": func(r *http.Request) (*http.Response, error) {
				return answerWith(r, outOfOrder)
			},
			"invalid": func(r *http.Request) (*http.Response, error) {
				return answerWith(r, apierrors.NewBadRequest("no Event"))
			},
			"hanging": func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eventsThatCannotBeWritten(t, answer, name == "invalid")
			})
		}
	})
	wantNoGoroutines(t, before)
}

// eventsThatCannotBeWritten has 100 objects fixed while Events get an answer;
// dropped is whether that one lets them be dropped at once.
func eventsThatCannotBeWritten(t *testing.T, answer func(*http.Request) (*http.Response, error), dropped bool) {
	f := newFixture(t)
	logs := f.captureLogs()
	const objects = 100
	for i := range objects {
		f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}}`, i)
	}
	var tries atomic.Int64
	registry := prometheus.NewRegistry()
	f.startAs(f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if writesEvent(r) {
			tries.Add(1)
			return answer(r)
		}
		return next.RoundTrip(r)
	}), Options{Registerer: registry}, rule("mark", mark))
	testcluster.Eventually(t, time.Minute, func() error {
		if n := f.fixed(); n != objects || tries.Load() == 0 {
			return fmt.Errorf("%d of %d objects are fixed; %d tries to write an Event", n, objects, tries.Load())
		}
		return nil
	})
	began := time.Now()
	f.stop()
	if took := time.Since(began); took > eventGrace+5*time.Second {
		t.Errorf("the end took %v", took)
	}
	if got := logs.matching("Events could not be written"); len(got) > 1 || dropped && len(got) == 0 {
		t.Errorf("it is told %d times:\n%s", len(got), strings.Join(got, ""))
	}
	if n := counted(t, registry, "rectifier_events_dropped_total"); dropped && n != objects {
		t.Errorf("%v Events are counted as dropped, not %d", n, objects)
	}
}

// An Event that the API server does not take for now holds up no other one, and is
// written when it does.
func TestAnEventThatFailsHoldsUpNoOther(t *testing.T) {
	f := newFixture(t)
	var fails atomic.Bool
	var tries atomic.Int64
	fails.Store(true)
	f.configMap("bad", "good")
	f.startAs(f.between(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") && bodyHas(t, r, "bad.") && fails.Load() {
			tries.Add(1)
			return answerWith(r, outOfOrder)
		}
		return next.RoundTrip(r)
	}), Options{}, sets("bad", "k", "merge", "bad"), sets("good", "k", "merge", "good"))
	testcluster.Eventually(t, soon, func() error {
		if n := tries.Load(); n < 2 {
			return fmt.Errorf("%d tries", n)
		}
		return nil
	})
	f.merge(configmaps, "good", `{"data":{"k":"no"}}`)
	f.eventually(soon, configmaps, "good", "yes", "data", "k")
	testcluster.Eventually(t, soon, func() error {
		for _, count := range f.seriesOn("good") {
			if count == 2 {
				return nil
			}
		}
		return fmt.Errorf("Events on the other one: %v", f.seriesOn("good"))
	})
	if n := tries.Load(); n >= toldEventTries {
		t.Errorf("the other Events came after %d tries", n)
	}
	fails.Store(false)
	f.wantEventWithin(30*time.Second, "bad", "changed by rule bad")
}

// bodyHas reports whether a request's body contains a text; the body can be read
// again.
func bodyHas(t *testing.T, r *http.Request, text string) bool {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(text))
}

// Events that fail wait for later in order: Warnings first, fresh ones before
// those that have failed, and none beyond a number.
func TestTheOrderOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(nil, false, newMetrics(nil).unwritten)
		put := func(eventType, note string, failed bool) {
			e := &eventsv1.Event{Type: eventType, Note: note}
			switch {
			case failed:
				r.retries = append(r.retries, &delivery{Event: e, due: time.Now().Add(time.Second)})
			case eventType == corev1.EventTypeWarning:
				r.warnings <- e
			default:
				r.normal <- e
			}
		}
		put(corev1.EventTypeNormal, "failed fix", true)
		put(corev1.EventTypeWarning, "failed problem", true)
		put(corev1.EventTypeNormal, "early fix", false)
		began := time.Now()
		next := func(want string, after time.Duration) {
			t.Helper()
			if d := r.next(t.Context()); d == nil || d.Note != want || time.Since(began) != after {
				t.Errorf("the next one is %+v after %v, want %s after %v", d, time.Since(began), want, after)
			}
		}
		next("early fix", 0)
		time.Sleep(time.Second)
		put(corev1.EventTypeNormal, "fix", false)
		put(corev1.EventTypeWarning, "problem", false)
		for _, want := range []string{"problem", "failed problem", "fix", "failed fix"} {
			next(want, time.Second)
		}
		for range maxEventRetries {
			put(corev1.EventTypeNormal, "failed", true)
		}
		put(corev1.EventTypeWarning, "problem", false)
		next("failed", 2*time.Second) // the API server is out of order
		next("problem", 2*time.Second)
		put(corev1.EventTypeNormal, "failed", true) // not due
		r.retries = r.retries[maxEventRetries-1:]
		close(r.finish)
		next("failed", 2*time.Second)
		if d := r.next(t.Context()); d != nil {
			t.Errorf("one more: %+v", d)
		}
	})
}

// Too many Events are dropped, and Warnings are not those.
func TestTooManyEvents(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newRecorder(nil, false, newMetrics(registry).unwritten)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "c", "namespace": "ns"}}}
	set := testRules(t, rule("mark", mark))
	var telling sync.WaitGroup
	for range 4 {
		telling.Go(func() {
			for range eventBacklog {
				r.event(u, set.All()[0], "Normal", "Fixed", "fixed")
			}
		})
	}
	telling.Wait()
	r.event(u, set.All()[0], "Warning", "PatchRefused", "refused")
	if n := counted(t, registry, "rectifier_events_dropped_total"); n != 3*eventBacklog {
		t.Errorf("%v Events are dropped, not %d", n, 3*eventBacklog)
	}
	if e := r.next(t.Context()); e == nil || e.Type != "Warning" {
		t.Errorf("the first Event to be written is %+v", e)
	}
}
