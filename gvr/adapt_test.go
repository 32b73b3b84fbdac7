package gvr

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			if s := stateOf(m, configmaps); s.State != Synced || s.Objects != 1 || m.Stripped(configmaps) {
				return fmt.Errorf("it is %s with %d objects, stripped: %v", s.State, s.Objects, m.Stripped(configmaps))
			}
			return nil
		})
	}
	if c, s := server.count("LIST configmaps"), server.count("LIST secrets"); c != 2 || s != 1 {
		t.Errorf("%d lists of ConfigMaps and %d of Secrets, want 2 and 1", c, s)
	}
}

// rereading is a Manager whose ConfigMaps "kept" and "gone" are being read again: the list of the second informer waits,
// and has only "kept".
type rereading struct {
	*Manager
	logs    *logBuffer
	answer  chan http.HandlerFunc // of the second list
	deleted chan string
	renewed atomic.Int32
	added   atomic.Int32
	index   atomic.Pointer[cache.Indexers]
	server  *fakeServer
}

func newRereading(t *testing.T) *rereading {
	r := &rereading{answer: make(chan http.HandlerFunc), deleted: make(chan string, 10)}
	var lists, wanted atomic.Int32
	r.index.Store(&cache.Indexers{})
	r.server = newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{
		secrets: healthy("c"),
		configmaps: func(w http.ResponseWriter, q *http.Request) {
			if isWatch(q) || lists.Add(1) == 1 {
				healthy("kept", "gone")(w, q)
				return
			}
			select {
			case answer := <-r.answer:
				answer(w, q)
			case <-q.Context().Done():
			}
		},
	})
	r.Manager, r.logs, _ = run(t, Options{
		Config:        r.server.config(),
		ManagedFields: func(gvr schema.GroupVersionResource) bool { return wanted.Load() > 0 && gvr == configmaps },
		Indexers:      func(schema.GroupVersionResource) cache.Indexers { return *r.index.Load() },
		OnRenewal:     func(schema.GroupVersionResource) { r.renewed.Add(1) },
		Handler: func(gvr schema.GroupVersionResource) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { r.added.Add(1) },
				DeleteFunc: func(obj any) { r.deleted <- obj.(cache.DeletedFinalStateUnknown).Key },
			}
		},
	}, configmaps, secrets)
	eventually(t, 10*time.Second, r.Manager, configmaps, Synced, "")
	eventually(t, 10*time.Second, r.Manager, secrets, Synced, "")
	wanted.Store(1)
	for range 2 { // the second time there is nothing to do
		if err := r.Adapt(); err != nil {
			t.Fatal(err)
		}
	}
	testcluster.Eventually(t, 10*time.Second, func() error {
		if n := lists.Load(); n != 2 {
			return fmt.Errorf("%d lists", n)
		}
		return nil
	})
	return r
}

// wantServed says that the first informer serves as if nothing were.
func (r *rereading) wantServed(t *testing.T) {
	t.Helper()
	if s := stateOf(r.Manager, configmaps); s.State != Synced || s.Objects != 2 || !r.Synced(configmaps) {
		t.Errorf("it is %s (%s) with %d objects", s.State, s.Reason, s.Objects)
	}
	if _, ok := r.Get(configmaps, "default", "gone"); !ok || !r.Stripped(configmaps) {
		t.Error("the store before does not serve")
	}
}

// The informer that lacks managedFields serves until another one has synced. Indexes come to both, and a deletion that
// neither saw is told.
func TestTheStoreBeforeServesMeanwhile(t *testing.T) {
	r := newRereading(t)
	r.wantServed(t)
	r.index.Store(&cache.Indexers{"first": byFirstLetter})
	if err := r.Adapt(); err != nil {
		t.Fatal(err)
	}
	if found, err := r.ByIndex(configmaps, "first", "g"); err != nil || len(found) != 1 {
		t.Errorf("%d objects found, %v", len(found), err)
	}
	r.answer <- healthy("kept")
	testcluster.Eventually(t, 10*time.Second, func() error {
		if n := r.renewed.Load(); n != 1 {
			return fmt.Errorf("%d renewals", n)
		}
		return nil
	})
	if s := stateOf(r.Manager, configmaps); s.State != Synced || s.Objects != 1 || r.Stripped(configmaps) {
		t.Errorf("it is %s (%s) with %d objects", s.State, s.Reason, s.Objects)
	}
	if found, err := r.ByIndex(configmaps, "first", "k"); err != nil || len(found) != 1 {
		t.Errorf("%d objects found, %v", len(found), err)
	}
	select {
	case got := <-r.deleted:
		if got != "default/gone" || len(r.deleted) > 0 {
			t.Errorf("%s was deleted, and %d more", got, len(r.deleted))
		}
	default:
		t.Error("a deletion is lost")
	}
	if got := r.added.Load(); got != 4 { // two ConfigMaps, a Secret; the one that is kept again
		t.Errorf("%d objects added, want 4", got)
	}
	if lines := r.logs.matching("configmaps"); len(lines) != 1 {
		t.Errorf("logged: %q", lines)
	}
}

// An informer that cannot read leaves the one before alone; when it can, it takes over.
func TestASuccessorThatCannotRead(t *testing.T) {
	r := newRereading(t)
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		writeStatus(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
	for range 3 {
		r.answer <- refuse
	}
	r.wantServed(t)
	r.answer <- healthy("kept")
	testcluster.Eventually(t, 20*time.Second, func() error {
		if r.Stripped(configmaps) {
			return errors.New("the store before still serves")
		}
		return nil
	})
	eventually(t, 0, r.Manager, configmaps, Synced, "")
	if lines := r.logs.matching("configmaps"); len(lines) != 1 {
		t.Errorf("logged: %q", lines)
	}
}

// A resource that is not in use any more is neither served nor read.
func TestASuccessorGoesWithItsResource(t *testing.T) {
	r := newRereading(t)
	r.mu.Lock()
	old := r.resources[configmaps].informers[""]
	next := old.successor
	r.mu.Unlock()
	r.Use([]schema.GroupVersionResource{secrets})
	for _, i := range []*informer{old, next} {
		select {
		case <-i.ended:
		case <-time.After(10 * time.Second):
			t.Fatal("an informer goes on")
		}
	}
	r.takeOver(t.Context(), old, next) // as if its store had synced at that moment
	if _, ok := r.Get(configmaps, "default", "kept"); ok || r.renewed.Load() > 0 {
		t.Error("it still serves")
	}
}
