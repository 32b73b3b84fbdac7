package endpoints

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

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
// status, nor at the detail of /readyz; scrapers and people do.
func TestAnotherHost(t *testing.T) {
	h := Surface{Ready: func() bool { return true }, Engine: text("detail"), Status: text("status")}.Local()
	for _, tc := range []struct {
		host, path string
		want       int
		body       string
	}{
		{"localhost:8080", "/", 200, "status"}, {"127.0.0.1:8080", "/", 200, "status"}, {"[::1]:8080", "/api/status", 200, "status"},
		{"localhost", "/", 200, "status"}, {"[::1]", "/", 200, "status"}, {"127.0.0.1:8080", "/readyz", 200, "detail"}, {"localhost", "/readyz", 200, "detail"},
		{"evil.example:8080", "/", 421, "ask for"}, {"evil.example", "/api/status", 421, "ask for"}, {"localhost.evil.example", "/", 421, "ask for"}, {"", "/", 421, "ask for"},
		{"evil.example:8080", "/readyz", 200, "ok\n"}, {"", "/readyz", 200, "ok\n"},
		{"evil.example", "/metrics", 200, "detail"}, {"evil.example", "/healthz", 200, "ok\n"},
	} {
		r := httptest.NewRequest("GET", tc.path, nil)
		r.Host = tc.host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.want || !strings.HasPrefix(w.Body.String(), tc.body) {
			t.Errorf("%s of %q: %d %q, not %d %q", tc.path, tc.host, w.Code, w.Body, tc.want, tc.body)
		}
	}
}

// What looks at all that there is does so for a few at once. Others are refused,
// but for a probe: that gets the verdict.
func TestRequestsInFlightAreBounded(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
		answer(w, http.StatusOK, "all")
	})
	for _, tc := range []struct {
		paths  []string
		code   int
		beyond string
	}{{[]string{"/", "/api/status"}, 503, "too many"}, {[]string{"/readyz"}, 200, "ok\n"}} {
		s := Surface{Ready: func() bool { return true }, Engine: slow, Status: slow}
		for name, h := range map[string]http.Handler{"open": s.Full(nil), "local": s.Local()} {
			release = make(chan struct{})
			most.Store(0)
			get := func(path string) *httptest.ResponseRecorder {
				r := httptest.NewRequest("GET", path, nil)
				r.Host = "localhost"
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w
			}
			done := make(chan *httptest.ResponseRecorder, atOnce)
			for i := range atOnce {
				go func() { done <- get(tc.paths[i%len(tc.paths)]) }()
			}
			testcluster.Eventually(t, 10*time.Second, func() error {
				if n := now.Load(); n < atOnce {
					return fmt.Errorf("%d are at work", n)
				}
				return nil
			})
			beyond := make(chan *httptest.ResponseRecorder, 1)
			go func() { beyond <- get(tc.paths[0]) }()
			select {
			case w := <-beyond:
				if w.Code != tc.code || !strings.HasPrefix(w.Body.String(), tc.beyond) {
					t.Errorf("%s %s: one too many gets %d %q", name, tc.paths, w.Code, w.Body)
				}
			case <-time.After(10 * time.Second):
				t.Errorf("%s %s: one too many waits", name, tc.paths)
			}
			close(release)
			for range atOnce {
				if w := <-done; w.Code != 200 || w.Body.String() != "all\n" {
					t.Errorf("%s %s: one of the first gets %d %q", name, tc.paths, w.Code, w.Body)
				}
			}
			if w := get(tc.paths[0]); w.Body.String() != "all\n" {
				t.Errorf("%s %s: afterwards it is %d %q", name, tc.paths, w.Code, w.Body)
			}
			if most.Load() > atOnce {
				t.Errorf("%s %s: %d were at work at once", name, tc.paths, most.Load())
			}
		}
	}
}

// What is served for a scraper is its metrics and nothing else.
func TestMetricsAlone(t *testing.T) {
	h := Surface{Ready: func() bool { return true }, Engine: text("detail"), Status: text("status")}.Metrics(nil)
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/api/status": 404, "/assets/page.js": 404, "/readyz": 404, "/healthz": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, not %d", path, w.Code, want)
		}
	}
}

func TestSameAddress(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", true}, {":8080", "127.0.0.1:8080", true}, {"127.0.0.1:8080", "0.0.0.0:8080", true},
		{"[::]:8080", "10.0.0.1:8080", true}, {"localhost:8080", "127.0.0.1:8080", true}, {"[::1]:8080", "[0:0::1]:8080", true}, {"a:8080", "a:8080", true},
		{":8080", ":8081", false}, {"127.0.0.1:8080", "10.0.0.1:8080", false}, {"[::1]:8080", "127.0.0.1:8080", false}, {"a:8080", "b:8080", false},
		{":0", ":0", false}, {"127.0.0.1:0", "127.0.0.1:0", false}, {"", "", false}, {"nonsense", "nonsense", false},
	} {
		if got := SameAddress(tc.a, tc.b); got != tc.want || SameAddress(tc.b, tc.a) != got {
			t.Errorf("%s and %s: %v", tc.a, tc.b, got)
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
