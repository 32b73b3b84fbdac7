package endpoints

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
	"github.com/rectifier-dev/rectifier/rules/rbac"
)

// fixture is an Authorizer that has just the rights that `rectifier rbac
// --authorize` gives, behind a clock that the test moves.
type fixture struct {
	*testing.T
	cp      *controlplane.ControlPlane
	admin   *kubernetes.Clientset
	ns      string
	user    string // of the Authorizer
	handler http.Handler
	ready   atomic.Bool
	ahead   atomic.Int64 // how far the clock is ahead
	away    atomic.Bool  // requests do not reach the API server
	log     *lockedBuffer
}

var users atomic.Int64

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, cp: testcluster.Start(t), ns: testcluster.Namespace(t), log: &lockedBuffer{}}
	f.user = fmt.Sprintf("endpoints-%d", users.Add(1))
	var err error
	if f.admin, err = kubernetes.NewForConfig(f.cp.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	for _, need := range rbac.For(someRules(t), rbac.Options{Authorize: true}).All {
		if need.Verb == "create" && strings.HasSuffix(need.Resource.Resource, "reviews") {
			f.grant(f.user+"-"+need.Resource.Resource, rbacv1.Subject{Kind: "User", Name: f.user}, rbacv1.PolicyRule{Verbs: []string{need.Verb}, APIGroups: []string{need.Resource.Group}, Resources: []string{need.Resource.Resource}})
		}
	}
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cut{next, &f.away} })
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(f.log), textlogger.Verbosity(10)))
	a, err := NewAuthorizer(config, logger)
	if err != nil {
		t.Fatal(err)
	}
	a.remember(func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) })
	f.ready.Store(true)
	f.handler = contained(logger, Surface{Ready: f.ready.Load, Engine: text("detail"), Status: text("status"), Profiling: true}.Full(a))
	return f
}

// cut has requests fail before they are sent, while it is so.
type cut struct {
	http.RoundTripper
	away *atomic.Bool
}

func (c cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.away.Load() {
		return nil, syscall.ECONNREFUSED
	}
	return c.RoundTripper.RoundTrip(r)
}

// text answers with the same always.
func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s) })
}

// grant gives a right, and returns how to take it away.
func (f *fixture) grant(name string, to rbacv1.Subject, right rbacv1.PolicyRule) (revoke func()) {
	f.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{right}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, Subjects: []rbacv1.Subject{to}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}
	if _, err := f.admin.RbacV1().ClusterRoles().Create(f.Context(), role, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	if _, err := f.admin.RbacV1().ClusterRoleBindings().Create(f.Context(), binding, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	return func() {
		if err := f.admin.RbacV1().ClusterRoleBindings().Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

// account makes a ServiceAccount, and gives its token and who it is.
func (f *fixture) account(name string) (token string, subject rbacv1.Subject) {
	f.Helper()
	accounts := f.admin.CoreV1().ServiceAccounts(f.ns)
	if _, err := accounts.Create(f.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	made, err := accounts.CreateToken(f.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return made.Status.Token, rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: f.ns}
}

// reader is an account that may get paths.
func (f *fixture) reader(name string, paths ...string) (token string, revoke func()) {
	f.Helper()
	token, subject := f.account(name)
	return token, f.grant(f.ns+"-"+name, subject, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: paths})
}

// get asks for a path; no token: without.
func (f *fixture) get(path, token string) (code int, body string) {
	r := httptest.NewRequest("GET", path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (f *fixture) want(path, token string, code int, body string) {
	f.Helper()
	if got, text := f.get(path, token); got != code || !strings.Contains(text, body) {
		f.Errorf("%s: %d %q, not %d %q", path, got, text, code, body)
	}
}

// eventually waits for an answer: the API server learns of rights a moment after
// they were written. Verdicts of before are forgotten.
func (f *fixture) eventually(path, token string, code int) {
	f.Helper()
	testcluster.Eventually(f, 20*time.Second, func() error {
		got, body := f.get(path, token)
		if got != code {
			f.ahead.Add(int64(2 * allowedFor))
			return fmt.Errorf("%s: %d %s", path, got, body)
		}
		return nil
	})
}

// reviews counts the Authorizer's requests for reviews. Those of another user are
// waited for, so that none is missing.
func (f *fixture) reviews() (tokens, access int) {
	f.Helper()
	probe := fmt.Sprintf("probe-%d", time.Now().UnixNano())
	_, _ = f.admin.CoreV1().ConfigMaps(f.ns).Get(f.Context(), probe, metav1.GetOptions{})
	testcluster.Eventually(f, 20*time.Second, func() error {
		seen, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.ObjectRef.Name == probe })
		if err == nil && len(seen) == 0 {
			err = fmt.Errorf("the audit log lags behind")
		}
		return err
	})
	events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.User.Username == f.user })
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range events {
		switch e.ObjectRef.Resource {
		case "tokenreviews":
			tokens++
		case "subjectaccessreviews":
			access++
		default:
			f.Errorf("a request that is not needed: %s %s", e.Verb, e.RequestURI)
		}
	}
	return tokens, access
}

func TestWhoMayRead(t *testing.T) {
	f := newFixture(t)
	nobody, _ := f.account("nobody")
	metrics, _ := f.reader("metrics", "/metrics")
	f.eventually("/metrics", metrics, 200)
	all, _ := f.reader("all", "/*")
	f.eventually("/", all, 200)
	for _, path := range []string{"/metrics", "/", "/api/status"} {
		f.want(path, "", 401, "bearer token")
		f.want(path, "garbage", 401, "not accept")
		f.want(path, nobody+"x", 401, "not accept")
		f.want(path, nobody, 403, "nonResourceURL")
	}
	// Kubernetes itself lets everybody get /api/* and /readyz: that is not enough.
	f.want("/metrics", metrics, 200, "detail")
	f.want("/", metrics, 403, "nonResourceURL")
	f.want("/api/status", metrics, 403, "nonResourceURL")
	f.want("/", all, 200, "status")
	f.want("/api/status", all, 200, "status")
	// What probes ask for is open, and its detail is not.
	for _, token := range []string{"", "garbage", nobody, metrics} {
		f.want("/healthz", token, 200, "ok")
		if code, body := f.get("/readyz", token); code != 200 || body != "ok\n" {
			t.Errorf("/readyz: %d %q", code, body)
		}
	}
	f.want("/readyz", all, 200, "detail")
	f.ready.Store(false)
	f.want("/readyz", "", 503, "not ready")
	f.want("/nowhere", "", 404, "")
}

// Other methods, and other ways to give a token.
func TestRequestsThatAreOdd(t *testing.T) {
	f := newFixture(t)
	token, _ := f.reader("metrics", "/metrics")
	f.eventually("/metrics", token, 200)
	for _, tc := range []struct {
		method, path, authorization string
		want                        int
	}{
		{"HEAD", "/metrics", "Bearer " + token, 200},
		{"HEAD", "/metrics", "", 401},
		{"POST", "/metrics", "Bearer " + token, 405},
		{"DELETE", "/", "Bearer " + token, 405},
		{"PUT", "/healthz", "", 405},
		{"GET", "/metrics", "bearer " + token, 200},
		{"GET", "/metrics", "Basic " + token, 401},
		{"GET", "/metrics", token, 401},
		{"GET", "/metrics", "Bearer", 401},
		{"GET", "/metrics", "Bearer  ", 401},
		{"GET", "/metrics?access_token=" + token, "", 401},
		{"GET", "//metrics", "", 307},
		{"GET", "/x/../metrics", "", 307},
	} {
		r := httptest.NewRequest(tc.method, tc.path, nil)
		r.Header.Set("Authorization", tc.authorization)
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s %s: %d, not %d", tc.method, tc.path, w.Code, tc.want)
		}
		if tc.want == 401 && w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s: it is not told what is asked for", tc.method, tc.path)
		}
	}
}

// logClients has client-go log all that it can, too: it logs through klog, and asks
// for its verbosity.
func (f *fixture) logClients() {
	f.Helper()
	var level klog.Level
	if err := level.Set("10"); err != nil {
		f.Fatal(err)
	}
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(f.log), textlogger.Verbosity(10))))
	f.Cleanup(func() { _ = level.Set("0"); klog.ClearLogger() })
}

var asciiOfDump = regexp.MustCompile(`\|(.{1,16})\|`)

// dumped puts the text of hexadecimal dumps together, as client-go logs bodies that
// are no text.
func dumped(log string) string {
	var out strings.Builder
	for _, m := range asciiOfDump.FindAllStringSubmatch(log, -1) {
		out.WriteString(m[1])
	}
	return out.String()
}

// Many requests cost the API server two questions, and those that are refused do
// not cost more. Tokens reach no log.
func TestVerdictsAreCached(t *testing.T) {
	f := newFixture(t)
	token, _ := f.reader("metrics", "/metrics")
	f.eventually("/metrics", token, 200)
	nobody, _ := f.account("nobody")
	f.ahead.Add(int64(2 * allowedFor))
	tokens, access := f.reviews()
	f.logClients()
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			f.want("/metrics", token, 200, "detail")
			f.want("/metrics", nobody, 403, "")
			f.want("/metrics", "garbage", 401, "")
		})
	}
	wait.Wait()
	nowTokens, nowAccess := f.reviews()
	if nowTokens-tokens != 3 || nowAccess-access != 2 {
		t.Errorf("%d token reviews and %d access reviews, for three tokens of which two are accepted", nowTokens-tokens, nowAccess-access)
	}
	log := f.log.String()
	log += dumped(log)
	for _, secret := range []string{token, nobody, strings.Split(token, ".")[1], "garbage"} {
		if strings.Contains(log, secret) {
			t.Errorf("a token is in the log:\n%s", log)
		}
	}
	if _, err := f.admin.CoreV1().ServiceAccounts(f.ns).CreateToken(t.Context(), "nobody", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(dumped(f.log.String()), strings.Split(nobody, ".")[0]) {
		t.Error("no body is logged, not even of the test's own request for a token: this is not the highest verbosity")
	}
	if !strings.Contains(log, `"Not allowed to read" user="system:serviceaccount:`+f.ns+`:nobody" nonResourceURL="/metrics"`) {
		t.Errorf("this is not the highest verbosity:\n%s", log)
	}
}

// A right that is taken away ends when what is remembered of it does, and one that
// is given begins soon.
func TestVerdictsExpire(t *testing.T) {
	f := newFixture(t)
	token, revoke := f.reader("metrics", "/metrics")
	f.eventually("/metrics", token, 200)
	f.ahead.Add(int64(2 * allowedFor)) // so that what is remembered is from now on
	f.want("/metrics", token, 200, "detail")
	revoke()
	f.waitUntil("metrics", "/metrics", false)
	f.want("/metrics", token, 200, "detail")
	f.ahead.Add(int64(allowedFor))
	f.want("/metrics", token, 403, "")

	late, subject := f.account("late")
	f.want("/metrics", late, 403, "")
	f.grant(f.ns+"-late", subject, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})
	f.waitUntil("late", "/metrics", true)
	f.ahead.Add(int64(refusedFor))
	f.want("/metrics", late, 200, "detail")
}

// waitUntil waits until the API server knows that a right is given, or gone.
func (f *fixture) waitUntil(account, url string, allowed bool) {
	f.Helper()
	user := "system:serviceaccount:" + f.ns + ":" + account
	testcluster.Eventually(f, 20*time.Second, func() error {
		review, err := f.admin.AuthorizationV1().SubjectAccessReviews().Create(f.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: url, Verb: "get"}},
		}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed != allowed {
			err = fmt.Errorf("%s may get %s: %v", user, url, review.Status.Allowed)
		}
		return err
	})
}

// Whoever makes tokens up does not push out who is allowed.
func TestRefusalsDoNotDisplaceVerdicts(t *testing.T) {
	a := &Authorizer{}
	a.remember(time.Now)
	good := httptest.NewRequest("GET", "/metrics", nil)
	good.Header.Set("Authorization", "Bearer good")
	a.allowed.Add(question{tokenHash("good"), "/metrics"}, allowed, allowedFor)
	for i := range 3 * remembered {
		a.refused.Add(question{tokenHash(fmt.Sprint(i)), "/metrics"}, unauthenticated, refusedFor)
	}
	if v := a.verdict(good, "/metrics"); v != allowed {
		t.Errorf("%s", v)
	}
	if n := len(a.refused.Keys()); n > remembered {
		t.Errorf("%d refusals are kept", n)
	}
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// someRules are rules, so that rights are needed at all.
func someRules(t *testing.T) *rules.Set {
	t.Helper()
	source, err := builtin.Source(builtin.Default)
	if err != nil {
		t.Fatal(err)
	}
	set, problems := rules.Load(source)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set
}
