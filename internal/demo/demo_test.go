package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

// The whole show, as `make demo` gives it.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	var out bytes.Buffer
	err := run(t.Context(), &screen{out: &out}, false)
	if err != nil {
		t.Errorf("the demo fails: %v\n%s", err, out.String())
	}
	// One ✗ for each disturbance, and for each the repair that it was followed by.
	disturbed, repaired := strings.Count(out.String(), "✗"), strings.Count(out.String(), " after ")
	if disturbed < 20 || repaired != disturbed {
		t.Errorf("%d disturbances and %d repairs are shown:\n%s", disturbed, repaired, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("there are terminal codes where there is no terminal")
	}
}

// What a disturbance sets must be wrong, and something that a rule puts right.
func TestScenario(t *testing.T) {
	titles := map[string]bool{}
	for _, it := range items {
		if titles[it.title()] {
			t.Errorf("there are two %s", it.title())
		}
		titles[it.title()] = true
		for _, f := range it.fields {
			for _, v := range f.disturbances {
				if v == f.wanted {
					t.Errorf("%s: disturbing %s with %v does nothing", it.title(), f.label, v)
				}
			}
		}
	}
	if n := int(disturbanceTime / disturbanceEvery); len(disturbances()) < n {
		t.Errorf("the scenario has %d disturbances, and there is time for %d", len(disturbances()), n)
	}
}

func TestPaths(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"list": []any{map[string]any{"a": int64(1), "b": int64(2)}}}}
	path := []any{"spec", "list", 0, "a"}
	if got := get(object, path); got != int64(1) {
		t.Errorf("got %v", got)
	}
	for _, absent := range [][]any{{"spec", "list", 1, "a"}, {"status", "x"}, {"spec", "list", "a"}} {
		if got := get(object, absent); got != nil {
			t.Errorf("%v: got %v", absent, got)
		}
	}
	remove(object, path)
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"list": []any{map[string]any{"b": int64(2)}}}}, object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestsAreTold(t *testing.T) {
	event := func(verb, resource string, code int32) controlplane.AuditEvent {
		e := controlplane.AuditEvent{Verb: verb}
		e.ObjectRef.Resource, e.ResponseStatus.Code = resource, code
		return e
	}
	var got tally
	for _, e := range []controlplane.AuditEvent{
		event("get", "", 200), event("list", "deployments", 200), event("watch", "deployments", 200),
		event("patch", "deployments", 200), event("patch", "deployments", 409), event("patch", "deployments", 422),
		event("get", "deployments", 200), event("update", "deployments", 200), event("delete", "deployments", 200),
		event("create", "events", 201), event("create", "selfsubjectaccessreviews", 201),
	} {
		got.add(&e)
	}
	want := tally{accepted: 1, conflicts: 1, refused: 1, gets: 1, puts: 1, other: 1, lists: 2, events: 1}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s := &show{out: &screen{out: &bytes.Buffer{}}}
	for _, tc := range []struct {
		tally  tally
		needed int
		faults int
	}{
		{tally{accepted: 3, conflicts: 2, events: 9}, 3, 0},
		{tally{accepted: 4}, 3, 1},
		{tally{accepted: 2}, 3, 1},
		{tally{accepted: 3, gets: 1, puts: 1, refused: 1, other: 1}, 3, 4},
	} {
		if faults := s.requests(tc.tally, tc.needed); len(faults) != tc.faults {
			t.Errorf("%+v: faults %v, want %d", tc.tally, faults, tc.faults)
		}
	}
}

func TestTheStepIsShownBelowOtherLines(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true}
	_ = s.step("wait", func() error {
		s.line("something")
		return nil
	})
	const clear = "\r\x1b[K"
	if want := "  … wait" + clear + "something\n  … wait" + clear + "  ✓ wait (0.0 s)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// Each repair is shown, also one that the object has been told of before: that is
// counted on the Event that is there.
func TestRepairsAreTold(t *testing.T) {
	began := time.Now()
	var out bytes.Buffer
	w := watch.NewFakeWithChanSize(10, false)
	f := &fixWatcher{out: &screen{out: &out}, watch: w, done: make(chan struct{}), zero: began, before: map[string][]time.Time{}}
	event := func(at time.Duration, count int32) *eventsv1.Event {
		e := &eventsv1.Event{Type: corev1.EventTypeNormal, Reason: "Adjusted", Note: "adjust replicas", EventTime: metav1.NewMicroTime(began)}
		e.Regarding = corev1.ObjectReference{Kind: "Deployment", Name: "cart"}
		if count > 1 {
			e.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(began.Add(at))}
		}
		return e
	}
	for _, at := range []time.Duration{100, 200, 300} {
		f.disturbed("deployment/cart", began.Add(at*time.Millisecond))
	}
	w.Add(event(0, 1)) // before all of them
	w.Modify(event(110*time.Millisecond, 2))
	w.Modify(event(220*time.Millisecond, 3))
	w.Delete(event(220*time.Millisecond, 3)) // it has expired
	go f.run()
	f.stop()
	for _, line := range []string{"0.000 s ✓ deployment/cart       Adjusted          adjust replicas\n", "0.110 s ✓", "adjust replicas after 10 ms\n", "0.220 s ✓", "adjust replicas after 20 ms\n"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("it does not show %q:\n%s", line, out.String())
		}
	}
	if n := strings.Count(out.String(), "✓"); n != 3 || f.untold() != 1 {
		t.Errorf("%d repairs are shown, and %d are not told of; want 3 and 1\n%s", n, f.untold(), out.String())
	}
}

// What people are invited to try says when it will not go on so.
func TestLookAroundTellsOfContention(t *testing.T) {
	got := lookAround("/tmp/kubeconfig", &rectifier{address: "127.0.0.1:8080"})
	if !strings.Contains(got, "after 5 times in 10 minutes") || !strings.Contains(got, "Contended") {
		t.Errorf("it does not say when the rule gives way:\n%s", got)
	}
}
