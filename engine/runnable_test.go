package engine

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/gvr"
	schemas "github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules"
)

var onConfigMaps = "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {x: \"1\"}}}\n"

// indexedRules come to each outcome that is counted in bulk, and to verdicts beside.
var indexedRules = []string{
	rule("named", onConfigMaps+"match: {names: [one]}\ncondition: \"'a' in object.data\"\nmode: Audit"),
	rule("labelled", onConfigMaps+"match: {labelSelector: {matchLabels: {is: two}}}\ncondition: object.data.?a.orValue('') == 'v'\nmode: Audit"),
	rule("fails", onConfigMaps+"condition: object.data.absent == 'x'"),
	rule("guarded", onConfigMaps+"condition: has(object.data.b) && object.data.b == 'x'\nmode: Audit"),
	rule("right", onConfigMaps+"condition: object.metadata.name.startsWith('z')"),
	rule("asked", onConfigMaps+"match: {names: ['t*']}\nrecheckAfter: 1h\ncondition: object.data.?a.orValue('') == 'z'"),
}

// indexedObjects are looked at one after the other.
var indexedObjects = []string{
	`{metadata: {name: one}, data: {a: x, absent: v}}`,
	`{metadata: {name: two, labels: {is: two}}, data: {a: v}}`,
	`{metadata: {name: three, labels: {is: two}}, data: {b: x, absent: v}}`,
	`{metadata: {name: four, annotations: {rectifier.dev/skip: right}}, data: {}}`,
}

func setOf(t testing.TB, sources ...string) *rules.Set {
	t.Helper()
	var all []rules.Source
	for i, text := range sources {
		all = append(all, rules.Source{Name: fmt.Sprintf("%d.yaml", i), Data: []byte(strings.ReplaceAll(text, "NS", "ns"))})
	}
	set, problems := rules.Load(all...)
	if len(problems) > 0 {
		t.Fatal(problems[0].Detail())
	}
	return set
}

// offline is an engine without a cluster.
func offline(t testing.TB, set *rules.Set, r prometheus.Registerer) *Engine {
	t.Helper()
	e, err := New(Options{Config: &rest.Config{Host: "https://127.0.0.1:1"}, Rules: set, Registerer: r})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// decisionOn is what sync makes, on an object that no cluster has.
func decisionOn(t testing.TB, e *Engine, object string) *decision {
	t.Helper()
	p := e.policy.Load()
	f := &fixture{T: &testing.T{}, ns: "ns"}
	u := &unstructured.Unstructured{}
	if object != "" {
		u = f.object("{apiVersion: v1, kind: ConfigMap, %s", object[1:])
	}
	return &decision{Engine: e, policy: p, survey: e.survey(p), view: view{configmaps, u}, now: time.Now()}
}

// What is counted in bulk are the numbers that counting each rule comes to.
func TestBulkCountsAreThoseOfEachRule(t *testing.T) {
	set := setOf(t, indexedRules...)
	registry := prometheus.NewRegistry()
	e, single := offline(t, set, registry), offline(t, set, nil)
	for _, object := range indexedObjects {
		d := decisionOn(t, e, object)
		d.rulesFor(configmaps, gvr.Info{Resource: configmaps, Namespaced: true}, gvr.Available)
		if d.runnable == nil {
			t.Fatal("there is no index")
		}
		result := d.runnable.index.Evaluate(rules.Input{Resource: configmaps, Object: d.object.Object, Now: d.now})
		d.countEvaluations(d.runnable.rules, result)
		d.countEvaluations(d.runnable.rules, result) // it is decided on again

		s := decisionOn(t, single, object)
		s.now = d.now
		s.countEvaluations(set.For(configmaps), rules.Evaluate(set.For(configmaps), rules.Input{Resource: configmaps, Object: s.object.Object, Now: s.now}))
	}
	want := single.metrics.counts()
	if total := want[ruleOn{"right", "configmaps"}]; total.Pass != 3 || total.Skip != 1 || total.Evaluations != 4 {
		t.Errorf("the rules are not what the test takes them for: %+v", total)
	}
	// Scraped first, so that a scrape takes nothing away from the others.
	for range 2 {
		for on, c := range want {
			if got := metric(t, registry, "rectifier_evaluations_total", on.rule); got != float64(c.Evaluations) {
				t.Errorf("%v: %v evaluations in the metric, want %d", on, got, c.Evaluations)
			}
		}
		if diff := cmp.Diff(want, e.metrics.counts()); diff != "" {
			t.Errorf("(-each rule +in bulk):\n%s", diff)
		}
	}
}

// Counters never fall, whoever reads them while evaluations are counted and other
// indexes take the place of the one that counts; nothing is lost, nothing counted
// twice, and series of rules that have gone stay away.
func TestBulkCountsWhileOthersReadThem(t *testing.T) {
	set := setOf(t, indexedRules...)
	e := offline(t, set, nil)
	const workers, each = 4, 300
	scrapes := make(chan struct{})
	var working, reading sync.WaitGroup
	reading.Go(func() {
		before := e.metrics.counts()
		for {
			now := e.metrics.counts()
			for on, c := range now {
				if b := before[on]; c.Pass < b.Pass || c.NoMatch < b.NoMatch || c.Audit < b.Audit || c.Evaluations < b.Evaluations || c.LastEvaluated.Before(b.LastEvaluated) {
					t.Errorf("%v fell from %+v to %+v", on, b, c)
				}
			}
			before = now
			select {
			case <-scrapes:
				return
			default:
			}
		}
	})
	of := e.policy.Load().counters[configmaps]
	for w := range workers {
		working.Go(func() {
			d := decisionOn(t, e, indexedObjects[w%3])
			x := rules.NewIndex(set.For(configmaps))
			result := x.Evaluate(rules.Input{Resource: configmaps, Object: d.object.Object, Now: d.now})
			for i := range each {
				if i%100 == 0 {
					if d.runnable != nil {
						e.metrics.retire(d.runnable.counters)
						d.countEvaluations(nil, result) // late
						d.counted = false
					}
					d.runnable = &runnable{set.For(configmaps), x, e.metrics.newBulkCounters(x, of)}
				}
				d.countEvaluations(d.runnable.rules, result)
				d.counted = false
			}
		})
	}
	working.Wait()
	close(scrapes)
	reading.Wait()
	late := each/100 - 1
	for on, c := range e.metrics.counts() {
		if c.Evaluations != workers*(each+int64(late)) {
			t.Errorf("%v: %d evaluations, want %d", on, c.Evaluations, workers*(each+late))
		}
	}
	e.metrics.forgetRules(&rules.Set{})
	if n := len(e.metrics.counts()); n != 0 {
		t.Errorf("%d rules that have gone are still counted", n)
	}
}

// Which rules can run is asked again when anything has changed that it depends on;
// otherwise never. The index stays as long as the rules are the same.
func TestRunnableRulesAreKept(t *testing.T) {
	plain := rule("plain", onConfigMaps)
	needsSchema := rule("schema", "resource: {version: v1, resource: configmaps}\npatch: {applyConfiguration: {data: {x: \"1\"}}}")
	reads := rule("reads", onConfigMaps+"condition: namespaceObject.metadata.name == 'a'\noptOut: Forbidden")
	e := offline(t, setOf(t, plain, needsSchema, reads), nil)
	info := gvr.Info{Resource: configmaps, Namespaced: true}
	ask := func(ns gvr.Availability) (*decision, []string) {
		d := decisionOn(t, e, "")
		var out []string
		for _, r := range d.rulesFor(configmaps, info, ns) {
			out = append(out, r.Name)
		}
		return d, out
	}
	check := func(what string, got, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	first, names := ask(gvr.Available)
	check("at first", names, []string{"plain", "reads"})
	if again, _ := ask(gvr.Available); first.runnable == nil || again.runnable != first.runnable || &again.runnable.rules[0] != &first.runnable.rules[0] {
		t.Error("the rules are not kept")
	}
	denied, names := ask(gvr.Denied)
	check("without Namespaces", names, []string{"plain"})
	if denied.runnable == first.runnable {
		t.Error("the index is that of other rules")
	}
	if len(e.metrics.bulks) != 2 {
		t.Errorf("%d indexes are counted, not 2", len(e.metrics.bulks))
	}

	e.informers.Use([]schema.GroupVersionResource{configmaps}) // another epoch
	stale := *first
	if stale.rulesFor(configmaps, info, gvr.Available); stale.runnable != nil {
		t.Error("a survey of another epoch goes by what is kept")
	}
	later, names := ask(gvr.Available)
	check("in another epoch", names, []string{"plain", "reads"})
	if later.survey == first.survey || later.runnable != first.runnable {
		t.Error("the same rules have another index in another epoch")
	}
	if kept := e.runnables.of[runnableOf{configmaps, gvr.Available}]; kept.survey != later.survey {
		t.Error("whether the rules can run was not asked again in another epoch")
	}

	e.schemas.set(configmaps, &schemas.Type{}, nil)
	known, names := ask(gvr.Available)
	check("with the schema", names, []string{"plain", "reads", "schema"})
	check("with the schema, without Namespaces", second(ask(gvr.Denied)), []string{"plain", "schema"})

	old := e.policy.Load()
	set := setOf(t, plain)
	p := old.next(set, nil, rules.Changes{})
	p.counters = e.metrics.countersOf(set)
	e.policy.Store(p)
	if before := *known; before.rulesFor(configmaps, info, gvr.Available) == nil || before.runnable != nil {
		t.Error("a decision by a policy that has been replaced goes by what is kept")
	}
	last, names := ask(gvr.Available)
	check("under another policy", names, []string{"plain"})
	if len(e.metrics.bulks) != 1 || !e.metrics.bulks[last.runnable.counters] || len(e.runnables.of) != 1 {
		t.Errorf("of the old policy, %d indexes are counted, %d kept", len(e.metrics.bulks)-1, len(e.runnables.of)-1)
	}
	e.informers.Use(nil)
	if preview := decisionOn(t, e, ""); true {
		preview.preview = true
		if preview.rulesFor(configmaps, info, gvr.Available); preview.runnable != nil {
			t.Error("a preview, which explains all rules, has an index")
		}
	}
}

func second[A, B any](_ A, b B) B { return b }
