package endpoints

import (
	"io"
	"net"
	"net/http"
	"strings"
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
	// Profiling serves /debug/pprof/ too, on Local and, with an Authorizer, on Full.
	Profiling bool
}

// Health is for probes: /healthz and /readyz, in a word. It tells nothing of the
// cluster.
func (s Surface) Health() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", s.short)
	return mux
}

// Metrics is /metrics alone. With an Authorizer, it is for those whom that allows;
// nil: for everybody.
func (s Surface) Metrics(a *Authorizer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.guard(metricsRight, s.Engine))
	return mux
}

// Full is all there is. With an Authorizer, what tells of the cluster is for
// those whom it allows; nil: for everybody.
func (s Surface) Full(a *Authorizer) http.Handler {
	full := s.full(a, func(r *http.Request) bool { return a == nil || a.verdict(r, statusRight) == allowed })
	if s.Profiling && a != nil {
		full.Handle(profilesPath, a.guard(profilesRight, profiles()))
	}
	return full
}

// Local is all there is, for listeners on loopback, where no token is asked for.
// What is made for people is for those only who ask for this machine, or for an IP
// address: a page in a browser here, or at the other end of a port-forward, may
// have its own name lead to a loopback address, and would then read what is served
// there (DNS rebinding). Metrics are given under any name: proxies of scrapers
// often keep the host that they were asked for.
func (s Surface) Local() http.Handler {
	full := s.full(nil, func(r *http.Request) bool { return localHost(r.Host) })
	if s.Profiling {
		full.Handle(profilesPath, profiles())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.URL.Path == "/" || r.URL.Path == "/api/status" || strings.HasPrefix(r.URL.Path, profilesRight)) && !localHost(r.Host) {
			answer(w, http.StatusMisdirectedRequest, "ask for localhost or for an IP address: this is not the host that was asked for")
			return
		}
		full.ServeHTTP(w, r)
	})
}

// full is all there is, with the detail of /readyz for those who may have it. A
// probe has no token, and is not to fail for that: others get the verdict.
func (s Surface) full(a *Authorizer, detail func(*http.Request) bool) *http.ServeMux {
	mux := http.NewServeMux()
	status, readiness := limited(atOnce, s.Status, refuse), limited(atOnce, s.Engine, s.short)
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if detail(r) {
			readiness.ServeHTTP(w, r)
			return
		}
		s.short(w, r)
	})
	mux.Handle("GET /metrics", a.guard(metricsRight, s.Engine))
	mux.Handle("GET /{$}", a.guard(statusRight, status))
	mux.Handle("GET /api/status", a.guard(statusRight, status))
	mux.Handle("GET /assets/", s.Status)
	return mux
}

// atOnce is how many requests for the status, and how many for the detail of
// /readyz, are answered at a time: each looks at all that there is.
const atOnce = 4

// limited gives what is beyond n at a time another answer, that costs nothing.
func limited(n int, next http.Handler, beyond http.HandlerFunc) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			beyond(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	answer(w, http.StatusServiceUnavailable, "too many ask for this at once: try again")
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

// SameAddress reports whether two addresses to listen at cannot both be had: they
// have one port, and one host or all of them. An empty one is none.
func SameAddress(a, b string) bool {
	hostA, portA, ok := address(a)
	hostB, portB, okB := address(b)
	if !ok || !okB || portA != portB || portA == 0 {
		return false // port 0 is any that is free
	}
	return hostA == hostB || hostA == everywhere || hostB == everywhere
}

const everywhere = "*"

// address is the host of an address in one way of writing, and its port.
func address(text string) (host string, port int, ok bool) {
	host, name, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, false
	}
	if port, err = net.LookupPort("tcp", name); err != nil {
		return "", 0, false
	}
	ip := net.ParseIP(host)
	switch {
	case host == "" || ip != nil && ip.IsUnspecified():
		return everywhere, port, true
	case host == "localhost":
		return "127.0.0.1", port, true
	case ip != nil:
		return ip.String(), port, true
	}
	return host, port, true
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
