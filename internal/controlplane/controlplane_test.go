package controlplane

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/rectifier-dev/rectifier/internal/controlplane/binaries"
)

// childEnv makes the test binary start a control plane, say so and hang, so
// that a test can kill it.
const childEnv = "RECTIFIER_TEST_CONTROL_PLANE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		c, err := Start(context.Background(), Options{})
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(c.dir + "\n")
		select {}
	}
	os.Exit(m.Run())
}

func start(t *testing.T, options Options) *ControlPlane {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	c, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func pids(t *testing.T, dir string, names ...string) []int {
	t.Helper()
	var ids []int
	for _, name := range names {
		pid, err := readPID(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, pid)
	}
	return ids
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func TestStopLeavesNothing(t *testing.T) {
	c := start(t, Options{})
	ids := append(pids(t, c.dir, etcd, apiServer), c.guard.cmd.Process.Pid)
	for _, pid := range ids {
		if !alive(pid) {
			t.Fatalf("process %d is not running", pid)
		}
	}
	host, err := url.Parse(c.AdminConfig().Host)
	if err != nil || !net.ParseIP(host.Hostname()).IsLoopback() {
		t.Errorf("the API server is at %s, not on loopback (%v)", host, err)
	}
	// An open watch would hold up a graceful stop for a minute.
	client, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client.Resource(namespaces).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	begun := time.Now()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
	for _, pid := range ids {
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", c.dir, err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	if err := c.StartAPIServer(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("StartAPIServer after Stop: %v", err)
	}
}

func TestNothingOutlivesAKilledParent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=1")
	child.Stderr = os.Stderr
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	line := make([]byte, 4096)
	n, err := stdout.Read(line)
	if err != nil {
		t.Fatalf("the child said nothing: %v", err)
	}
	dir := strings.TrimSpace(string(line[:n]))
	ids := pids(t, dir, etcd, apiServer)

	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range ids {
		eventually(t, "process "+strconv.Itoa(pid)+" is gone", func() bool { return !alive(pid) })
	}
	eventually(t, dir+" is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// A server whose parent is gone also dies of a broken pipe, at its next log
// line; what the guard does by itself therefore has a test of its own.
func TestTheGuardKillsAndCleansUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	g, err := startGuard(dir)
	if err != nil {
		t.Fatal(err)
	}
	launcher, err := writeLauncher(dir, "server", "/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	server, err := startProcess(launcher, []string{"1000"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer server.stop()
	eventually(t, "the launcher has written its process id", func() bool {
		_, err := readPID(dir, "server")
		return err == nil
	})
	if got := pids(t, dir, "server")[0]; got != server.cmd.Process.Pid {
		t.Errorf("process id %d, recorded as %d", server.cmd.Process.Pid, got)
	}
	if err := g.release(); err != nil {
		t.Error(err)
	}
	select {
	case <-server.done:
	case <-time.After(10 * time.Second):
		t.Error("the guard left the server running")
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the guard left the folder: %v", err)
	}
}

func TestTheAPIServerComesBackWithItsData(t *testing.T) {
	c := start(t, Options{})
	client, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	before, err := client.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.StartAPIServer(t.Context()); err == nil {
		t.Error("a running API server was started again")
	}
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{}); err == nil {
		t.Fatal("a killed API server answers")
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := client.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if before.GetUID() != after.GetUID() {
		t.Errorf("the default namespace had uid %s and has %s", before.GetUID(), after.GetUID())
	}
}

func TestOldVersionsAreGoneAfterACompaction(t *testing.T) {
	c := start(t, Options{APIServerArgs: map[string][]string{"watch-cache": {"false"}}})
	client, err := dynamic.NewForConfig(c.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := client.Resource(namespaces).Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		_, err := client.Resource(namespaces).List(t.Context(), metav1.ListOptions{
			ResourceVersion: namespace.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		return err
	}
	if err := list(); err != nil {
		t.Fatalf("before: %v", err)
	}
	if err := c.CompactEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := list(); !apierrors.IsResourceExpired(err) {
		t.Errorf("a list of a version that etcd has forgotten: %v, not 410", err)
	}
}

func TestAFailedStartSaysWhy(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real API server: skipped with -short")
	}
	var log bytes.Buffer
	c, err := Start(t.Context(), Options{
		APIServerArgs: map[string][]string{"authorization-mode": {"NoSuchMode"}},
		Output:        &log,
	})
	if err == nil {
		c.Stop()
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "NoSuchMode") || log.Len() == 0 {
		t.Errorf("the reason is missing: %v", err)
	}
}

func TestMissingBinaries(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	_, err := Start(t.Context(), Options{})
	if !errors.Is(err, binaries.ErrMissing) || !strings.Contains(err.Error(), "make control-plane") {
		t.Errorf("got %v", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	log := &tail{next: io.Discard}
	for i := range 1000 {
		if _, err := log.Write([]byte("line " + strconv.Itoa(i) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	if len(log.kept) > tailSize {
		t.Errorf("%d bytes are kept", len(log.kept))
	}
	if last := log.lastLines("x"); !strings.HasSuffix(last, "\n  line 998\n  line 999") || strings.Count(last, "\n") != 12 {
		t.Errorf("last lines:\n%s", last)
	}
}
