package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
