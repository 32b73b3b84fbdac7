package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/rules"
)

// ring is a table of contentions with a clock of its own, and one object and one
// rule to fight about.
type ring struct {
	*testing.T
	*contentions
	registry *prometheus.Registry
	now      time.Time
	key      Key
	uid      types.UID
	rule     *rules.Rule
}

// ringPolicy is a policy with rules of these ages.
func ringPolicy(generation uint64, since map[string]uint64) *policy {
	return &policy{generation: generation, since: since}
}

func newRing(t *testing.T, c Contention) *ring {
	registry := prometheus.NewRegistry()
	return &ring{
		T: t, contentions: newContentions(c.withDefaults(), newMetrics(registry), ringPolicy(0, map[string]uint64{"r": 0, "other": 0})), registry: registry,
		now: time.Now(), uid: "uid", rule: &rules.Rule{Name: "r"},
		key: Key{Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "ns", Name: "c"},
	}
}

func (r *ring) after(d time.Duration) { r.now = r.now.Add(d) }

// looks is one evaluation in which the rule wants to make a change (0: none); it
// says what becomes of it: "held" already or from now on, "wrote" or "right".
func (r *ring) looks(change uint64) string {
	free := []*rules.Rule{r.rule}
	if r.knows(r.key, r.uid) {
		if free, _, _ = r.free(r.uid, free, r.now); len(free) == 0 {
			return "held"
		}
		if change != 0 {
			if _, yes := r.giveWay(r.uid, author{r.rule.Name, r.policy.generation}, change, r.now); yes {
				return "gives way"
			}
		}
	}
	if change == 0 {
		return "right"
	}
	r.wrote(r.key, r.uid, author{r.rule.Name, r.policy.generation}, change, "", r.now)
	return "wrote"
}

func (r *ring) want(change uint64, want string) {
	r.Helper()
	if got := r.looks(change); got != want {
		r.Fatalf("at a change %d: %s, want %s", change, got, want)
	}
}

// due is when the object has to be looked at because of the fight.
func (r *ring) due() time.Duration {
	_, due, _ := r.free(r.uid, nil, r.now)
	if due.IsZero() {
		return 0
	}
	return due.Sub(r.now)
}

func (r *ring) wantHeld(want float64) {
	r.Helper()
	if got := metric(r.T, r.registry, "rectifier_contended_objects", "r"); got != want {
		r.Errorf("rectifier_contended_objects is %v, want %v", got, want)
	}
	if n := len(r.list()); n != int(want) {
		r.Errorf("%d contentions are listed, want %v", n, want)
	}
}

// metric is the value of a metric for one rule, over all resources.
func metric(t *testing.T, registry prometheus.Gatherer, name, rule string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "rule" && label.GetValue() == rule {
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
				}
			}
		}
	}
	return sum
}

// fight lets the rule give way for the first time.
func (r *ring) fight() {
	r.Helper()
	for range DefaultContentionCount {
		r.want(1, "wrote")
		r.after(time.Second)
	}
	r.want(1, "gives way")
}

func TestHoldsDouble(t *testing.T) {
	r := newRing(t, Contention{})
	r.fight()
	want := time.Minute
	for i := range 10 {
		r.wantHeld(1)
		if got := r.due(); got != want {
			t.Fatalf("hold %d takes %v, want %v", i+1, got, want)
		}
		r.after(want - time.Second)
		r.want(1, "held")
		r.after(time.Second)
		r.want(1, "wrote") // one, after a hold
		r.after(time.Minute)
		r.want(1, "gives way")
		want = min(2*want, time.Hour)
	}
	if got := metric(t, r.registry, "rectifier_contentions_total", "r"); got != 11 {
		t.Errorf("rectifier_contentions_total is %v, want 11", got)
	}
}

func TestAFightEnds(t *testing.T) {
	for name, end := range map[string]func(*ring){
		"when there is nothing to change for a window after the hold": func(r *ring) {
			r.after(time.Minute)
			r.want(0, "right")
			if got := r.due(); got != DefaultContentionWindow {
				r.Fatalf("looked at again after %v, want the window", got)
			}
			r.after(DefaultContentionWindow)
			r.want(0, "right")
		},
		"when the change stays for a window": func(r *ring) {
			r.after(time.Minute)
			r.want(1, "wrote")
			r.want(0, "right")
			if got := r.due(); got != DefaultContentionWindow {
				r.Fatalf("looked at again after %v, want the window", got)
			}
			r.after(DefaultContentionWindow - time.Second)
			r.want(0, "right")
			r.wantHeld(1)
			r.after(time.Second)
			r.want(0, "right")
		},
		"when it is set back after a window only": func(r *ring) {
			r.after(time.Minute)
			r.want(1, "wrote")
			r.after(DefaultContentionWindow)
			r.want(1, "wrote")
		},
		"when the rule is another one": func(r *ring) { r.follow(ringPolicy(1, map[string]uint64{"r": 1, "other": 0})) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRing(t, Contention{})
			r.fight()
			r.wantHeld(1)
			end(r)
			r.wantHeld(0)
			r.after(DefaultContentionWindow)
			r.fight() // it begins anew, with all of the count
			if got := r.due(); got != time.Minute {
				t.Errorf("the next fight begins with %v", got)
			}
		})
	}
}

func TestNoContention(t *testing.T) {
	for name, changes := range map[string]func(*ring){
		"six different changes": func(r *ring) {
			for change := range uint64(6) {
				r.want(change+1, "wrote")
				r.want(0, "right")
				r.after(time.Minute)
			}
		},
		"the same three times in a minute": func(r *ring) {
			for range 3 {
				r.want(1, "wrote")
				r.want(0, "right")
				r.after(20 * time.Second)
			}
		},
		"five times, and then it stays": func(r *ring) {
			for range 5 {
				r.want(1, "wrote")
				r.after(time.Second)
			}
			r.want(0, "right")
		},
		"often, but slowly": func(r *ring) {
			for range 50 {
				r.want(1, "wrote")
				r.after(2 * time.Minute)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRing(t, Contention{})
			changes(r)
			r.wantHeld(0)
			if r.due() != 0 {
				t.Error("the object is to be looked at again because of a fight")
			}
		})
	}
}

// A counter never makes the same change twice.
func TestTheCapCountsAllChanges(t *testing.T) {
	r := newRing(t, Contention{})
	for i := range uint64(DefaultContentionCap) {
		r.want(i+1, "wrote")
		r.after(time.Second)
	}
	r.want(1000, "gives way")
	r.after(time.Minute)
	for i := range uint64(DefaultContentionCount) {
		r.want(1001+i, "wrote")
		r.after(time.Second)
	}
	r.want(1100, "gives way")
	if got := r.due(); got != 2*time.Minute {
		t.Errorf("the second hold takes %v", got)
	}
}

// After a hold for too many changes, one now and then is no fight.
func TestAChangeNowAndThenAfterTheCap(t *testing.T) {
	r := newRing(t, Contention{})
	for i := range uint64(DefaultContentionCap) {
		r.want(i+1, "wrote")
		r.after(time.Second)
	}
	r.want(1000, "gives way")
	r.after(time.Minute)
	for i := range uint64(20) {
		r.want(2000+i, "wrote")
		r.after(3 * time.Minute)
	}
	r.wantHeld(0)
}

// A fight is over when its time has come, even if its rule is not evaluated.
func TestAFightNobodyLooksAtEnds(t *testing.T) {
	r := newRing(t, Contention{})
	r.fight()
	r.after(time.Minute + DefaultContentionWindow)
	_, due, over := r.free(r.uid, nil, r.now)
	if !due.IsZero() || len(over) != 1 || over[0].Rule != "r" || over[0].Holds != 1 {
		t.Errorf("due %v, over %+v", due, over)
	}
	r.wantHeld(0)
}

// One who flips a value may have just set it right when the hold ends.
func TestAMomentOfPeaceIsNoEnd(t *testing.T) {
	r := newRing(t, Contention{})
	r.fight()
	r.after(time.Minute)
	r.want(0, "right")
	r.after(time.Second)
	r.want(1, "wrote")
	r.after(time.Second)
	r.want(1, "gives way")
	if got := r.due(); got != 2*time.Minute {
		t.Errorf("the second hold takes %v", got)
	}
}

// After a hold, a change that the fight was not about is made as ever.
func TestAnotherChangeAfterAHold(t *testing.T) {
	r := newRing(t, Contention{})
	r.fight()
	r.after(time.Minute)
	r.want(1, "wrote")
	for range DefaultContentionCount {
		r.want(2, "wrote")
		r.after(time.Second)
	}
	r.want(2, "gives way")
}

func TestAnObjectGoesAndComes(t *testing.T) {
	r := newRing(t, Contention{})
	r.fight()
	r.gone(r.key)
	r.wantHeld(0)
	r.want(1, "held") // the same object is back
	r.wantHeld(1)

	r.uid = "other" // created again, and the deletion went unseen
	r.want(1, "wrote")
	r.wantHeld(0)
	r.uid = "uid"
	r.want(1, "held")
	r.wantHeld(1)
}

func TestMemoryIsBounded(t *testing.T) {
	r := newRing(t, Contention{})
	r.fight()
	for i := range maxHistories + 100 {
		r.wrote(r.key, types.UID(fmt.Sprint(i)), author{"r", 0}, 1, "", r.now)
	}
	if n := len(r.objects); n > maxHistories {
		t.Errorf("%d objects are remembered", n)
	}
	r.want(1, "held")
	r.after(time.Hour)
	r.wrote(r.key, "last", author{"r", 0}, 1, "", r.now)
	if n := len(r.objects); n != 1 {
		t.Errorf("%d objects are remembered after an hour", n)
	}
	r.wantHeld(0)
}

// A decision of the rules before, which is late, says nothing about those in force:
// old changes do not count for a rule that has changed, and there is no series of
// one that has gone.
func TestALateDecisionDoesNotCount(t *testing.T) {
	r := newRing(t, Contention{})
	old, other := author{"r", 0}, author{"other", 0}
	late := func() {
		r.Helper()
		for range DefaultContentionCount {
			r.wrote(r.key, r.uid, old, 1, "", r.now)
			r.wrote(r.key, r.uid, other, 1, "", r.now)
		}
		if _, held := r.giveWay(r.uid, old, 1, r.now); held {
			t.Error("a rule is held because of what the one before wrote")
		}
	}
	r.follow(ringPolicy(1, map[string]uint64{"r": 1, "other": 0}))
	late()
	if _, held := r.giveWay(r.uid, other, 1, r.now); !held {
		t.Error("what a rule wrote that has not changed is not remembered")
	}
	r.fight() // with all of the count
	r.follow(ringPolicy(2, map[string]uint64{"other": 0}))
	r.metrics.countersOf(testRules(t, rule("r", "resource: {version: v1, resource: configmaps}\npatch: {merge: {metadata: {labels: {x: a}}}}\nmatch: {namespaces: [a]}")))
	r.metrics.forgetRules(&rules.Set{})
	late()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "rule" && l.GetValue() == "r" {
					t.Errorf("%s has a series of a rule that has gone", f.GetName())
				}
			}
		}
	}
}

// Two rules on one object do not share a fight.
func TestOneRuleOfTwoIsHeld(t *testing.T) {
	r := newRing(t, Contention{})
	other := &rules.Rule{Name: "other"}
	r.wrote(r.key, r.uid, author{other.Name, 0}, 1, "", r.now)
	r.fight()
	free, _, _ := r.free(r.uid, []*rules.Rule{other, r.rule}, r.now)
	if len(free) != 1 || free[0] != other {
		t.Errorf("%d rules are free", len(free))
	}
}

func TestWhoOwnsAPath(t *testing.T) {
	object := map[string]any{
		"data": map[string]any{"a": "1"},
		"spec": map[string]any{
			"args":  []any{"x", "y"},
			"ports": []any{map[string]any{"port": int64(80)}, map[string]any{"port": int64(81), "name": "b"}},
		},
		"metadata": map[string]any{"finalizers": []any{"f/one", "f/two"}},
	}
	entries := func(sets map[string]string) (out []metav1.ManagedFieldsEntry) {
		for name, set := range sets {
			out = append(out, metav1.ManagedFieldsEntry{Manager: name, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(set)})
		}
		return out
	}
	all := entries(map[string]string{
		"data-a":   `{"f:data":{"f:a":{}}}`,
		"data":     `{"f:data":{".":{}, "f:b":{}}}`,
		"args":     `{"f:spec":{"f:args":{}}}`,
		"port-81":  `{"f:spec":{"f:ports":{"k:{\"port\":81}":{".":{},"f:name":{},"f:port":{}}}}}`,
		"two":      `{"f:metadata":{"f:finalizers":{"v:\"f/two\"":{}}}}`,
		"unknown":  `[]`,
		"no-field": `{}`,
		"made-it":  `{"f:data":{".":{}}}`,
	})
	for path, want := range map[string]string{
		"data a":                "data-a",
		"data c":                "",
		"data":                  "data data-a made-it",
		"spec args 1":           "args",
		"spec args -":           "args",
		"spec ports 1 name":     "port-81",
		"spec ports 0":          "",
		"spec ports 7":          "",
		"spec ports":            "port-81",
		"metadata finalizers 1": "two",
		"metadata finalizers 0": "",
	} {
		got := ownersOf(all, object, [][]string{strings.Fields(path)})
		slices.Sort(got)
		if diff := cmp.Diff(strings.Fields(want), append([]string{}, got...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// Anybody chooses a manager's name.
func TestNamesOfManagersAreFitToBeTold(t *testing.T) {
	got := printable([]string{"b", "a\x1b[31m\nb", "b", strings.Repeat("ä", 100)})
	want := []string{"a?[31m?b", "b", strings.Repeat("ä", maxManager/2) + "…"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (opponents{managers: []string{"a", "b", "c", "d", "e"}}).String(); got != "by a, b, c and 2 more" {
		t.Errorf("five managers: %q", got)
	}
}
