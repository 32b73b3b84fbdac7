package engine

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// watchEvents are the counts of watch events, by resource and outcome.
func watchEvents(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "rectifier_watch_events_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[labels["resource"]+" "+labels["outcome"]] = m.GetCounter().GetValue()
		}
	}
	return out
}

// Each event of a watch is counted once, by what becomes of it; what no watch has
// brought is not.
func TestWatchEventsAreCounted(t *testing.T) {
	f := &fixture{T: t, ns: "shop"}
	registry := prometheus.NewRegistry()
	lookup := rule("looks-up", `
resource: {version: v1, resource: secrets}
lookups:
- {name: found, resource: {version: v1, resource: services}, namespace: "${object.metadata.namespace}", where: {metadata.name: c}}
patch: {merge: {metadata: {annotations: {of: "${lookups.found[0].spec.type}"}}}}`)
	e := offline(t, setOf(t, rule("r", readsLabels), lookup), registry)
	defer e.queue.ShutDown()
	if got := watchEvents(t, registry); len(got) != 0 {
		t.Errorf("nothing is watched, and there is %v", got)
	}
	handler, other := e.handler(configmaps), e.handler(services)
	want := map[string]float64{}
	for _, resource := range []string{"configmaps", "services"} {
		for _, outcome := range []string{"initial", "relevant", "passed_over"} {
			want[resource+" "+outcome] = 0
		}
	}
	labelled := func(version, label string) *projection.Object { return f.labelled(version, label, "") }
	for _, step := range []struct {
		name    string
		event   func()
		counted string // "": nothing is
	}{
		{"nothing yet", func() {}, ""},
		{"an initial object", func() { handler.OnAdd(labelled("1", "a"), true) }, "configmaps initial"},
		{"a new object", func() { handler.OnAdd(labelled("2", "a"), false) }, "configmaps relevant"},
		{"an update of what is read", func() { handler.OnUpdate(labelled("2", "a"), labelled("3", "b")) }, "configmaps relevant"},
		{"an update of something else", func() { handler.OnUpdate(labelled("3", "b"), labelled("4", "b")) }, "configmaps passed_over"},
		{"a resync", func() { handler.OnUpdate(labelled("4", "b"), labelled("4", "b")) }, ""},
		{"a deletion", func() { handler.OnDelete(labelled("4", "b")) }, "configmaps relevant"},
		{"a deletion that was missed", func() { handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/c", Obj: labelled("4", "b")}) }, "configmaps relevant"},
		{"an initial object that is looked up", func() { other.OnAdd(labelled("1", "a"), true) }, "services initial"},
		{"an update of an object that is looked up", func() { other.OnUpdate(labelled("1", "a"), labelled("2", "b")) }, "services relevant"},
		{"one of something else", func() { other.OnUpdate(labelled("2", "b"), labelled("3", "b")) }, "services passed_over"},
	} {
		step.event()
		if step.counted != "" {
			want[step.counted]++
		}
		if diff := cmp.Diff(want, watchEvents(t, registry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}

	// An informer that takes the place of another one, or one of another version of the
	// resource, counts on.
	before := maps.Clone(want)
	e.handler(configmaps).OnAdd(labelled("5", "a"), true)
	before["configmaps initial"]++
	if diff := cmp.Diff(before, watchEvents(t, registry)); diff != "" {
		t.Errorf("another informer (-want +got):\n%s", diff)
	}
}

// An update that is passed over takes no memory.
func TestWatchEventsThatArePassedOverTakeNoMemory(t *testing.T) {
	e, was, is := updateOf(t, "1", "1")
	defer e.queue.ShutDown()
	handler := e.handler(configmaps)
	if n := testing.AllocsPerRun(100, func() { handler.OnUpdate(was, is) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// updateOf is an engine with a rule about a label, and an object before and after an
// update.
func updateOf(t testing.TB, was, is string) (e *Engine, before, after *projection.Object) {
	f := &fixture{T: &testing.T{}, ns: "shop"}
	return offline(t, setOf(t, rule("r", readsLabels)), prometheus.NewRegistry()), f.labelled("1", was, ""), f.labelled("2", is, "")
}

// BenchmarkHandler is what is done with an event of a watch until it is in the queue,
// or passed over. The object is in the queue already: what follows is not measured.
func BenchmarkHandler(b *testing.B) {
	for name, label := range map[string]string{"passed over": "right", "relevant": "other"} {
		b.Run(name, func(b *testing.B) {
			e, was, is := updateOf(b, "right", label)
			defer e.queue.ShutDown()
			handler := e.handler(configmaps)
			b.ReportAllocs()
			for b.Loop() {
				handler.OnUpdate(was, is)
			}
		})
	}
}

// Each event that the API server sends is counted once.
func TestWatchEventsOfAServerAreCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	objects := f.client.Resource(secrets).Namespace(f.ns)
	if _, err := objects.Create(t.Context(), f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s}}`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	config, err := f.cp.User(f.user, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	f.startAs(config, Options{Registerer: registry, Namespaces: []string{f.ns}}, rule("r", `
resource: {version: v1, resource: secrets}
optOut: Forbidden
condition: object.metadata.?labels.?a.orValue('') == 'wrong'
patch: {merge: {metadata: {labels: {a: right}}}}`))
	// A worker that has the object just then makes an update relevant.
	var live float64
	counted := func(want string, least float64) {
		t.Helper()
		testcluster.Eventually(t, time.Minute, func() error {
			got := watchEvents(t, registry)
			if got["secrets initial"] != 1 || got["secrets relevant"]+got["secrets passed_over"] != live || got[want] < least {
				return fmt.Errorf("%v: want 1 initial, %v others, %v %s", got, live, least, want)
			}
			return nil
		})
	}
	patch := func(body string) {
		t.Helper()
		if _, err := objects.Patch(t.Context(), "s", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		live++
	}
	counted("secrets initial", 1)
	patch(`{"metadata":{"labels":{"a":"other"}}}`)
	counted("secrets relevant", 1)
	for i := 0; i < 20 && watchEvents(t, registry)["secrets passed_over"] == 0; i++ {
		patch(fmt.Sprintf(`{"metadata":{"annotations":{"a":"%d"}}}`, i))
		counted("secrets relevant", 1)
	}
	counted("secrets passed_over", 1)
	before := watchEvents(t, registry)["secrets relevant"]
	if err := objects.Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	live++
	counted("secrets relevant", before+1)
}
