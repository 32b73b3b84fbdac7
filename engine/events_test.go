package engine

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
		f.eventually(10*time.Second, configmaps, "c-0", "yes", "data", "fixed")
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
		f.eventually(10*time.Second, configmaps, "c", fmt.Sprint(i), "metadata", "labels", "is")
	}
	f.merge(configmaps, "c", `{"data":{"want":"not a label!"}}`)
	f.wantEventWithin(20*time.Second, "c", "Warning PatchRefused")
	testcluster.Eventually(t, 20*time.Second, func() error {
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
	testcluster.Eventually(t, 20*time.Second, func() error {
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
			f := newFixture(t)
			logs := captureLogs(t)
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
			testcluster.Eventually(t, 30*time.Second, func() error {
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
			if got := logs.matching("Events could not be written"); len(got) > 1 || name == "invalid" && len(got) == 0 {
				t.Errorf("it is told %d times:\n%s", len(got), strings.Join(got, ""))
			}
			if n := counted(t, registry, "rectifier_events_dropped_total"); name == "invalid" && n != objects {
				t.Errorf("%v Events are counted as dropped, not %d", n, objects)
			}
			wantNoGoroutines(t)
		})
	}
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
