package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
)

// Whoever waits for the cluster learns that its API server has died, and nothing
// of it is left.
func TestADeadAPIServerIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out output
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, controlplane.Options{}, &out) }()
	var dir string
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		if m := regexp.MustCompile(`export KUBECONFIG=(.*)`).FindStringSubmatch(out.String()); m != nil {
			dir = filepath.Dir(m[1])
		}
		return dir != "", nil
	})
	if err != nil {
		t.Fatalf("it does not say how to use it: %v\n%s", err, out.String())
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended by itself: %v", err)
	default:
	}
	text, err := os.ReadFile(filepath.Join(dir, "kube-apiserver.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		t.Fatalf("the process id is %q", text)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "kube-apiserver does not serve any more") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it is not noticed")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data is still there: %v", err)
	}
}

// An interrupt is no loss.
func TestAnInterruptIsNoError(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out output
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, controlplane.Options{}, &out) }()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return strings.Contains(out.String(), "Ctrl-C"), nil
	}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// output is a buffer that is read while it is written.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}
