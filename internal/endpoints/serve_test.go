package endpoints

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/klog/v2/textlogger"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// serving is a server on a port of this machine.
type serving struct {
	*testing.T
	address string
	stop    context.CancelFunc
	done    chan error
	log     *lockedBuffer
}

// start serves until the test ends. adjust changes the server before: limits
// that would take a test long.
func start(t *testing.T, handler http.Handler, config *tls.Config, adjust func(*http.Server)) *serving {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{T: t, address: listener.Addr().String(), done: make(chan error, 1), log: &lockedBuffer{}}
	server := newServer(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(s.log), textlogger.Verbosity(2))), handler, config)
	if adjust != nil {
		adjust(server)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	go func() { s.done <- serve(ctx, listener, server) }()
	t.Cleanup(func() {
		s.stop()
		if err := <-s.done; err != nil {
			t.Errorf("the server ended with: %v", err)
		}
		s.done <- nil
	})
	return s
}

func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	config, err := SelfSigned("here")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// client trusts everybody, as one of a self-signed certificate has to.
func client(http2 bool, version uint16) *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MaxVersion: version},
		ForceAttemptHTTP2: http2,
	}}
}

func TestTLS(t *testing.T) {
	s := start(t, text("hello"), selfSigned(t), nil)
	for _, h2 := range []bool{false, true} {
		response, err := client(h2, 0).Get("https://" + s.address)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if string(body) != "hello\n" || response.ProtoMajor == 2 != h2 {
			t.Errorf("%s %q", response.Proto, body)
		}
		leaf := response.TLS.PeerCertificates[0]
		for _, name := range []string{"here", "localhost", "127.0.0.1"} {
			if err := leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := client(false, tls.VersionTLS11).Get("https://" + s.address); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	response, err := http.Get("http://" + s.address)
	if err == nil && response.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %s", response.Status)
	}
}

// What a client does slowly, or too much of, costs it its connection.
func TestSlowClientsAreCutOff(t *testing.T) {
	for name, server := range map[string]*http.Server{"the server": newServer(textlogger.NewLogger(textlogger.NewConfig()), nil, nil)} {
		for what, limit := range map[string]time.Duration{"header": server.ReadHeaderTimeout, "read": server.ReadTimeout, "write": server.WriteTimeout, "idle": server.IdleTimeout} {
			if limit <= 0 || limit > time.Minute {
				t.Errorf("%s: the %s timeout is %v", name, what, limit)
			}
		}
	}
	s := start(t, text("hello"), nil, func(s *http.Server) { s.ReadHeaderTimeout = 200 * time.Millisecond })
	// More slow ones than there is room for: the next is served when they are cut off.
	var slow []net.Conn
	for range maxConnections + 20 {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		slow = append(slow, conn)
	}
	response, err := (&http.Client{Timeout: 20 * time.Second}).Get("http://" + s.address)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	_ = slow[0].SetReadDeadline(time.Now().Add(20 * time.Second))
	if answer, err := io.ReadAll(slow[0]); err != nil || strings.Contains(string(answer), "hello") {
		t.Errorf("a slow one: %q, %v", answer, err)
	}
}

// There are never more connections at work than maxConnections.
func TestConnectionsAreBounded(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	s := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
	}), nil, nil)
	const all = maxConnections + 30
	done := make(chan error, all)
	for range all {
		go func() {
			response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + s.address)
			if err == nil {
				_ = response.Body.Close()
			}
			done <- err
		}()
	}
	testcluster.Eventually(t, 20*time.Second, func() error {
		if n := now.Load(); n < maxConnections {
			return fmt.Errorf("%d are at work", n)
		}
		return nil
	})
	close(release)
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > maxConnections {
		t.Errorf("%d were at work at once", most.Load())
	}
}

func TestHeadersAreBounded(t *testing.T) {
	s := start(t, text("hello"), nil, nil)
	for size, want := range map[int]int{8 << 10: 200, 64 << 10: 431} {
		r, err := http.NewRequest("GET", "http://"+s.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.Repeat("x", size))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d bytes: %s, not %d", size, response.Status, want)
		}
	}
}

// A client that opens streams and resets them at once, as fast as it can, does not
// have more handlers at work than any other (CVE-2023-44487).
func TestRapidReset(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	s := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
	}), selfSigned(t), nil)
	defer close(release)
	conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	closed := make(chan struct{})
	go func() { defer close(closed); _, _ = io.Copy(io.Discard, conn) }()
	buffered := bufio.NewWriter(conn)
	fmt.Fprint(buffered, http2.ClientPreface)
	framer := http2.NewFramer(buffered, nil)
	_ = framer.WriteSettings()
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	var failed error
	for id := uint32(1); id < 20000 && failed == nil; id += 2 {
		block.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":path", "/"}, {":scheme", "https"}, {":authority", "localhost"}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		failed = errors.Join(
			framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block.String()), EndStream: true, EndHeaders: true}),
			framer.WriteRSTStream(id, http2.ErrCodeCancel), buffered.Flush())
	}
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("the connection was not closed")
	}
	if n := most.Load(); n == 0 || n > maxStreams {
		t.Errorf("%d handlers were at work at once", n)
	}
}

// In the end, requests that are under way are answered, and no new ones.
func TestShutdown(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		answer(w, 200, "done")
	}), nil, nil)
	got := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + s.address)
		if err != nil {
			got <- err.Error()
			return
		}
		body, _ := io.ReadAll(response.Body)
		got <- string(body)
	}()
	<-arrived
	s.stop()
	testcluster.Eventually(t, 10*time.Second, func() error {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			return nil
		}
		_ = conn.Close()
		return errors.New("it still listens")
	})
	close(release)
	if body := <-got; body != "done\n" {
		t.Errorf("what was under way: %q", body)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	s.done <- nil
}

// Serve tells of a listener that fails.
func TestServeFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := Serve(t.Context(), listener, text(""), nil); err == nil || !strings.Contains(err.Error(), "serve 127.0.0.1:") {
		t.Errorf("%v", err)
	}
}

// A panic is an error of its request. What it holds is not logged.
func TestAPanicIsContained(t *testing.T) {
	s := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("s3cr3t") }), nil, nil)
	response, err := http.Get("http://" + s.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if response.StatusCode != 500 || strings.Contains(string(body), "s3cr3t") {
		t.Errorf("%s %s", response.Status, body)
	}
	if log := s.log.String(); !strings.Contains(log, `path="/metrics"`) || strings.Contains(log, "s3cr3t") || !strings.Contains(log, "serve_test.go") {
		t.Errorf("the log: %s", log)
	}
}

// What is served to probes tells nothing of the cluster.
func TestHealthSaysNoMoreThanAWord(t *testing.T) {
	ready := true
	h := Surface{Ready: func() bool { return ready }, Engine: text("detail"), Status: text("status")}.Health()
	for _, tc := range []struct {
		method, path string
		ready        bool
		code         int
		body         string
	}{
		{"GET", "/healthz", false, 200, "ok\n"},
		{"GET", "/readyz", true, 200, "ok\n"},
		{"GET", "/readyz", false, 503, "not ready\n"},
		{"POST", "/readyz", true, 405, "Method Not Allowed\n"},
		{"GET", "/metrics", true, 404, "404 page not found\n"},
		{"GET", "/", true, 404, "404 page not found\n"},
		{"GET", "/api/status", true, 404, "404 page not found\n"},
	} {
		ready = tc.ready
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
		if w.Code != tc.code || w.Body.String() != tc.body {
			t.Errorf("%s %s: %d %q", tc.method, tc.path, w.Code, w.Body)
		}
	}
}

// A page of somebody else's, whose name leads to this machine, does not get at the
// status; scrapers and people do.
func TestSameHost(t *testing.T) {
	h := SameHost(Surface{Ready: func() bool { return true }, Engine: text("detail"), Status: text("status")}.Full(nil))
	for _, tc := range []struct {
		host, path string
		want       int
	}{
		{"localhost:8080", "/", 200}, {"127.0.0.1:8080", "/", 200}, {"[::1]:8080", "/api/status", 200}, {"localhost", "/", 200}, {"[::1]", "/", 200},
		{"evil.example:8080", "/", 421}, {"evil.example", "/api/status", 421}, {"localhost.evil.example", "/", 421}, {"", "/", 421},
		{"evil.example", "/metrics", 200}, {"evil.example", "/healthz", 200},
	} {
		r := httptest.NewRequest("GET", tc.path, nil)
		r.Host = tc.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s of %q: %d, not %d", tc.path, tc.host, w.Code, tc.want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1": true, "::1": true, "127.1.2.3": true, "0.0.0.0": false, "::": false, "10.0.0.1": false} {
		if got := Loopback(&net.TCPAddr{IP: net.ParseIP(address)}); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
