package gvr

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
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
