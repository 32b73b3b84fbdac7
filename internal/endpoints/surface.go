package endpoints

import (
	"io"
	"net"
	"net/http"
)

// Surface is what there is to be served.
type Surface struct {
	// Ready is the verdict of /readyz.
	Ready func() bool
	// Engine answers /readyz with detail, and /metrics.
	Engine http.Handler
	// Status answers /, /api/status and /assets/, which holds nothing of the
	// cluster.
	Status http.Handler
}

// Health is for probes: /healthz and /readyz, in a word. It tells nothing of the
// cluster.
func (s Surface) Health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", s.short)
	return mux
}

// Full is all there is. With an Authorizer, what tells of the cluster is for
// those whom it allows; nil: for everybody.
func (s Surface) Full(a *Authorizer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if a == nil || a.verdict(r, statusRight) == allowed {
			s.Engine.ServeHTTP(w, r)
			return
		}
		s.short(w, r) // a probe has no token, and is not to fail for that
	})
	mux.Handle("GET /metrics", a.guard(metricsRight, s.Engine))
	mux.Handle("GET /{$}", a.guard(statusRight, s.Status))
	mux.Handle("GET /api/status", a.guard(statusRight, s.Status))
	mux.Handle("GET /assets/", s.Status)
	return mux
}

func healthy(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") }

func (s Surface) short(w http.ResponseWriter, _ *http.Request) {
	if s.Ready() {
		answer(w, http.StatusOK, "ok")
		return
	}
	answer(w, http.StatusServiceUnavailable, "not ready")
}

// answer is a word or a sentence of text.
func answer(w http.ResponseWriter, code int, text string) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n")
}

// Loopback reports whether an address is reached from this machine only.
func Loopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// SameHost refuses requests for the host of somebody else: a page in a browser on
// this machine, or at the other end of a port-forward, may have its own name lead
// to a loopback address, and would then read what is served there (DNS
// rebinding). It is for listeners on such addresses, where no token is asked for.
// Only what is made for browsers is refused: proxies of scrapers often keep the
// host that they were asked for.
func SameHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.URL.Path == "/" || r.URL.Path == "/api/status") && !localHost(r.Host) {
			answer(w, http.StatusMisdirectedRequest, "ask for localhost or for an IP address: this is not the host that was asked for")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || net.ParseIP(trimBrackets(host)) != nil
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
