package engine

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// outcomeRules come to each outcome on outcomeObject, one each.
var outcomeRules = []string{
	rule("elsewhere", "resource: {version: v1, resource: configmaps}\nmatch: {names: [other]}\npatch: {merge: {data: {a: \"1\"}}}"),
	rule("right", "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {is: \"right\"}}}"),
	rule("wrong", "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {was: \"wrong\"}}}"),
	rule("told", "resource: {version: v1, resource: configmaps}\nmode: Audit\npatch: {merge: {data: {told: \"yes\"}}}"),
	rule("left", "resource: {version: v1, resource: configmaps}\npatch: {merge: {data: {left: \"alone\"}}}"),
	rule("fails", "resource: {version: v1, resource: configmaps}\ncondition: object.data.absent == 'x'\npatch: {merge: {data: {b: \"1\"}}}"),
	rule("unclear", "resource: {version: v1, resource: configmaps}\ncondition: namespaceObject.metadata.name == 'a'\npatch: {merge: {data: {c: \"1\"}}}"),
}

const outcomeObject = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {rectifier.dev/skip: left}}, data: {is: right}}`

// outcomeDecision is a decision about that object, without a cluster.
func outcomeDecision(t testing.TB, m *metrics) (*decision, []*rules.Rule) {
	f := &fixture{ns: "ns"}
	if t, ok := t.(*testing.T); ok {
		f.T = t
	} else {
		f.T = &testing.T{}
	}
	set := f.options(nil, Options{}, outcomeRules...).Rules
	p := newPolicy(set, nil)
	p.counters = m.countersOf(set)
	e := &Engine{metrics: m}
	return &decision{Engine: e, policy: p, view: view{configmaps, f.object(outcomeObject)}, now: time.Now()}, set.For(configmaps)
}

func TestEachOutcomeIsCounted(t *testing.T) {
	m := newMetrics(nil)
	d, all := outcomeDecision(t, m)
	result := rules.Evaluate(all, rules.Input{Resource: configmaps, Object: d.object.Object, Now: d.now})
	d.countEvaluations(all, result)
	d.countEvaluations(all, result) // it is decided on again after a refusal
	want := map[ruleOn]RuleCounts{
		{"elsewhere", "configmaps"}: {NoMatch: 1},
		{"right", "configmaps"}:     {Pass: 1},
		{"wrong", "configmaps"}:     {Patch: 1},
		{"told", "configmaps"}:      {Audit: 1},
		{"left", "configmaps"}:      {Skip: 1},
		{"fails", "configmaps"}:     {Error: 1},
		{"unclear", "configmaps"}:   {Unknown: 1},
	}
	for on, c := range want {
		c.Evaluations = 1
		c.LastEvaluated = d.now
		want[on] = c
	}
	if diff := cmp.Diff(want, m.counts(), cmpopts.EquateApproxTime(time.Microsecond)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Counting must not show beside an evaluation: it takes no memory.
func TestCountingTakesNoMemory(t *testing.T) {
	d, all := outcomeDecision(t, newMetrics(nil))
	result := rules.Evaluate(all, rules.Input{Resource: configmaps, Object: d.object.Object, Now: d.now})
	result.Verdicts = withoutErrors(result.Verdicts) // to look into an error costs some
	if n := testing.AllocsPerRun(100, func() {
		d.counted = false
		d.countEvaluations(all, result)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func withoutErrors(verdicts []rules.Verdict) (out []rules.Verdict) {
	for _, v := range verdicts {
		if v.Err == nil {
			out = append(out, v)
		}
	}
	return out
}

// Seven evaluations are counted in each round.
func BenchmarkCountEvaluations(b *testing.B) {
	d, all := outcomeDecision(b, newMetrics(nil))
	result := rules.Evaluate(all, rules.Input{Resource: configmaps, Object: d.object.Object, Now: d.now})
	result.Verdicts = withoutErrors(result.Verdicts)
	b.ReportAllocs()
	for b.Loop() {
		d.counted = false
		d.countEvaluations(all, result)
	}
}

func BenchmarkArrivals(b *testing.B) {
	var a arrivals
	key := Key{Resource: schema.GroupResource{Resource: "configmaps"}, Namespace: "ns", Name: "c"}
	b.ReportAllocs()
	for b.Loop() {
		a.note(key)
		a.take(key)
	}
}

// Series of rules that have gone, and of resources that a rule does not name any
// more, go; what is counted late for them does not bring them back.
func TestSeriesOfRulesThatHaveGone(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	on := func(name string, resources string) rules.Source {
		return rules.Source{Name: name, Data: []byte(rule(name, "resources: ["+resources+"]\npatch: {merge: {metadata: {labels: {x: a}}}}\nmatch: {namespaces: [a]}"))}
	}
	both := "{version: v1, resource: configmaps}, {version: v1, resource: secrets}"
	load := func(sources ...rules.Source) *rules.Set {
		set, problems := rules.Load(sources...)
		if len(problems) > 0 {
			t.Fatal(problems[0].Detail())
		}
		return set
	}
	before := load(on("stays", both), on("goes", both))
	counters := m.countersOf(before)
	gone := counters[configmaps][before.Get("goes")]
	gone.count(outcomePatch, 1)
	counters[configmaps][before.Get("stays")].count(outcomePatch, 1)
	m.contentions.WithLabelValues("goes", "configmaps").Inc()

	after := load(on("stays", "{version: v1, resource: configmaps}"))
	counters = m.countersOf(after)
	m.forgetRules(after)
	gone.count(outcomePatch, 2)
	gone.fixed()
	gone.failed(reasonIneffective)
	counters[configmaps][after.Get("stays")].count(outcomePatch, 2)

	if n := metric(t, registry, "rectifier_evaluations_total", "stays"); n != 2 {
		t.Errorf("the rule that stays has %v evaluations, not 2", n)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetValue() == "goes" || label.GetValue() == "secrets" {
					t.Errorf("%s%v is still there", family.GetName(), m.GetLabel())
				}
			}
		}
	}
	if got := m.counts(); len(got) != 1 {
		t.Errorf("counts are of %v", got)
	}
}

// The room that the first list of a large cluster takes is given back, also if
// the queue is never quite empty after it.
func TestArrivalsGiveTheirRoomBack(t *testing.T) {
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var a arrivals
	key := func(i int) Key { return Key{Name: strconv.Itoa(i)} }
	const many, staying = 200_000, 10
	before := inUse()
	for i := range many {
		a.note(key(i))
	}
	full := inUse()
	first := a.at[key(staying-1)]
	for i := range many - staying {
		a.take(key(many - 1 - i))
	}
	if left := inUse() - before; left > (full-before)/20 {
		t.Errorf("%d keys took %d bytes; when %d are left, these are %d", many, full-before, staying, left)
	}
	if got := a.take(key(staying - 1)); !got.Equal(first) || a.len() != staying-1 {
		t.Errorf("a key that waits on waits since %v, not %v; %d are left", got, first, a.len())
	}
}

func TestSinceWhenAKeyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a arrivals
		key := Key{Name: "c"}
		begin := time.Now()
		after := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
		at := func(seconds int) { time.Sleep(time.Until(after(seconds))) }
		want := func(what string, got, want time.Time) {
			t.Helper()
			if !got.Equal(want) {
				t.Errorf("%s: since %v, not %v", what, got.Sub(begin), want.Sub(begin))
			}
		}

		a.note(key)
		at(1)
		a.note(key)
		at(2)
		want("two events", a.take(key), after(0))

		at(3)
		a.note(key) // while it is worked on
		a.again(key, after(0))
		at(4)
		want("a conflict, and the event that came with it", a.take(key), after(0))

		at(5)
		want("after it was right, without an event", a.take(key), after(5))

		at(6)
		a.note(key)
		a.take(key) // nothing to do
		at(7)
		a.note(key)
		at(8)
		want("an event long after one that needed no fix", a.take(key), after(7))
		if n := a.len(); n != 0 {
			t.Errorf("%d keys are remembered", n)
		}
	})
}

func TestOnlyRequestsThatWentOutAreCounted(t *testing.T) {
	m := newMetrics(nil)
	d := &decision{Engine: &Engine{metrics: m}, key: Key{Resource: configmaps.GroupResource()}}
	for _, tc := range []struct {
		f    failure
		want string
	}{
		{failure{class: conflict}, "conflict"},
		{failure{class: gone}, "gone"},
		{failure{class: throttled}, "throttled"},
		{failure{class: unavailable}, "unavailable"},
		{failure{class: unauthorized}, "unauthorized"},
		{failure{class: forbidden}, "forbidden"},
		{failure{class: refused, passing: true}, "denied"},
		{failure{class: refused}, "invalid"},
	} {
		counter := m.patches.WithLabelValues("configmaps", "status", tc.want)
		for _, d.sent = range []bool{false, true} {
			d.countPatch(&rules.Request{Subresource: "status"}, patchResult(tc.f))
		}
		if got := valueOf(counter); got != 1 {
			t.Errorf("%s: %d requests are counted, not 1", tc.want, got)
		}
	}
}

// seriesOf returns the series of a metric that have these labels, e.g.
// "rule=r,outcome=pass".
func seriesOf(t testing.TB, g prometheus.Gatherer, name, labels string) (out []*dto.Metric) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if hasLabels(m, labels) {
				out = append(out, m)
			}
		}
	}
	return out
}

func hasLabels(m *dto.Metric, labels string) bool {
	has := map[string]bool{"": true}
	for _, l := range m.GetLabel() {
		has[l.GetName()+"="+l.GetValue()] = true
	}
	for l := range strings.SplitSeq(labels, ",") {
		if !has[l] {
			return false
		}
	}
	return true
}

// sumOf adds up counters and gauges with these labels.
func sumOf(t testing.TB, g prometheus.Gatherer, name, labels string) (sum float64) {
	t.Helper()
	for _, m := range seriesOf(t, g, name, labels) {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

func wantSum(t testing.TB, g prometheus.Gatherer, name, labels string, want float64) {
	t.Helper()
	if got := sumOf(t, g, name, labels); got != want {
		t.Errorf("%s{%s} is %v, not %v", name, labels, got, want)
	}
}

// A reload takes no longer for the series of rules that go than for those of
// rules that come, however many there are.
func BenchmarkSeriesThatGo(b *testing.B) {
	var many, few []string
	for i := range 2000 {
		r := rule(fmt.Sprintf("rule-%d", i), "resource: {version: v1, resource: configmaps}\npatch: {merge: {metadata: {labels: {x: a}}}}")
		if many = append(many, r); i%2 == 0 {
			few = append(few, r)
		}
	}
	load := func(texts []string) *rules.Set {
		set, problems := rules.Load(rules.Source{Name: "rules", Data: []byte(strings.Join(texts, "\n---\n"))})
		if len(problems) > 0 {
			b.Fatal(problems[0].Detail())
		}
		return set
	}
	all, half := load(many), load(few)
	m := newMetrics(prometheus.NewRegistry())
	for b.Loop() {
		m.countersOf(all)
		m.forgetRules(half)
	}
}
