package statuspage

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"

	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/engine"
)

//go:embed assets
var files embed.FS

// assets are served as they are. The page is not among them.
var assets = []string{"status.css", "status.js", "icon.svg", "icon-attention.svg"}

// headers are on every answer. What the policy allows comes from this server.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Cache-Control":                "no-store",
}

// refreshSeconds is how often the page renews itself.
const refreshSeconds = 5

// Handler serves the status page at /, the same as JSON at /api/status, and what
// the page needs below /assets/. Each of them takes GET and HEAD only. status is
// called for each request, by several at once; version goes into what it returns.
//
// With ?show=all the page shows as much of long lists as the JSON. With
// ?refresh=off it does not renew itself.
func Handler(version string, status func() engine.Status) http.Handler {
	s := &server{version, status, template.Must(template.New("page.html").Funcs(words).ParseFS(files, "assets/page.html"))}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /api/status", s.json)
	static, err := fs.Sub(files, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, name := range assets {
		mux.HandleFunc("GET /assets/"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, static, name)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		mux.ServeHTTP(w, r)
	})
}

type server struct {
	version  string
	status   func() engine.Status
	template *template.Template
}

func (s *server) now() engine.Status {
	out := s.status()
	out.Version = s.version
	return out
}

func (s *server) page(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	p := newPage(s.now(), query.Get("show") == "all", query.Get("refresh") != "off")
	var body bytes.Buffer
	if err := s.template.Execute(&body, p); err != nil {
		klog.FromContext(r.Context()).Error(err, "The status page cannot be rendered")
		http.Error(w, "the status page cannot be rendered", http.StatusInternalServerError)
		return
	}
	send(w, "text/html; charset=utf-8", body.Bytes())
}

func (s *server) json(w http.ResponseWriter, r *http.Request) {
	body, err := json.MarshalIndent(limit(s.now()), "", "  ")
	if err != nil {
		klog.FromContext(r.Context()).Error(err, "The status cannot be rendered")
		http.Error(w, "the status cannot be rendered", http.StatusInternalServerError)
		return
	}
	send(w, "application/json", append(body, '\n'))
}

func send(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // whoever asked has gone
}
