package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/rules"
)

// labelled is a ConfigMap as a cache has it whose labels are kept.
func (f *fixture) labelled(version, label, uid string) *projection.Object {
	f.Helper()
	u := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: %q}, annotations: {version: %q}}}`, label, version)
	u.SetResourceVersion(version)
	if uid != "" {
		u.SetUID(types.UID(uid))
	}
	o, err := projection.Of(u, projection.Fields{Set: fieldset.Of("metadata", "labels")})
	if err != nil {
		f.Fatal(err)
	}
	return o
}

const readsLabels = `
resource: {version: v1, resource: configmaps}
condition: object.metadata.?labels.?a.orValue('') == 'wrong'
patch: {merge: {metadata: {labels: {a: right}}}}`

// What nothing is read of is passed over, except where somebody waits for the version.
func TestWhichUpdatesAreImmaterial(t *testing.T) {
	remember := func(change func(*objectState)) func(*Engine, Key) {
		return func(e *Engine, key Key) {
			s := newObjectState("uid")
			change(s)
			e.objects.keep(key, s)
		}
	}
	versionOfObject := `
resource: {version: v1, resource: configmaps}
condition: object.metadata.resourceVersion == '5'
patch: {merge: {metadata: {labels: {a: right}}}}`
	versionOfLookup := `
resource: {version: v1, resource: secrets}
lookups:
- {name: found, resource: {version: v1, resource: configmaps}, namespace: "${object.metadata.namespace}", where: {metadata.name: c}}
patch: {merge: {metadata: {annotations: {of: "${lookups.found[0].metadata.resourceVersion}"}}}}`
	for _, tc := range []struct {
		name      string
		rule      string // readsLabels
		full      bool
		prepare   func(e *Engine, key Key)
		is        *projection.Object
		wantAdded bool
	}{
		{name: "nothing that is kept has changed"},
		{name: "a label has changed", is: (&fixture{T: t, ns: "shop"}).labelled("2", "other", ""), wantAdded: true},
		{name: "another object of the name", is: (&fixture{T: t, ns: "shop"}).labelled("2", "right", "2"), wantAdded: true},
		{name: "a resync", is: (&fixture{T: t, ns: "shop"}).labelled("1", "right", ""), wantAdded: true},
		{name: "a write that the cache does not hold yet", prepare: remember(func(s *objectState) { s.wrote("1", "2", now) }), wantAdded: true},
		{name: "a conflict", prepare: remember(func(s *objectState) { s.stale = "1" }), wantAdded: true},
		{name: "a dispute", prepare: remember(func(s *objectState) { s.disputed = "1" }), wantAdded: true},
		{name: "a doubt", prepare: remember(func(s *objectState) { s.doubted = "1" }), wantAdded: true},
		{name: "a refusal", prepare: remember(func(s *objectState) { s.hold("r", "1", "no", false, now) }), wantAdded: true},
		{name: "rules that go one by one", prepare: remember(func(s *objectState) { s.split = true }), wantAdded: true},
		{name: "failures", prepare: remember(func(s *objectState) { s.delays = 1 }), wantAdded: true},
		{name: "an expression ran out of time", prepare: remember(func(s *objectState) { s.late = true }), wantAdded: true},
		{name: "an error that has been told", prepare: remember(func(s *objectState) { s.reported["r"] = "no" })},
		{name: "a worker has it", prepare: func(e *Engine, key Key) { e.objects.begin(key) }, wantAdded: true},
		{name: "a worker has had it", prepare: func(e *Engine, key Key) { e.objects.begin(key); e.objects.end(key) }},
		{name: "a worker has another one", prepare: func(e *Engine, key Key) { key.Name = "d"; e.objects.begin(key) }},
		{name: "another version is read too", rule: `
resources: [{version: v1, resource: configmaps}, {version: v2, resource: configmaps}]
patch: {merge: {metadata: {labels: {a: right}}}}`, wantAdded: true},
		{name: "a rule reads the resourceVersion", rule: versionOfObject, wantAdded: true},
		{name: "objects are kept whole", full: true, wantAdded: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fixture{T: t, ns: "shop"}
			if tc.rule == "" {
				tc.rule = readsLabels
			}
			if tc.is == nil {
				tc.is = f.labelled("2", "right", "")
			}
			e, err := New(f.options(&rest.Config{Host: "http://127.0.0.1:1"}, Options{FullObjects: tc.full}, rule("r", tc.rule)))
			if err != nil {
				t.Fatal(err)
			}
			defer e.queue.ShutDown()
			e.pending = newPending()
			key := Key{Resource: configmaps.GroupResource(), Namespace: "shop", Name: "c"}
			if tc.prepare != nil {
				tc.prepare(e, key)
			}
			e.handler(configmaps).OnUpdate(f.labelled("1", "right", ""), tc.is)
			if got := e.queue.Len() > 0; got != tc.wantAdded || got == e.pending.idle() || (e.arrivals.len() > 0) != got {
				t.Errorf("it is in the queue: %v; Once waits for it: %v; its drift is timed: %v; want %v", got, !e.pending.idle(), e.arrivals.len() > 0, tc.wantAdded)
			}
		})
	}
	t.Run("what a rule looks up", func(t *testing.T) {
		for text, want := range map[string]int{versionOfLookup: 1, `
resource: {version: v1, resource: secrets}
lookups:
- {name: found, resource: {version: v1, resource: configmaps}, namespace: "${object.metadata.namespace}", where: {metadata.name: c}}
patch: {merge: {metadata: {annotations: {of: "${lookups.found[0].metadata.labels['a']}"}}}}`: 0} {
			f := &fixture{T: t, ns: "shop"}
			e, err := New(f.options(&rest.Config{Host: "http://127.0.0.1:1"}, Options{}, rule("r", text)))
			if err != nil {
				t.Fatal(err)
			}
			defer e.queue.ShutDown()
			l := e.rules().Lookups()[0]
			is := f.labelled("2", "right", "")
			at := lookedUp{l.Resource, l.Index(), l.Key(is.Unstructured().Object)}
			e.dependents.byKey = map[lookedUp]map[Key][]rules.Query{at: {Key{Resource: secrets.GroupResource(), Namespace: "shop", Name: "s"}: {{Lookup: l}}}}
			e.handler(configmaps).OnUpdate(f.labelled("1", "right", ""), is)
			if got := e.queue.Len(); got != want {
				t.Errorf("%d objects that depend on it are in the queue, want %d:%s", got, want, text)
			}
		}
	})
}

// Initial objects, resyncs and what a reload is about wait behind live changes.
func TestWhatNobodyWaitsForIsBackground(t *testing.T) {
	f := &fixture{T: t, ns: "shop"}
	e, err := New(f.options(&rest.Config{Host: "http://127.0.0.1:1"}, Options{}, rule("r", readsLabels)))
	if err != nil {
		t.Fatal(err)
	}
	defer e.queue.ShutDown()
	named := func(name, version string) *projection.Object {
		u := f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {a: %q}}}`, name, version)
		u.SetResourceVersion(version)
		o, err := projection.Of(u, projection.Whole())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	handler := e.handler(configmaps)
	handler.OnAdd(named("initial", "1"), true)
	handler.OnUpdate(named("resynced", "1"), named("resynced", "1"))
	handler.OnAdd(named("added", "1"), false)
	handler.OnUpdate(named("changed", "1"), named("changed", "2"))
	handler.OnDelete(named("deleted", "1"))
	for i, want := range []string{"added", "changed", "deleted", "initial", "resynced"} {
		key := take(t, e.queue)
		e.queue.Done(key)
		if key.Name != want {
			t.Errorf("%d. is %s, want %s", i+1, key.Name, want)
		}
	}
}

// What waits does so until a worker has seen it.
func TestWaitsIsWhatTheLastWorkerLeft(t *testing.T) {
	var table objectTable
	key := Key{Resource: schema.GroupResource{Resource: "configmaps"}, Name: "c"}
	s := newObjectState("uid")
	s.wrote("1", "2", time.Now())
	table.begin(key)
	table.keep(key, s)
	table.end(key)
	if !table.waits(key) {
		t.Error("the cache does not hold the write, and nobody waits for it")
	}
	table.begin(key)
	s = table.get(key, "uid")
	s.caughtUp("2")
	s.reported["r"] = "no"
	table.keep(key, s)
	table.end(key)
	if table.waits(key) {
		t.Error("somebody waits for what is there")
	}
	if len(table.busy) > 0 {
		t.Error("a worker has it for ever")
	}
}
