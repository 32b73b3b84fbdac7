package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// insecure takes any certificate, and trusts none.
var insecure = &http.Client{
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	Timeout:   20 * time.Second,
}

// addressOf waits until the log tells where something is served.
func (r *running) addressOf(what string) string {
	r.Helper()
	line := regexp.MustCompile(what + `" address="([^"]+)"`)
	var address string
	testcluster.Eventually(r, 30*time.Second, func() error {
		m := line.FindStringSubmatch(r.stderr.String())
		if m == nil {
			return fmt.Errorf("the log has no %q:\n%s", what, r.stderr)
		}
		address = m[1]
		return nil
	})
	return address
}

// answer is what a URL gives, with a token or without.
func (r *running) answer(url, token string) (code int, body string) {
	r.Helper()
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		r.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := insecure.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// token makes one of a ServiceAccount that may get these nonResourceURLs.
func (f *rbacFixture) token(name string, urls ...string) string {
	f.Helper()
	f.create(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s}", name))
	if len(urls) > 0 {
		meta := metav1.ObjectMeta{Name: f.ns + "-" + name}
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: urls}}}
		binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: f.ns}}}
		if _, err := f.admin.RbacV1().ClusterRoles().Create(f.Context(), role, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
		if _, err := f.admin.RbacV1().ClusterRoleBindings().Create(f.Context(), binding, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
	made, err := f.admin.CoreV1().ServiceAccounts(f.ns).CreateToken(f.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return made.Status.Token
}

// localURL is where this machine reaches an address that the log tells.
func localURL(scheme, address string) string {
	return scheme + "://127.0.0.1" + address[strings.LastIndex(address, ":"):]
}

// someRule does what every role of the fixture allows.
func (f *rbacFixture) someRule() (dir string) {
	return f.rules(ruleFile("label", "resource: {version: v1, resource: configmaps}\nmatch: {namespaces: [NS]}\npatch: {merge: {metadata: {labels: {fixed: \"true\"}}}}"))
}

// With just the role that `rbac --authorize` prints, run lets in who may get the
// nonResourceURLs, and nobody else, on addresses that others reach. What is on
// loopback is open, without TLS: a browser at the end of a port-forward has no
// token. Probes are answered on their own port. No token is in the log, at the
// highest verbosity.
func TestRunAuthorizes(t *testing.T) {
	f := newRBACFixture(t)
	common := []string{"--rules", f.someRule(), "--builtin", "none", "--authorize"}
	f.create(f.must(append([]string{"rbac", "--name", f.ns, "--service-account", f.ns + "/engine"}, common...)...))
	metrics, nobody := f.token("metrics", "/metrics"), f.token("nobody")
	common = append(common, "--health-address", "127.0.0.1:0", "-v", "10")
	t.Run("as the chart does", func(t *testing.T) {
		r := f.run(append(common, "--metrics-address", ":0")...)
		scraped, page := localURL("https", r.addressOf("Serving metrics")), localURL("http", r.addressOf("Serving status, metrics and health checks"))
		r.wantOnlyMetrics(t, scraped+"/metrics", metrics, nobody)
		r.wantAnswers(t, []wantAnswer{
			{scraped + "/", metrics, 404, ""}, {scraped + "/api/status", metrics, 404, ""}, {scraped + "/readyz", "", 404, ""}, {scraped + "/healthz", "", 404, ""},
			{page + "/", "", 200, "<html"}, {page + "/api/status", "", 200, `"rules":`}, {page + "/metrics", "", 200, "rectifier_rules{"}, {page + "/readyz", "", 200, "rules: 1 loaded"},
		})
	})
	t.Run("everything", func(t *testing.T) {
		r := f.run(append(common, "--bind-address", ":0")...)
		full := localURL("https", r.addressOf("Serving status, metrics and health checks"))
		r.wantOnlyMetrics(t, full+"/metrics", metrics, nobody)
		r.wantAnswers(t, []wantAnswer{
			{full + "/", metrics, 403, "nonResourceURL /"}, {full + "/api/status", metrics, 403, ""}, {full + "/api/status", nobody, 403, ""},
			{full + "/readyz", nobody, 200, "ok\n"}, {full + "/healthz", "", 200, "ok\n"},
		})
	})
}

// wantAnswer is what a URL should give.
type wantAnswer struct {
	url, token string
	code       int
	body       string // it has this in it
}

func (r *running) wantAnswers(t *testing.T, all []wantAnswer) {
	t.Helper()
	for _, want := range all {
		if code, body := r.answer(want.url, want.token); code != want.code || !strings.Contains(body, want.body) {
			t.Errorf("%s: %d %q", want.url, code, body)
		}
	}
}

// wantOnlyMetrics waits until run is ready, and checks who may read metrics.
func (r *running) wantOnlyMetrics(t *testing.T, url, metrics, nobody string) {
	t.Helper()
	probes := "http://" + r.addressOf("Serving probes")
	testcluster.Eventually(t, 30*time.Second, func() error {
		code, body := r.answer(probes+"/readyz", "")
		if code != 200 || body != "ok\n" {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	testcluster.Eventually(t, 30*time.Second, func() error { // what was refused is remembered for 10 s
		if code, body := r.answer(url, metrics); code != 200 || !strings.Contains(body, "rectifier_rules{") || !strings.Contains(body, "rectifier_build_info{") || !strings.Contains(body, "rest_client_requests_total{") {
			return fmt.Errorf("metrics: %d %s", code, body)
		}
		return nil
	})
	r.wantAnswers(t, []wantAnswer{
		{url, "", 401, ""}, {url, "garbage", 401, ""}, {url, nobody, 403, ""},
		{probes + "/metrics", metrics, 404, ""}, {probes + "/healthz", "", 200, "ok\n"},
	})
	log := r.stderr.String()
	for _, token := range []string{metrics, nobody} {
		if strings.Contains(log, token) || strings.Contains(log, strings.Split(token, ".")[2]) {
			t.Error("a token is in the log")
		}
	}
	if strings.Contains(log, "Everybody who reaches") {
		t.Errorf("it is told that everybody may read:\n%s", log)
	}
}

// Without --authorize, all is there for everybody: that is told where it is not
// for this machine only. TLS is then a matter of a certificate.
func TestRunServesWithoutAuthorization(t *testing.T) {
	f := newRBACFixture(t)
	dir := f.someRule()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(f.dir, "tls.crt"), filepath.Join(f.dir, "tls.key")
	for name, text := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate := []string{"--tls-cert-file", certFile, "--tls-private-key-file", keyFile}
	for name, tc := range map[string]struct {
		args                   []string
		scheme, metricsAddress string // "": there is none of its own
		told                   int
	}{
		"on this machine":     {nil, "http", "", 0},
		"everywhere":          {[]string{"--bind-address", ":0"}, "http", "", 1},
		"with TLS":            {append(certificate, "--bind-address", ":0"), "https", "", 1},
		"metrics here":        {[]string{"--metrics-address", "127.0.0.1:0"}, "http", "http", 0},
		"metrics":             {[]string{"--metrics-address", ":0"}, "http", "http", 1},
		"metrics with TLS":    {append(certificate, "--metrics-address", ":0"), "http", "https", 1},
		"everything with TLS": {append(certificate, "--bind-address", ":0", "--metrics-address", ":0"), "https", "https", 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := f.run(append([]string{"--rules", dir, "--builtin", "none"}, tc.args...)...)
			at := localURL(tc.scheme, r.addressOf("Serving status, metrics and health checks"))
			for path, want := range map[string]string{"/": "<html", "/api/status": `"rules":`, "/metrics": "rectifier_rules{", "/healthz": "ok", "/readyz": "rules: 1 loaded"} {
				if code, body := r.answer(at+path, ""); !strings.Contains(body, want) || code != 200 && path != "/readyz" {
					t.Errorf("%s: %d %.300s", path, code, body)
				}
			}
			if tc.metricsAddress != "" {
				at := localURL(tc.metricsAddress, r.addressOf("Serving metrics"))
				r.wantAnswers(t, []wantAnswer{{at + "/metrics", "", 200, "rectifier_rules{"}, {at + "/", "", 404, ""}})
			}
			if got := strings.Count(r.stderr.String(), "Everybody who reaches this address can read"); got != tc.told {
				t.Errorf("it is told %d times who can read:\n%s", got, r.stderr)
			}
		})
	}
}

// Profiles are there if they are asked for, for this machine, or with a token whose
// owner may get them.
func TestRunServesProfiles(t *testing.T) {
	f := newRBACFixture(t)
	common := []string{"--rules", f.someRule(), "--builtin", "none"}
	const what = "Serving status, metrics and health checks"
	t.Run("by default", func(t *testing.T) {
		r := f.run(common...)
		r.wantAnswers(t, []wantAnswer{{localURL("http", r.addressOf(what)) + "/debug/pprof/", "", 404, ""}})
	})
	t.Run("on loopback", func(t *testing.T) {
		r := f.run(append(common, "--profiling", "--metrics-address", "127.0.0.1:0")...)
		at := localURL("http", r.addressOf(what)) + "/debug/pprof/"
		r.wantAnswers(t, []wantAnswer{
			{at, "", 200, "goroutine"}, {at + "profile?seconds=1", "", 200, "\x1f\x8b"}, {at + "heap?gc=1", "", 200, "\x1f\x8b"},
			{localURL("http", r.addressOf("Serving metrics")) + "/debug/pprof/", "", 404, ""},
		})
	})
	t.Run("elsewhere", func(t *testing.T) {
		authorized := append(common, "--authorize")
		f.create(f.must(append([]string{"rbac", "--name", f.ns, "--service-account", f.ns + "/engine"}, authorized...)...))
		profiler, status := f.token("profiler", "/debug/pprof"), f.token("status", "/", "/metrics")
		r := f.run(append(authorized, "--profiling", "--bind-address", ":0")...)
		at := localURL("https", r.addressOf(what)) + "/debug/pprof/heap"
		testcluster.Eventually(t, 30*time.Second, func() error { // what was refused is remembered for 10 s
			if code, body := r.answer(at, profiler); code != 200 || !strings.HasPrefix(body, "\x1f\x8b") {
				return fmt.Errorf("%d %.100q", code, body)
			}
			return nil
		})
		r.wantAnswers(t, []wantAnswer{{at, "", 401, ""}, {at, status, 403, "nonResourceURL /debug/pprof"}})
	})
	for name, args := range map[string][]string{
		"for everybody": {"--bind-address", "0.0.0.0:0"}, "nowhere": {"--bind-address", ""}, "once": {"--once"},
	} {
		t.Run(name, func(t *testing.T) {
			stderr := &lockedBuffer{}
			code := execute(t.Context(), append(append([]string{"run", "--kubeconfig", f.kubeconfig, "--profiling"}, common...), args...), streams{strings.NewReader(""), io.Discard, stderr})
			if code != exitUsage || !strings.Contains(stderr.String(), "--profiling") {
				t.Errorf("exit code %d:\n%s", code, stderr)
			}
		})
	}
}

// In the end the ports are closed, and the exit code is 0.
func TestRunStopsServing(t *testing.T) {
	f := newRBACFixture(t)
	dir := f.someRule()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{T: t, stderr: &lockedBuffer{}}
	done := make(chan int, 1)
	go func() {
		done <- execute(ctx, []string{"run", "--kubeconfig", f.kubeconfig, "--bind-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", "--rules", dir, "--builtin", "none"}, streams{strings.NewReader(""), io.Discard, r.stderr})
	}()
	ports := []string{r.addressOf("Serving status, metrics and health checks"), r.addressOf("Serving metrics"), r.addressOf("Serving probes")}
	for i, path := range []string{"/healthz", "/metrics", "/healthz"} {
		if code, _ := r.answer("http://"+ports[i]+path, ""); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	cancel()
	if code := <-done; code != exitFine {
		t.Errorf("exit code %d:\n%s", code, r.stderr)
	}
	for _, port := range ports {
		if _, err := insecure.Get("http://" + port + "/healthz"); err == nil {
			t.Errorf("%s is still served", port)
		}
	}
}
