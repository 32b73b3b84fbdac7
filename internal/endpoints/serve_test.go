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

// What a client does slowly costs it its connection. Each limit is that of the
// server, only made shorter: one that is not set stays so.
func TestSlowClientsAreCutOff(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: localhost\r\n"
	large := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 32<<20)) })
	for name, tc := range map[string]struct {
		limit   func(*http.Server) *time.Duration
		tls     bool
		handler http.Handler
		send    string
	}{
		"header":    {func(s *http.Server) *time.Duration { return &s.ReadHeaderTimeout }, false, text("hello"), request + "X-Slow: "},
		"handshake": {func(s *http.Server) *time.Duration { return &s.ReadHeaderTimeout }, true, text("hello"), ""},
		"body": {func(s *http.Server) *time.Duration { return &s.ReadTimeout }, false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		}), "POST" + request[len("GET"):] + "Content-Length: 5\r\n\r\n"},
		"answer":           {func(s *http.Server) *time.Duration { return &s.WriteTimeout }, false, large, request + "\r\n"},
		"the next request": {func(s *http.Server) *time.Duration { return &s.IdleTimeout }, false, text("hello"), request + "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var config *tls.Config
			if tc.tls {
				config = selfSigned(t)
			}
			ended := make(chan struct{})
			s := start(t, tc.handler, config, func(server *http.Server) {
				*tc.limit(server) /= 50
				server.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						close(ended)
					}
				}
			})
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, tc.send)
			select {
			case <-ended:
			case <-time.After(5 * time.Second): // another limit may come then
				t.Error("it has its connection still")
			}
		})
	}
}

// Slow ones that take all the room there is give way at once, whether they have
// begun a request or not: the kubelet does not wait long for its probe.
func TestSlowClientsMakeRoom(t *testing.T) {
	for name, sent := range map[string]string{"silent": "", "slow": "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "} {
		for _, config := range []*tls.Config{nil, selfSigned(t)} {
			t.Run(fmt.Sprintf("%s, TLS %v", name, config != nil), func(t *testing.T) { slowOnesMakeRoom(t, config, sent) })
		}
	}
}

func slowOnesMakeRoom(t *testing.T, config *tls.Config, sent string) {
	s := start(t, text("hello"), config, nil)
	var slow []net.Conn
	for range 4 * maxConnections {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, sent)
		slow = append(slow, conn)
	}
	prober, scheme := client(false, 0), "http"
	if config != nil {
		scheme = "https"
	}
	prober.Timeout = headerTimeout / 2 // no slow one has timed out by then
	response, err := prober.Get(scheme + "://" + s.address)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	_ = slow[0].SetReadDeadline(time.Now().Add(20 * time.Second))
	if answer, err := io.ReadAll(slow[0]); err != nil || strings.Contains(string(answer), "hello") {
		t.Errorf("a slow one: %q, %v", answer, err)
	}
}

// There are never more connections at work than maxConnections; more are closed.
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
	for range all - maxConnections {
		if err := <-done; err == nil {
			t.Error("one was answered before there was room")
		}
	}
	close(release)
	for range maxConnections {
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
