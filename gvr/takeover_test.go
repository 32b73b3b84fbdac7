package gvr

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/rectifier-dev/rectifier/gvr/projection"
)

// An API server whose watch cache lags (one of several) answers the successor's LIST with an older state.
// It does not serve before it has seen what the informer before it has.
func TestASuccessorIsNotOlderThanWhatServes(t *testing.T) {
	var lists atomic.Int32
	release := make(chan struct{})
	h := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") != "" {
			writeStatus(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			return
		}
		thing := func(name, rv string) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "Thing", "metadata": map[string]any{"name": name, "namespace": "default", "uid": name, "resourceVersion": rv}, "a": "x"}
		}
		if isWatch(r) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			if r.URL.Query().Get("resourceVersion") == "60" {
				select {
				case <-release:
				case <-r.Context().Done():
					return
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": thing("b", "90")})
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
			return
		}
		items, rv := []any{thing("a", "1"), thing("b", "90")}, "90"
		if lists.Add(1) > 1 {
			items, rv = items[:1], "60"
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "v1", "kind": "ThingList", "metadata": map[string]any{"resourceVersion": rv}, "items": items})
	}
	server := newFakeServer(t, map[schema.GroupVersionResource]http.HandlerFunc{configmaps: h})
	var mu sync.Mutex
	var events []string
	note := func(what string, obj any) {
		name, _ := cache.DeletionHandlingObjectToName(obj)
		mu.Lock()
		defer mu.Unlock()
		events = append(events, what+" "+name.Name)
	}
	var w wanted
	w.set(projection.Fields{})
	m, _, _ := run(t, Options{Config: server.config(), DiscoveryInterval: time.Hour, Fields: w.fields,
		Handler: func(schema.GroupVersionResource) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{
				AddFunc: func(o any) { note("add", o) }, DeleteFunc: func(o any) { note("delete", o) },
			}
		}}, configmaps)
	eventually(t, 5*time.Second, m, configmaps, Synced, "")
	w.set(fieldsOf("a"))
	if err := m.Adapt(); err != nil {
		t.Fatal(err)
	}
	// The successor has what it listed, and waits.
	for deadline := time.Now().Add(30 * time.Second); lists.Load() < 2 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	there := func() bool { _, ok := m.Get(configmaps, "default", "b"); return ok }
	if !there() || m.Holds(configmaps, fieldsOf("a")) {
		t.Error("an older store serves: an object that is in the cluster is not in it")
	}
	close(release)
	for deadline := time.Now().Add(30 * time.Second); !m.Holds(configmaps, fieldsOf("a")) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	mu.Lock()
	defer mu.Unlock()
	if !m.Holds(configmaps, fieldsOf("a")) || !there() || slices.Contains(events, "delete b") {
		t.Errorf("it has caught up, and serves: %v, with the object: %v, after %q", m.Holds(configmaps, fieldsOf("a")), there(), events)
	}
}
