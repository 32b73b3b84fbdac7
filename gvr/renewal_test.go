package gvr

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// What becomes known of a resource whose informer runs, or known again, is
// announced, once, although its state is the same; it is not logged.
func TestRenewal(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{widgets: healthy("a"), configmaps: healthy("a")})
	var renewals, states atomic.Int32
	m, logs, _ := run(t, Options{
		Config:            server.config(),
		DiscoveryInterval: time.Hour,
		OnStateChange:     func(Status) { states.Add(1) },
		OnRenewal:         func(schema.GroupVersionResource) { renewals.Add(1) },
	}, widgets, configmaps)
	eventually(t, 5*time.Second, m, widgets, Synced, "")
	eventually(t, 5*time.Second, m, configmaps, Synced, "")
	definition, err := parseCRD(manifest(t, widgetCRD))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(what string, want int32, change func(w *world)) {
		t.Helper()
		renewals.Store(0)
		before, lines := states.Load(), len(logs.matching("widgets"))
		m.mu.Lock()
		change(&m.world)
		m.reconcileLocked()
		m.reconcileLocked()
		m.mu.Unlock()
		m.announce()
		if got := renewals.Load(); got != want {
			t.Errorf("%s: %d renewals, want %d", what, got, want)
		}
		if states.Load() != before || len(logs.matching("widgets")) != lines {
			t.Errorf("%s: announced or logged as a change of state", what)
		}
	}
	testcluster.Eventually(t, 5*time.Second, func() error {
		if n := states.Load(); n != 6 { // Waiting, Syncing and Synced, of both
			return fmt.Errorf("%d states", n)
		}
		return nil
	})
	changed("nothing", 0, func(*world) {})
	changed("CRDs become readable", 1, func(w *world) {
		w.crdsLive = true // the fake server has no CRDs to watch
		w.crds[definition.resource] = definition
	})
	changed("a subresource goes", 1, func(w *world) {
		other := definition
		other.versions = []crdVersion{{name: widgets.Version, served: true, stored: true}}
		w.crds[definition.resource] = other
	})
	discovered := m.world.discovered
	changed("it is not known any more", 0, func(w *world) { w.crdsLive, w.discovered = false, nil })
	changed("it is known again", 2, func(w *world) { // of configmaps too
		w.crdsLive, w.discovered = true, discovered
	})
	if lines := logs.matching("Resource changed state"); strings.Count(strings.Join(lines, ""), "widgets") != 1 {
		t.Errorf("logged:\n%s", strings.Join(lines, "\n"))
	}
}

// What a resource turns out to be may take fields that its objects lack: they are read again. What is known no more
// changes nothing, nor does what takes less.
func TestFieldsGrowWithWhatIsKnown(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{widgets: healthy("a")})
	replicas := func(_ schema.GroupVersionResource, info Info) projection.Fields {
		switch {
		case info.Kind == "":
			return projection.Whole() // nobody asks about what is not known
		case info.ReplicasPath == nil:
			return projection.Fields{}
		}
		return projection.Fields{Set: fieldset.Of(info.ReplicasPath...)}
	}
	m, _, _ := run(t, Options{Config: server.config(), DiscoveryInterval: time.Hour, Fields: replicas}, widgets)
	eventually(t, 5*time.Second, m, widgets, Synced, "")
	definition, err := parseCRD(manifest(t, widgetCRD))
	if err != nil {
		t.Fatal(err)
	}
	path := func(path ...string) func(w *world) {
		return func(w *world) {
			w.crdsLive = true // the fake server has no CRDs to watch
			other := definition
			other.versions = []crdVersion{{name: widgets.Version, served: true, stored: true, hasScale: true, replicasPath: path}}
			w.crds[definition.resource] = other
		}
	}
	discovered := m.world.discovered
	for _, tc := range []struct {
		what   string
		change func(w *world)
		path   []string
		lists  int
		adapt  bool
	}{
		{"replicas", path("spec", "replicas"), []string{"spec", "replicas"}, 2, false},
		{"it is not known any more", func(w *world) { w.crdsLive, w.discovered = false, nil }, []string{"spec", "replicas"}, 2, true},
		{"it is known again", func(w *world) { w.crdsLive, w.discovered = true, discovered }, []string{"spec", "replicas"}, 2, true},
		{"no replicas", path(), nil, 2, true},
		{"elsewhere", path("spec", "size"), []string{"spec", "size"}, 3, false},
		{"where they were", path("spec", "replicas"), []string{"spec", "replicas"}, 3, true},
	} {
		m.mu.Lock()
		before := m.Epoch()
		tc.change(&m.world)
		m.reconcileLocked()
		m.mu.Unlock()
		m.announce()
		if tc.adapt {
			if err := m.Adapt(); err != nil {
				t.Fatal(err)
			}
		}
		if m.Epoch() == before {
			t.Errorf("%s: the epoch is the same", tc.what)
		}
		fields := projection.Fields{}
		if tc.path != nil {
			fields.Set = fieldset.Of(tc.path...)
		}
		testcluster.Eventually(t, 5*time.Second, func() error {
			if !m.Holds(widgets, fields) {
				return fmt.Errorf("%s: it lacks %v", tc.what, tc.path)
			}
			return nil
		})
		if got := server.count("LIST widgets"); got != tc.lists {
			t.Errorf("%s: %d lists, want %d", tc.what, got, tc.lists)
		}
	}
	if m.Holds(widgets, projection.Whole()) {
		t.Error("more is read because nothing was known")
	}
}
