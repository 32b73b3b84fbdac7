package gvr

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// byFirstLetter is an index of objects by how their names begin.
func byFirstLetter(obj any) ([]string, error) {
	return []string{obj.(*unstructured.Unstructured).GetName()[:1]}, nil
}

// An index that becomes necessary while informers run is there after Adapt,
// with all objects, and costs no request.
func TestAdaptAddsIndexes(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: healthy("a", "b", "bb"), secrets: healthy("c")})
	var indexers atomic.Pointer[cache.Indexers]
	indexers.Store(&cache.Indexers{})
	m, _, stop := run(t, Options{
		Config:   server.config(),
		Indexers: func(schema.GroupVersionResource) cache.Indexers { return *indexers.Load() },
	}, configmaps, secrets)
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 10*time.Second, m, secrets, Synced, "")
	if _, err := m.ByIndex(configmaps, "first", "b"); err == nil {
		t.Error("an index that nobody has asked for")
	}
	if err := m.Adapt(); err != nil { // nothing to do
		t.Error(err)
	}
	indexers.Store(&cache.Indexers{"first": byFirstLetter})
	for range 2 {
		if err := m.Adapt(); err != nil {
			t.Error(err)
		}
		if found, err := m.ByIndex(configmaps, "first", "b"); err != nil || len(found) != 2 {
			t.Errorf("found %d objects, %v", len(found), err)
		}
		if found, err := m.ByIndex(secrets, "first", "c"); err != nil || len(found) != 1 {
			t.Errorf("found %d objects, %v", len(found), err)
		}
	}
	for _, resource := range []string{"configmaps", "secrets"} {
		if got := server.count("LIST " + resource); got != 1 {
			t.Errorf("%d lists of %s", got, resource)
		}
	}
	stop()
	indexers.Store(&cache.Indexers{"second": byFirstLetter})
	if err := m.Adapt(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// managedFields that become necessary are read anew, where they are, and
// nowhere else; the index that comes at the same time is there too.
func TestAdaptReadsManagedFields(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: healthy("a"), secrets: healthy("c")})
	var wanted atomic.Bool
	m, _, _ := run(t, Options{
		Config:        server.config(),
		ManagedFields: func(gvr schema.GroupVersionResource) bool { return wanted.Load() && gvr == configmaps },
	}, configmaps, secrets)
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 10*time.Second, m, secrets, Synced, "")
	for _, want := range []bool{true, true, false} { // what is not needed any more costs no list either
		wanted.Store(want)
		if err := m.Adapt(); err != nil {
			t.Error(err)
		}
		testcluster.Eventually(t, 10*time.Second, func() error {
			if s := stateOf(m, configmaps); s.State != Synced || s.Objects != 1 {
				return fmt.Errorf("it is %s with %d objects", s.State, s.Objects)
			}
			return nil
		})
	}
	if c, s := server.count("LIST configmaps"), server.count("LIST secrets"); c != 2 || s != 1 {
		t.Errorf("%d lists of ConfigMaps and %d of Secrets, want 2 and 1", c, s)
	}
}
