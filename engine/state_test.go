package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// WCH-05: the engine's own write is in the cache before the next decision.
func TestBehind(t *testing.T) {
	for _, tc := range []struct {
		name          string
		cached, store string
		atLeast       string
		stale         string
		later         time.Duration
		want          bool
	}{
		{name: "nothing was written", cached: "5", store: "9"},
		{name: "the cache is older than the write", cached: "5", store: "6", atLeast: "7", want: true},
		{name: "the cache has the write", cached: "7", store: "7", atLeast: "7"},
		{name: "the cache has something newer", cached: "8", store: "8", atLeast: "7"},
		{name: "numbers, not strings", cached: "9", store: "9", atLeast: "10", want: true},
		{name: "the whole cache is newer than the write: the old version is the current one", cached: "5", store: "9", atLeast: "7"},
		{name: "fails open in the end", cached: "5", store: "6", atLeast: "7", later: failOpen},
		{name: "fails open where versions do not compare", cached: "a", store: "b", atLeast: "c"},
		{name: "the version that met a conflict", cached: "5", store: "9", stale: "5", want: true},
		{name: "a version after the conflict", cached: "6", store: "9", stale: "5"},
		{name: "a conflict is tried again in the end", cached: "5", store: "9", stale: "5", later: failOpen},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newObjectState("uid")
			s.atLeast, s.stale, s.since = tc.atLeast, tc.stale, now
			if got := s.behind(tc.cached, tc.store, now.Add(tc.later)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if (*objectState)(nil).behind("1", "1", now) {
		t.Error("an object without a state is behind")
	}
}

func TestHolds(t *testing.T) {
	a, b := &rules.Rule{Name: "a"}, &rules.Rule{Name: "b"}
	all := []*rules.Rule{a, b}
	s := newObjectState("uid")
	if !s.hold("a", "5", "no", false, now) {
		t.Error("the first refusal is not told")
	}
	check := func(what, version string, at time.Time, want int, wait time.Duration) {
		t.Helper()
		free, w := s.free(all, version, at)
		if len(free) != want || w != wait {
			t.Errorf("%s: %d rules free, wait %v; want %d and %v", what, len(free), w, want, wait)
		}
	}
	check("the same version, however long", "5", now.Add(time.Hour), 1, 0)
	check("another version, at once", "6", now, 1, firstHold)
	check("another version, later", "6", now.Add(firstHold), 2, 0)

	s.wrote("5", "6", now)
	check("the engine's own write does not free the rule", "6", now.Add(time.Hour), 1, 0)

	if s.hold("a", "7", "no", false, now) {
		t.Error("the same refusal is told again")
	}
	check("the second wait is longer", "8", now.Add(firstHold), 1, firstHold)
	for range 30 {
		s.hold("a", "7", "no", false, now)
	}
	check("waits are bounded", "8", now, 1, maxHold)
	if !s.hold("a", "7", "another reason", false, now) {
		t.Error("another refusal is not told")
	}
	s.release("a")
	check("a rule with nothing to do is freed", "7", now, 2, 0)
}

func TestStatesAreForgotten(t *testing.T) {
	var table objectTable
	key := Key{Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "a", Name: "b"}
	s := newObjectState("one")
	s.wrote("1", "2", now)
	table.keep(key, s)
	if !table.unseen(key) || table.get(key, "one") != s {
		t.Error("the state is not kept")
	}
	if table.get(key, "two") != nil || len(table.states) != 0 {
		t.Error("another object of the same name has inherited the state")
	}
	table.keep(key, s)
	s.caughtUp("9")
	table.keep(key, s)
	if len(table.states) != 0 {
		t.Error("a state that says nothing is kept")
	}
	s.hold("a", "1", "no", false, now)
	table.keep(key, s)
	table.forget(key)
	if len(table.states) != 0 {
		t.Error("the state outlives its object")
	}
}

// What was not the object's fault is tried again on the same version.
func TestARefusalThatMayPassIsTriedAgain(t *testing.T) {
	a := []*rules.Rule{{Name: "a"}}
	s := newObjectState("uid")
	s.hold("a", "5", "no", true, now)
	if free, wait := s.free(a, "5", now); len(free) != 0 || wait != firstHold {
		t.Errorf("%d free, wait %v", len(free), wait)
	}
	if free, _ := s.free(a, "5", now.Add(firstHold)); len(free) != 1 {
		t.Error("not tried again")
	}
}

func TestADoubtIsRemembered(t *testing.T) {
	var table objectTable
	key := Key{Name: "a"}
	s := newObjectState("uid")
	s.doubted = "5"
	table.keep(key, s)
	if got := table.get(key, "uid"); got == nil || got.doubted != "5" {
		t.Error("an unexplained refusal would be met again and again")
	}
}

// RTY-07: a panic is an error of one object.
func TestAPanicIsAnErrorOfItsObject(t *testing.T) {
	set, problems := rules.Load(rules.Source{Name: "r", Data: []byte(rule("r", `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {x: "1"}}}`))})
	if problems != nil {
		t.Fatal(problems[0])
	}
	broken := &Engine{metrics: newMetrics(nil)} // without informers
	broken.policy.Store(newPolicy(set, nil))
	_, err := broken.syncRecovered(context.Background(), Key{Resource: schema.GroupResource{Resource: "configmaps"}, Name: "c"})
	if err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("got %v", err)
	}
}

func TestPendingKnowsWhatWasAddedMeanwhile(t *testing.T) {
	p := newPending()
	key := Key{Name: "a"}
	p.begin(key)
	began := p.mark(key)
	p.begin(key) // an event during the work
	p.settle(key, began)
	if p.idle() {
		t.Error("idle although the key was enqueued again")
	}
	p.settle(key, p.mark(key))
	if !p.idle() {
		t.Error("not idle")
	}
}
