package openapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientopenapi "k8s.io/client-go/openapi"
)

// fakeServer serves OpenAPI documents and counts requests.
type fakeServer struct {
	mu               sync.Mutex
	documents        map[string][]byte // by path
	hash             string
	err              error
	onList           func()
	lists, downloads atomic.Int64
	now              time.Time
}

func (f *fakeServer) PathsWithContext(context.Context) (map[string]clientopenapi.GroupVersionWithContext, error) {
	f.lists.Add(1)
	if f.onList != nil {
		f.onList()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	out := map[string]clientopenapi.GroupVersionWithContext{}
	for path := range f.documents {
		out[path] = &fakeDocument{f, path, "/openapi/v3/" + path + "?hash=" + f.hash}
	}
	return out, nil
}

type fakeDocument struct {
	server    *fakeServer
	path, url string
}

func (d *fakeDocument) ServerRelativeURL() string { return d.url }

func (d *fakeDocument) SchemaWithContext(context.Context, string) ([]byte, error) {
	d.server.downloads.Add(1)
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	return d.server.documents[d.path], d.server.err
}

func (f *fakeServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeServer) cluster() *Cluster {
	c := NewCluster(f)
	c.now = func() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.now }
	return c
}

// documentOf makes a document of built-in kinds as a server serves it.
func documentOf(t testing.TB, kinds ...schema.GroupVersionKind) []byte {
	t.Helper()
	definitions := map[string]json.RawMessage{}
	for _, gvk := range kinds {
		for name, raw := range mustBuiltin(t, gvk).definitions {
			definitions[name] = raw
		}
	}
	data, err := json.Marshal(map[string]any{"openapi": "3.0.0", "paths": map[string]any{}, "components": map[string]any{"schemas": definitions}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var (
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secretKind    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

func TestClusterAsksOncePerKind(t *testing.T) {
	server := &fakeServer{documents: map[string][]byte{
		"api/v1": documentOf(t, configMapKind, secretKind), "apis/apps/v1": documentOf(t, deploymentKind), "version": nil,
	}}
	cluster := server.cluster()
	wait := sync.WaitGroup{}
	for range 20 {
		wait.Go(func() {
			if typ, err := cluster.Type(t.Context(), deploymentKind); err != nil || typ.GVK() != deploymentKind {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if lists, downloads := server.lists.Load(), server.downloads.Load(); lists != 1 || downloads != 1 {
		t.Errorf("%d lists, %d documents for one kind", lists, downloads)
	}
	if _, err := cluster.Type(t.Context(), configMapKind); err != nil {
		t.Error(err)
	}
	if lists, downloads := server.lists.Load(), server.downloads.Load(); lists != 1 || downloads != 2 {
		t.Errorf("%d lists, %d documents for two kinds", lists, downloads)
	}
}

func TestClusterFailureIsNotFinal(t *testing.T) {
	boom := errors.New("boom")
	server := &fakeServer{documents: map[string][]byte{"api/v1": documentOf(t, configMapKind)}, err: boom}
	cluster := server.cluster()
	for range 100 {
		if _, err := cluster.Type(t.Context(), configMapKind); !errors.Is(err, boom) || errors.Is(err, ErrNoSchema) {
			t.Fatalf("got %v", err)
		}
	}
	if n := server.lists.Load(); n != 1 {
		t.Errorf("%d requests within one moment", n)
	}
	server.set(func() { server.err, server.now = nil, server.now.Add(retryAfter) })
	if _, err := cluster.Type(t.Context(), configMapKind); err != nil {
		t.Errorf("after the failure: %v", err)
	}
}

func TestClusterBadDocumentIsNotFinal(t *testing.T) {
	server := &fakeServer{documents: map[string][]byte{"api/v1": []byte(`{"components":`)}}
	cluster := server.cluster()
	if _, err := cluster.Type(t.Context(), configMapKind); err == nil || errors.Is(err, ErrNoSchema) {
		t.Fatalf("got %v", err)
	}
	server.set(func() {
		server.documents["api/v1"], server.now = documentOf(t, configMapKind), server.now.Add(retryAfter)
	})
	if _, err := cluster.Type(t.Context(), configMapKind); err != nil {
		t.Error(err)
	}
}

// TestClusterGivingUp: the caller's deadline is not the server's failure.
func TestClusterGivingUp(t *testing.T) {
	server := &fakeServer{documents: map[string][]byte{"api/v1": documentOf(t, configMapKind)}, err: context.Canceled}
	cluster := server.cluster()
	canceled, cancel := context.WithCancel(t.Context())
	server.onList = cancel
	if _, err := cluster.Type(canceled, configMapKind); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	server.set(func() { server.err = nil })
	if _, err := cluster.Type(t.Context(), configMapKind); err != nil {
		t.Error(err)
	}
}

// TestClusterKindThatAppears: in a new group, and in a document that is there already.
func TestClusterKindThatAppears(t *testing.T) {
	server := &fakeServer{documents: map[string][]byte{"api/v1": documentOf(t, configMapKind)}}
	cluster := server.cluster()
	for range 100 {
		for _, gvk := range []schema.GroupVersionKind{deploymentKind, secretKind} {
			if _, err := cluster.Type(t.Context(), gvk); !errors.Is(err, ErrNoSchema) {
				t.Fatalf("got %v", err)
			}
		}
	}
	if lists, downloads := server.lists.Load(), server.downloads.Load(); lists > 2 || downloads != 1 {
		t.Errorf("%d lists, %d documents within one moment", lists, downloads)
	}
	server.set(func() {
		server.documents["apis/apps/v1"] = documentOf(t, deploymentKind)
		server.documents["api/v1"] = documentOf(t, configMapKind, secretKind)
		server.hash = "2"
		server.now = server.now.Add(retryAfter)
	})
	for _, gvk := range []schema.GroupVersionKind{secretKind, deploymentKind} {
		if _, err := cluster.Type(t.Context(), gvk); err != nil {
			t.Error(err)
		}
	}
	if changed, err := cluster.Refresh(t.Context()); err != nil || len(changed) != 0 {
		t.Errorf("what was read last has changed: %v, %v", changed, err)
	}
}

func TestClusterRefresh(t *testing.T) {
	server := &fakeServer{hash: "1", documents: map[string][]byte{"api/v1": documentOf(t, configMapKind), "apis/apps/v1": documentOf(t, deploymentKind)}}
	cluster := server.cluster()
	get := func(gvk schema.GroupVersionKind) *Type {
		typ, err := cluster.Type(t.Context(), gvk)
		if err != nil {
			t.Fatal(err)
		}
		return typ
	}
	before := get(deploymentKind)
	if changed, err := cluster.Refresh(t.Context()); err != nil || len(changed) != 0 || get(deploymentKind) != before {
		t.Errorf("nothing changed: %v, %v", changed, err)
	}
	server.set(func() { server.err = errors.New("boom") })
	if _, err := cluster.Refresh(t.Context()); err == nil || get(deploymentKind) != before {
		t.Errorf("failed refresh: %v", err)
	}
	server.set(func() { server.err, server.hash = nil, "2" })
	if changed, err := cluster.Refresh(t.Context()); err != nil || len(changed) != 1 || changed[0] != deploymentKind {
		t.Errorf("another hash: %v, %v", changed, err)
	}
	after := get(deploymentKind)
	if after == before {
		t.Error("another hash: the old type")
	}
	cluster.Forget(deploymentKind.GroupKind())
	if get(deploymentKind) == after {
		t.Error("forgotten: the old type")
	}
	server.set(func() { delete(server.documents, "apis/apps/v1") })
	if changed, err := cluster.Refresh(t.Context()); err != nil || len(changed) != 1 {
		t.Errorf("gone: %v, %v", changed, err)
	}
	if _, err := cluster.Type(t.Context(), deploymentKind); !errors.Is(err, ErrNoSchema) {
		t.Errorf("gone: %v", err)
	}
}

// bigDocument is a document with n kinds, each of a size bytes.
func bigDocument(n, size int) []byte {
	doc := strings.Builder{}
	doc.WriteString(`{"openapi":"3.0.0","components":{"schemas":{`)
	description := strings.Repeat("what this field is for; ", 4)
	for i := range n {
		if i > 0 {
			doc.WriteByte(',')
		}
		fmt.Fprintf(&doc, `"io.big.v1.Big%d":{"type":"object","x-kubernetes-group-version-kind":[{"group":"big.io","version":"v1","kind":"Big%d"}],"properties":{`, i, i)
		for start, j := doc.Len(), 0; doc.Len()-start < size; j++ {
			if j > 0 {
				doc.WriteByte(',')
			}
			fmt.Fprintf(&doc, `"field%d":{"type":"object","description":"%s","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"string"}}}}`, j, description)
		}
		doc.WriteString(`}}`)
	}
	doc.WriteString(`}}}`)
	return []byte(doc.String())
}

// TestClusterMemory: of 200 kinds of 100 KB in one document, one is used.
func TestClusterMemory(t *testing.T) {
	server := &fakeServer{documents: map[string][]byte{"apis/big.io/v1": bigDocument(200, 100_000)}}
	cluster := server.cluster()
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var before, after runtime.MemStats
	heapBefore := heap()
	runtime.ReadMemStats(&before)
	start := time.Now()
	typ, err := cluster.Type(t.Context(), schema.GroupVersionKind{Group: "big.io", Version: "v1", Kind: "Big7"})
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	kept := heap() - heapBefore
	t.Logf("document of %d bytes: %s, %d bytes allocated, %d kept", len(server.documents["apis/big.io/v1"]), took.Round(time.Millisecond), after.TotalAlloc-before.TotalAlloc, kept)
	if kept > 2<<20 {
		t.Errorf("%d bytes are kept for one kind", kept)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 100<<20 {
		t.Errorf("%d bytes allocated on the way", total)
	}
	runtime.KeepAlive(typ)
	runtime.KeepAlive(cluster)
}
