package chaos

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/engine"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

var credentialFaults = []scenario{
	{
		name: "token-rotates-too-late", fault: "the service account's token ends before the file has a new one", long: true,
		run: rotateToken,
	},
}

// rotateToken ends a token while objects drift. client-go looks into the file once
// a minute.
func rotateToken(t *trial) {
	const n = 20
	l := t.shared()
	tokens := l.serviceAccount("rectifier")
	tokens.issue("first")
	refusals, sent := &refusals{}, &traffic{}
	config := tokens.config()
	config.Wrap(refusals.wrap)
	config.Wrap(sent.wrap)
	p := l.start(func(o *engine.Options) { o.Config = config }, follow)
	p.user, p.traffic = "system:serviceaccount:"+l.ns+":rectifier", sent
	l.drift(n, "before")
	l.allRight(time.Minute, n, "before")

	before := p.rest()
	tokens.end("first")
	ended := time.Now()
	l.drift(n, "after")
	testcluster.Eventually(l, time.Minute, func() error {
		if most, objects := refusals.count(); objects < n || most < 8 {
			return fmt.Errorf("%d attempts, for %d objects", most, objects)
		}
		return nil
	})
	tokens.issue("second")
	issued := time.Now()
	l.allRight(3*time.Minute, n, "after")
	most, _ := refusals.count()
	l.saw("without a token for %.0f s, at most %d attempts for one object; all right %.0f s after there was a new one",
		issued.Sub(ended).Seconds(), most, time.Since(issued).Seconds())
	// 5 ms, and twice as long each time: 16 attempts take more than two minutes.
	if most > 16 {
		l.Errorf("%d attempts for one object with a token that is not accepted", most)
	}
	p.judge(before, costOf(1, time.Since(ended), time.Since(before.at), n))
}

// serviceAccount is one whose tokens come and go.
type serviceAccount struct {
	*lab
	name, file string
	client     kubernetes.Interface
}

// serviceAccount makes one that may do everything.
func (l *lab) serviceAccount(name string) *serviceAccount {
	l.Helper()
	client, err := kubernetes.NewForConfig(l.cp.AdminConfig())
	if err != nil {
		l.Fatal(err)
	}
	l.create(serviceaccounts, l.ns, l.object(fmt.Sprintf(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":%q}}`, name)))
	l.mayDoEverything("system:serviceaccount:" + l.ns + ":" + name)
	return &serviceAccount{lab: l, name: name, file: filepath.Join(l.TempDir(), "token"), client: client}
}

// issue puts a token into the file that ends with a Secret: there is none that
// lives for less than ten minutes.
func (s *serviceAccount) issue(secret string) {
	s.Helper()
	bound := s.create(secrets, s.ns, s.object(fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q}}`, secret)))
	issued, err := s.client.CoreV1().ServiceAccounts(s.ns).CreateToken(s.Context(), s.name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			Kind: "Secret", APIVersion: "v1", Name: secret, UID: bound.GetUID(),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatalf("issue a token: %v", err)
	}
	if err := os.WriteFile(s.file+".new", []byte(issued.Status.Token), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(s.file+".new", s.file); err != nil {
		s.Fatal(err)
	}
}

// end ends a token, and waits until the API server knows: it remembers for 10 s
// that a token was good.
func (s *serviceAccount) end(secret string) {
	s.Helper()
	if err := s.client.CoreV1().Secrets(s.ns).Delete(s.Context(), secret, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(s.config())
	if err != nil {
		s.Fatal(err)
	}
	testcluster.Eventually(s, time.Minute, func() error {
		var code int
		client.Discovery().RESTClient().Get().AbsPath("/api/v1").Do(s.Context()).StatusCode(&code)
		if code != http.StatusUnauthorized {
			return fmt.Errorf("the token is still good: %d", code)
		}
		return nil
	})
}

// config is what a Pod has: the token is in a file.
func (s *serviceAccount) config() *rest.Config {
	admin := s.cp.AdminConfig()
	return &rest.Config{Host: admin.Host, BearerTokenFile: s.file, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}}
}

// refusals counts the PATCHes of ConfigMaps that were answered with 401. The audit
// log does not have them.
type refusals struct {
	mu sync.Mutex
	of map[string]int // path
}

func (r *refusals) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusUnauthorized && req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/configmaps/") {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.of == nil {
				r.of = map[string]int{}
			}
			r.of[req.URL.Path]++
		}
		return resp, err
	})
}

func (r *refusals) count() (most, objects int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.of {
		most = max(most, n)
	}
	return most, len(r.of)
}
