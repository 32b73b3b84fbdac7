package gvr

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// fieldsOf are some fields.
func fieldsOf(names ...string) projection.Fields {
	f := projection.Fields{Set: fieldset.Empty()}
	for _, name := range names {
		f.Set = f.Set.Union(fieldset.Of(name))
	}
	return f
}

// wanted is what a test wants of ConfigMaps; of others, nothing is.
type wanted struct {
	atomic.Pointer[projection.Fields]
}

func (w *wanted) set(f projection.Fields) { w.Store(&f) }

func (w *wanted) fields(gvr schema.GroupVersionResource, _ Info) projection.Fields {
	if f := w.Load(); f != nil && gvr == configmaps {
		return *f
	}
	return projection.Fields{}
}

// byFirstLetter is an index of objects by how their names begin.
func byFirstLetter(obj any) ([]string, error) {
	return []string{obj.(*projection.Object).Name()[:1]}, nil
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

// Fields that become necessary are read anew, where they are, and nowhere else; the index that comes at the same time is
// there too. Fewer are not.
func TestAdaptReadsFields(t *testing.T) {
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: healthy("a"), secrets: healthy("c")})
	var wanted wanted
	m, _, _ := run(t, Options{Config: server.config(), Fields: wanted.fields}, configmaps, secrets)
	eventually(t, 10*time.Second, m, configmaps, Synced, "")
	eventually(t, 10*time.Second, m, secrets, Synced, "")
	managed := fieldsOf("a")
	managed.ManagedFields = true
	for _, tc := range []struct {
		what  string
		want  projection.Fields
		lists int
	}{
		{"a field", fieldsOf("a"), 2},
		{"the same again", fieldsOf("a"), 2},
		{"what is not needed any more costs no list either", projection.Fields{}, 2},
		{"it is there still", fieldsOf("a"), 2},
		{"another one", fieldsOf("b"), 3},
		{"both are there", fieldsOf("a", "b"), 3},
		{"managedFields", managed, 4},
		{"everything", projection.Whole(), 5},
	} {
		t.Run(tc.what, func(t *testing.T) {
			wanted.set(tc.want)
			if err := m.Adapt(); err != nil {
				t.Error(err)
			}
			testcluster.Eventually(t, 10*time.Second, func() error {
				if s := stateOf(m, configmaps); s.State != Synced || s.Objects != 1 || !m.Holds(configmaps, tc.want) {
					return fmt.Errorf("it is %s with %d objects, holds the fields: %v", s.State, s.Objects, m.Holds(configmaps, tc.want))
				}
				return nil
			})
			if c, s := server.count("LIST configmaps"), server.count("LIST secrets"); c != tc.lists || s != 1 {
				t.Errorf("%d lists of ConfigMaps and %d of Secrets, want %d and 1", c, s, tc.lists)
			}
		})
	}
}

// rereading is a Manager whose ConfigMaps "kept" and "gone" are being read again: the list of the second informer waits,
// and has only "kept".
type rereading struct {
	*Manager
	logs    *logBuffer
	answer  chan http.HandlerFunc // of the second list
	deleted chan string
	wanted  wanted
	lists   atomic.Int32
	renewed atomic.Int32
	added   atomic.Int32
	index   atomic.Pointer[cache.Indexers]
	server  *fakeServer
}

func newRereading(t *testing.T) *rereading {
	r := &rereading{answer: make(chan http.HandlerFunc), deleted: make(chan string, 10)}
	r.index.Store(&cache.Indexers{})
	r.server = newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{
		secrets: healthy("c"),
		configmaps: func(w http.ResponseWriter, q *http.Request) {
			if isWatch(q) || r.lists.Add(1) == 1 {
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
		Config:    r.server.config(),
		Fields:    r.wanted.fields,
		Indexers:  func(schema.GroupVersionResource) cache.Indexers { return *r.index.Load() },
		OnRenewal: func(schema.GroupVersionResource) { r.renewed.Add(1) },
		Handler: func(gvr schema.GroupVersionResource) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { r.added.Add(1) },
				DeleteFunc: func(obj any) { r.deleted <- obj.(cache.DeletedFinalStateUnknown).Key },
			}
		},
	}, configmaps, secrets)
	eventually(t, 10*time.Second, r.Manager, configmaps, Synced, "")
	eventually(t, 10*time.Second, r.Manager, secrets, Synced, "")
	r.wanted.set(fieldsOf("a"))
	for range 2 { // the second time there is nothing to do
		if err := r.Adapt(); err != nil {
			t.Fatal(err)
		}
	}
	r.listed(t, 2)
	return r
}

// listed waits until there were so many lists of ConfigMaps.
func (r *rereading) listed(t *testing.T, want int32) {
	t.Helper()
	testcluster.Eventually(t, 10*time.Second, func() error {
		if n := r.lists.Load(); n != want {
			return fmt.Errorf("%d lists, not %d", n, want)
		}
		return nil
	})
}

// holds says whether the objects have the first field that they lacked.
func (r *rereading) holds() bool { return r.Holds(configmaps, fieldsOf("a")) }

// wantServed says that the first informer serves as if nothing were.
func (r *rereading) wantServed(t *testing.T) {
	t.Helper()
	if s := stateOf(r.Manager, configmaps); s.State != Synced || s.Objects != 2 || !r.Synced(configmaps) {
		t.Errorf("it is %s (%s) with %d objects", s.State, s.Reason, s.Objects)
	}
	if _, ok := r.Get(configmaps, "default", "gone"); !ok || r.holds() {
		t.Error("the store before does not serve")
	}
}

// The informer that lacks fields serves until another one has synced. Indexes come to both, and a deletion that
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
	if s := stateOf(r.Manager, configmaps); s.State != Synced || s.Objects != 1 || !r.holds() {
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
		if !r.holds() {
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

// More is wanted while a successor fills its store: another one takes its place, with all that was wanted so far.
func TestASuccessorThatLacksFieldsIsReplaced(t *testing.T) {
	r := newRereading(t)
	r.mu.Lock()
	replaced := r.resources[configmaps].informers[""].successor
	r.mu.Unlock()
	r.wanted.set(fieldsOf("b"))
	if err := r.Adapt(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-replaced.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	r.listed(t, 3)
	r.wantServed(t)
	r.answer <- healthy("kept")
	testcluster.Eventually(t, 10*time.Second, func() error {
		if n := r.renewed.Load(); n != 1 || !r.Holds(configmaps, fieldsOf("a", "b")) {
			return fmt.Errorf("%d renewals, and not both fields", n)
		}
		return nil
	})
	if got := <-r.deleted; got != "default/gone" {
		t.Errorf("%s was deleted", got)
	}
}

// A successor is succeeded in its turn while it still takes over: what went before either of them had read is told.
func TestASuccessorOfASuccessor(t *testing.T) {
	r := newRereading(t)
	r.mu.Lock()
	first := r.resources[configmaps].informers[""]
	second := first.successor
	r.mu.Unlock()
	block := make(chan struct{})
	second.handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-block }} // it takes its time
	r.answer <- healthy("kept")
	testcluster.Eventually(t, 10*time.Second, func() error {
		if !r.holds() {
			return errors.New("it does not serve yet")
		}
		return nil
	})
	r.wanted.set(fieldsOf("b"))
	if err := r.Adapt(); err != nil {
		t.Fatal(err)
	}
	r.listed(t, 3)
	r.answer <- healthy("kept")
	testcluster.Eventually(t, 10*time.Second, func() error {
		if !r.Holds(configmaps, fieldsOf("b")) {
			return errors.New("the second one does not serve yet")
		}
		return nil
	})
	close(block)
	select {
	case got := <-r.deleted:
		if got != "default/gone" {
			t.Errorf("%s was deleted", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("a deletion is lost")
	}
	for _, i := range []*informer{first, second} {
		select {
		case <-i.ended:
		case <-time.After(10 * time.Second):
			t.Fatal("an informer goes on")
		}
	}
}
