package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// A namespace that does not exist looks like one that is empty: it is told, and
// not any more when it has come. And who starts run sees which built-in rules are on.
func TestRunTellsOfANamespaceThatIsNotThere(t *testing.T) {
	f := newRBACFixture(t)
	if err := f.cp.WriteKubeconfig(f.kubeconfig, "runner-of-"+f.ns, "system:masters"); err != nil {
		t.Fatal(err)
	}
	coming := f.ns + "-coming"
	r := f.run("--namespace", f.ns+","+coming)
	missing := fmt.Sprintf("[!] --namespace: there is no namespace %q", coming)
	r.wantReadyz("\nready", missing)
	if !strings.Contains(r.stderr.String(), `builtin=["expected-replicas"]`) {
		t.Errorf("it does not say which built-in rules are on:\n%s", r.stderr)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: coming}}
	if _, err := f.admin.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wantNoLonger(missing)
	if n := strings.Count(r.stderr.String(), "there is no namespace"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, r.stderr)
	}
}

// wantNoLonger waits until /readyz does not have a text in it.
func (r *running) wantNoLonger(text string) {
	r.Helper()
	testcluster.Eventually(r, time.Minute, func() error {
		resp, err := http.Get("http://" + servingAt.FindStringSubmatch(r.stderr.String())[1] + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && strings.Contains(string(body), text) {
			err = fmt.Errorf("it still says:\n%s", body)
		}
		return err
	})
}

// A namespace that does not exist is told of too where the API server was away
// when run began.
func TestANamespaceThatIsNotThereAfterAnOutage(t *testing.T) {
	f := newRBACFixture(t)
	if err := f.cp.WriteKubeconfig(f.kubeconfig, "runner-of-"+f.ns, "system:masters"); err != nil {
		t.Fatal(err)
	}
	open := f.behindAPort()
	coming := f.ns + "-coming"
	r := f.run("--namespace", f.ns+","+coming)
	r.wantReadyz("[-] discovery: has not succeeded yet: ")
	open()
	r.wantReadyz("\nready", fmt.Sprintf("[!] --namespace: there is no namespace %q", coming))
}

// With --once, too, it is waited for the API server; a Namespace that cannot be read
// would look as if it had no opt-outs.
func TestOnceWaitsForNamespaces(t *testing.T) {
	f := newRBACFixture(t)
	if err := f.cp.WriteKubeconfig(f.kubeconfig, "runner-of-"+f.ns, "system:masters"); err != nil {
		t.Fatal(err)
	}
	label := []byte(`{"metadata": {"annotations": {"rectifier.dev/skip": "*"}}}`)
	if _, err := f.admin.CoreV1().Namespaces().Patch(t.Context(), f.ns, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	args := []string{"run", "--once", "--kubeconfig", f.kubeconfig, "--rules", f.someRule(), "--builtin", "none", "--namespace", f.ns}
	open := f.behindAPort()
	if code, _, told := invoke(t, append(args, "--timeout", "2s")...); code != exitCluster || !strings.Contains(told, "get namespaces "+f.ns) {
		t.Errorf("without an API server: exit code %d\n%s", code, told)
	}
	done := make(chan string, 1)
	go func() {
		code, out, told := invoke(t, append(args, "--timeout", "1m")...)
		done <- fmt.Sprintf("%d %s%s", code, out, told)
	}()
	select {
	case result := <-done:
		t.Errorf("it does not wait: %s", result)
	case <-time.After(2 * againOnce):
	}
	open()
	if result := <-done; !strings.HasPrefix(result, "0 fixed 0, failed 0, left alone 1") {
		t.Error(result)
	}
}

// behindAPort has the kubeconfig lead to a port of the test's own, which is closed
// until open is called.
func (f *rbacFixture) behindAPort() (open func()) {
	f.Helper()
	text, err := os.ReadFile(f.kubeconfig)
	if err != nil {
		f.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	host := strings.TrimSuffix(f.cp.AdminConfig().Host, "/")
	if !bytes.Contains(text, []byte(host)) {
		f.Fatalf("the kubeconfig does not lead to %s", host)
	}
	if err := os.WriteFile(f.kubeconfig, bytes.ReplaceAll(text, []byte(host), []byte("https://"+address)), 0o600); err != nil {
		f.Fatal(err)
	}
	return func() {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = listener.Close() })
		go pass(listener, strings.TrimPrefix(host, "https://"))
	}
}

// pass leads the connections of a listener to an address until it is closed.
func pass(listener net.Listener, address string) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", address)
		if err != nil {
			_ = in.Close()
			continue
		}
		for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
			}()
		}
	}
}
