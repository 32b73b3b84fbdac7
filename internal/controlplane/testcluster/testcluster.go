package testcluster

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

// shared is the control plane of this test binary.
var shared struct {
	mu       sync.Mutex
	main     bool // Main is running, so that somebody will stop it
	tried    bool
	instance *controlplane.ControlPlane
	err      error
}

// Main runs the package's tests, stops the control plane if one of them started
// it, and returns the exit code.
func Main(m *testing.M) (code int) {
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()
	defer func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.instance == nil {
			return
		}
		if err := shared.instance.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	return m.Run()
}

// Start returns the package's control plane, with its audit log on. The first
// call takes a few seconds; if it fails, so do all others, at once.
func Start(t testing.TB) *controlplane.ControlPlane {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		t.Fatal("testcluster.Start needs: func TestMain(m *testing.M) { os.Exit(testcluster.Main(m)) }")
	}
	if !shared.tried {
		shared.tried = true
		shared.instance, shared.err = controlplane.Start(context.Background(), controlplane.Options{Audit: true})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.instance
}

// Dynamic returns an administrator's dynamic client.
func Dynamic(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(Start(t).AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var notDNS = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace creates a namespace that no other test has, and returns its name,
// which begins with the test's.
func Namespace(t testing.TB) string {
	t.Helper()
	prefix := notDNS.ReplaceAllString(strings.ToLower(t.Name()), "-")
	prefix = strings.Trim(prefix[:min(len(prefix), 40)], "-")
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"generateName": prefix + "-"},
	}}
	created, err := Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return created.GetName()
}

// Eventually calls condition every 20 ms until it returns nil, and fails the test
// with its last error when that does not happen within the timeout. It must be
// called from the test's goroutine.
func Eventually(t testing.TB, timeout time.Duration, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", timeout, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the test ended while waiting: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
