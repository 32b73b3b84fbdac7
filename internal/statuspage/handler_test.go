package statuspage

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/engine"
)

var update = flag.Bool("update", false, "write the golden file")

func get(t *testing.T, s engine.Status, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler("v1.2.3", func() engine.Status { return s }).ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		method, target string
		code           int
		contentType    string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", 200, "text/html; charset=utf-8"},
		{"GET", "/?show=all&refresh=off", 200, "text/html; charset=utf-8"},
		{"GET", "/api/status", 200, "application/json"},
		{"HEAD", "/api/status", 200, "application/json"},
		{"GET", "/assets/status.css", 200, "text/css; charset=utf-8"},
		{"GET", "/assets/status.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/icon.svg", 200, "image/svg+xml"},
		{"GET", "/assets/icon-attention.svg", 200, "image/svg+xml"},
		{"POST", "/", 405, ""},
		{"PUT", "/api/status", 405, ""},
		{"DELETE", "/api/status", 405, ""},
		{"PATCH", "/", 405, ""},
		{"OPTIONS", "/", 405, ""},
		{"GET", "/assets/page.html", 404, ""},
		{"GET", "/assets/", 404, ""},
		{"GET", "/api/", 404, ""},
		{"GET", "/other", 404, ""},
		{"GET", "/assets/../handler.go", 307, ""},
	} {
		w := get(t, example(), tc.method, tc.target)
		if w.Code != tc.code && (tc.code != 307 || w.Code != 301) {
			t.Errorf("%s %s: %d, want %d", tc.method, tc.target, w.Code, tc.code)
		}
		if got := w.Header().Get("Content-Type"); tc.contentType != "" && got != tc.contentType {
			t.Errorf("%s %s is %s", tc.method, tc.target, got)
		}
		if tc.code == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s allows %q", tc.method, tc.target, w.Header().Get("Allow"))
		}
		for name, want := range headers {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q", tc.method, tc.target, name, got)
			}
		}
	}
}

func TestThePolicyAllowsNothingFromElsewhere(t *testing.T) {
	policy := headers["Content-Security-Policy"]
	for _, needed := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, needed) {
			t.Errorf("the policy lacks %s", needed)
		}
	}
	if bad := regexp.MustCompile(`unsafe|https?:|data:|\*`).FindString(policy); bad != "" {
		t.Errorf("the policy has %s", bad)
	}
	page := get(t, example(), "GET", "/").Body.String()
	for what, pattern := range map[string]string{
		"a reference to elsewhere": `(?:src|href|action)="(?:[a-z]+:)?//`,
		"a script of its own":      `<script[^>]*>[^<]`,
		"a style of its own":       `<style|style="`,
		"an event handler":         ` on[a-z]+="`,
		"a form":                   `<form`,
		"an absolute path":         `(?:src|href)="/`, // it would not work behind a proxy
	} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page has %s: %s", what, found)
		}
	}
}

// The shape of the JSON is what programs rely on: docs/status-page.md tells it.
func TestJSON(t *testing.T) {
	got := get(t, example(), "GET", "/api/status").Body.Bytes()
	const golden = "testdata/status.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if bytes.Contains(got, []byte("null")) {
		t.Error("something is null")
	}
}

// The docs name all fields, and no others.
func TestDocumentedFields(t *testing.T) {
	doc, err := os.ReadFile("../../docs/status-page.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		documented[m[1]] = true
	}
	var all any
	if err := json.Unmarshal(get(t, example(), "GET", "/api/status").Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	pathsOf(all, "", fields)
	for field := range fields {
		if !documented[field] {
			t.Errorf("docs/status-page.md does not tell of %s", field)
		}
	}
	for field := range documented {
		if !fields[field] && !optional[field] {
			t.Errorf("docs/status-page.md tells of %s, which there is not", field)
		}
	}
}

// optional are fields that the example has no use for.
var optional = map[string]bool{"discovery.error": true, "leadership.trouble": true, "rules[].kept": true, "resources[].namespace": true}

func pathsOf(v any, at string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			path := strings.TrimPrefix(at+"."+key, ".")
			into[path] = true
			pathsOf(value, path, into)
		}
	case []any:
		for _, item := range v {
			pathsOf(item, at+"[]", into)
		}
	}
}

// Whatever names and messages are, they stay text.
func TestHostileTextIsEscaped(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)> ' {{.Version}} javascript:alert(3) </pre></details>` + "\u202e\x00"
	s := example()
	s.WaitingFor, s.UnreadRules, s.Ready = []string{hostile}, hostile, false
	s.Leadership = engine.Leadership{Role: engine.Standby, Identity: hostile, Leader: hostile, Lease: hostile, Trouble: hostile}
	s.Discovery.Error, s.Namespaces, s.ExcludedNamespaces, s.Advice = hostile, []string{hostile}, []string{hostile}, []string{hostile}
	s.InvalidRules = []engine.InvalidRule{{Rule: hostile, File: hostile, Line: 1, Column: 1, Message: hostile, Excerpt: hostile}}
	r := &s.Rules[0]
	r.Name, r.Description, r.File = hostile, hostile, hostile
	r.On[0].Resource, r.On[0].State, r.On[0].Parked = hostile, engine.RuleParked, []engine.Parking{{Reason: hostile, Message: hostile}}
	s.Resources[0].Resource, s.Resources[0].Namespace, s.Resources[0].State, s.Resources[0].Reason = hostile, hostile, hostile, hostile
	s.Resources[0].Rules = []string{hostile}
	c := &s.Contentions[0]
	c.Rule, c.Resource, c.Namespace, c.Name, c.Fields, c.Managers = hostile, hostile, hostile, hostile, []string{hostile}, []string{hostile}
	for i := range s.Recent {
		a := &s.Recent[i]
		a.Rules, a.Resource, a.Namespace, a.Name, a.Message, a.Reason = []string{hostile}, hostile, hostile, hostile, hostile, hostile
		a.Changes = []engine.FieldChange{{Field: hostile, Before: hostile, After: hostile}, {Field: hostile, Before: hostile, After: hostile + "\n" + hostile}}
	}
	page := get(t, s, "GET", "/").Body.String()
	if n := strings.Count(page, "<script"); n != 1 {
		t.Errorf("the page has %d scripts, want its own", n)
	}
	for _, bad := range []string{"<img", "alert(1)</script>", `href="javascript`, "v1.2.3 javascript"} {
		if i := strings.Index(page, bad); i >= 0 {
			t.Errorf("the page has %s: %s", bad, page[max(0, i-200):i+50])
		}
	}
	if strings.Count(page, "alert(1)") < 20 {
		t.Errorf("the text is shown %d times only", strings.Count(page, "alert(1)"))
	}
	if opened, closed := strings.Count(page, "<details"), strings.Count(page, "</details>"); opened != closed {
		t.Errorf("%d details are opened, %d closed", opened, closed)
	}
	var back any
	if err := json.Unmarshal(get(t, s, "GET", "/api/status").Body.Bytes(), &back); err != nil {
		t.Errorf("the JSON cannot be read: %v", err)
	}
}

// A large installation stays readable: what is left out is counted.
func TestLimits(t *testing.T) {
	page := get(t, many(), "GET", "/").Body
	if size := page.Len(); size > 400<<10 {
		t.Errorf("the page has %d bytes", size)
	}
	for _, want := range []string{"100 of 1\u202f003", "100 of 303", "50 of 5\u202f001", `href="?show=all"`, "4\u202f951 more are not shown here", "more are not shown here"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not tell: %s", want)
		}
	}
	rows := strings.Index(page.String(), "Each rule on each")
	if first := page.String()[rows:]; strings.Index(first, "Parked") > strings.Index(first, "rule-0000") {
		t.Error("rules with problems do not come first")
	}
	full := get(t, many(), "GET", "/?show=all").Body
	if size := full.Len(); size > 4<<20 {
		t.Errorf("the page with all has %d bytes", size)
	}
	if !strings.Contains(full.String(), "rule-0999") {
		t.Error("not all rules are shown")
	}
	var status struct {
		Contentions []any          `json:"contentions"`
		Omitted     map[string]int `json:"omitted"`
	}
	body := get(t, many(), "GET", "/api/status").Body
	if size := body.Len(); size > 2<<20 {
		t.Errorf("the JSON has %d bytes", size)
	}
	if err := json.Unmarshal(body.Bytes(), &status); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"contentions": 5001 - maxContentions}, status.Omitted); diff != "" || len(status.Contentions) != maxContentions {
		t.Errorf("%d contentions; left out (-want +got):\n%s", len(status.Contentions), diff)
	}
}

func TestRefresh(t *testing.T) {
	for target, want := range map[string][3]string{
		"/":                      {`data-refresh="5"`, `<noscript><meta http-equiv="refresh" content="5"></noscript>`, `id="toggle" href="?refresh=off"`},
		"/?show=all":             {`data-refresh="5"`, `<noscript>`, `id="toggle" href="?refresh=off&amp;show=all"`},
		"/?refresh=off":          {"<body>", `id="toggle" href="?"`, `href="?refresh=off&amp;show=all"`},
		"/?refresh=off&show=all": {"<body>", `id="toggle" href="?show=all"`, "Resume"},
		`/?refresh="><script>`:   {`data-refresh="5"`, `<noscript>`, "Pause"},
	} {
		page := get(t, many(), "GET", strings.ReplaceAll(target, `"><script>`, "%22%3E%3Cscript%3E")).Body.String()
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s has no %s", target, w)
			}
		}
		if off := strings.Contains(target, "off"); off == strings.Contains(page, "http-equiv") {
			t.Errorf("%s: renewed by itself: %v", target, !off)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	s := many()
	h := Handler("v1.2.3", func() engine.Status { return s })
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
}
