package prometheus

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// drift has a ConfigMap want a value.
func (l *lab) drift(name, value string) {
	l.Helper()
	if err := l.want(name, value); err != nil {
		l.Fatalf("drift: %v", err)
	}
}

// setBack does what a GitOps controller would: what the rule has changed is as it
// was before.
func (l *lab) setBack(name string) error {
	_, err := l.client.Resource(configmaps).Namespace(l.ns).Patch(l.Context(), name, types.MergePatchType,
		[]byte(`{"data":{"is":"something else"}}`), metav1.PatchOptions{FieldManager: "argocd-controller"})
	return err
}

// exporter stands for a Rectifier.
type exporter struct {
	address string
	said    atomic.Pointer[string]
}

func newExporter(l *lab) *exporter {
	e := &exporter{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if said := e.said.Load(); said != nil {
			_, _ = io.WriteString(w, *said)
		}
	}))
	l.Cleanup(server.Close)
	e.address = server.Listener.Addr().String()
	return e
}

func (e *exporter) say(metrics ...string) {
	said := strings.Join(metrics, "\n") + "\n"
	e.said.Store(&said)
}

// front is a proxy before the API server that can be out of order.
type front struct {
	*lab
	server  *httptest.Server
	failing atomic.Bool

	mu          sync.Mutex
	connections map[net.Conn]bool
}

func newFront(l *lab) *front {
	l.Helper()
	config := l.cp.AdminConfig()
	transport, err := rest.TransportFor(config)
	if err != nil {
		l.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		l.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	f := &front{lab: l, connections: map[net.Conn]bool{}}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.failing.Load() && (r.Method != http.MethodPatch || strings.Contains(r.URL.Path, "/events")) {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	f.server.Config.ConnState = f.note
	f.server.Start()
	l.Cleanup(func() {
		f.cut()
		f.server.Close()
	})
	return f
}

func (f *front) note(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(f.connections, c)
	} else {
		f.connections[c] = true
	}
}

// cut closes the connections: open watches end.
func (f *front) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.connections {
		_ = c.Close()
	}
}

// fail has everything but changes fail, or not.
func (f *front) fail(now bool) {
	f.failing.Store(now)
	f.cut()
}

// kubeconfig leads through the front, which knows who asks.
func (f *front) kubeconfig() string {
	f.Helper()
	file := filepath.Join(f.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, f.server.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		f.Fatal(err)
	}
	return file
}
