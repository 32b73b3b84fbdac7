package gvr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// fakeServer answers discovery and hands everything else to what a test has set: for the misbehaviour that a real
// API server cannot be made to show.
type fakeServer struct {
	*httptest.Server

	mu       sync.Mutex
	handlers map[schema.GroupVersionResource]http.HandlerFunc // lists and watches of a resource
	requests map[string]int                                   // "LIST secrets", "WATCH secrets", "DISCOVERY"
	version  string                                           // testVersion, if it is empty
}

func (s *fakeServer) setVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

func newFakeServer(t testing.TB, handlers map[schema.GroupVersionResource]http.HandlerFunc) *fakeServer {
	s := &fakeServer{handlers: handlers, requests: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.Server.CloseClientConnections()
		s.Server.Close()
	})
	return s
}

func (s *fakeServer) config() *rest.Config { return &rest.Config{Host: s.URL} }

func (s *fakeServer) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[request]
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		s.mu.Lock()
		version := cmp.Or(s.version, testVersion)
		s.mu.Unlock()
		if version == noVersion {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, `{"gitVersion":%q}`, version)
	case "/api":
		s.discovery(w, func(group string) bool { return group == "" })
	case "/apis":
		s.mu.Lock()
		s.requests["DISCOVERY"]++
		s.mu.Unlock()
		s.discovery(w, func(group string) bool { return group != "" })
	default:
		for gvr, handler := range s.handlers {
			path := "/apis/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource
			if gvr.Group == "" {
				path = "/api/" + gvr.Version + "/" + gvr.Resource
			}
			if r.URL.Path != path {
				continue
			}
			verb := "LIST"
			if isWatch(r) {
				verb = "WATCH"
			}
			s.mu.Lock()
			s.requests[verb+" "+gvr.Resource]++
			s.mu.Unlock()
			handler(w, r)
			return
		}
		writeStatus(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func (s *fakeServer) discovery(w http.ResponseWriter, want func(group string) bool) {
	versions := map[schema.GroupVersion][]apidiscovery.APIResourceDiscovery{}
	for gvr := range s.handlers {
		versions[gvr.GroupVersion()] = append(versions[gvr.GroupVersion()], apidiscovery.APIResourceDiscovery{
			Resource:     gvr.Resource,
			ResponseKind: &metav1.GroupVersionKind{Group: gvr.Group, Version: gvr.Version, Kind: "Thing"},
			Scope:        apidiscovery.ScopeNamespace,
			Verbs:        []string{"list", "watch"},
		})
	}
	list := apidiscovery.APIGroupDiscoveryList{}
	for gv, resources := range versions {
		if want(gv.Group) {
			list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
				ObjectMeta: metav1.ObjectMeta{Name: gv.Group},
				Versions: []apidiscovery.APIVersionDiscovery{{
					Version: gv.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent, Resources: resources,
				}},
			})
		}
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(list)
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

func writeStatus(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Message: "the whole object, with its password hunter2", Reason: reason, Code: code,
	})
}

// healthy answers lists with the named objects and watches with silence. It knows no streamed lists.
func healthy(names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") != "" {
			writeStatus(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			return
		}
		if isWatch(r) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		items := []any{}
		for i, name := range names {
			items = append(items, map[string]any{
				"apiVersion": "v1", "kind": "Thing",
				"metadata": map[string]any{"name": name, "namespace": "default", "resourceVersion": fmt.Sprint(i + 1)},
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "v1", "kind": "ThingList", "metadata": map[string]any{"resourceVersion": "100"}, "items": items,
		})
	}
}
