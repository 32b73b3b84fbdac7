package live

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// cut has requests for paths with a text in them fail before they are sent.
type cut struct {
	http.RoundTripper
	path string
}

func (c cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path+"?"+r.URL.RawQuery, c.path) {
		return nil, syscall.ECONNREFUSED
	}
	return c.RoundTripper.RoundTrip(r)
}

// A Namespace that may not be read is left out, one that does not exist is told
// of, and where the cluster gives no answer nobody knows.
func TestNamespaces(t *testing.T) {
	f := newFixture(t)
	secret := testcluster.Namespace(t)
	f.grant(false, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	config, err := f.cp.User(f.user)
	if err != nil {
		t.Fatal(err)
	}
	admin := f.cp.AdminConfig()
	unknown := func(config *rest.Config, path string) *rest.Config {
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cut{next, path} })
		return config
	}
	for name, tc := range map[string]struct {
		config  *rest.Config
		names   []string
		want    string // the names that are read
		missing string
		unknown bool
	}{
		"all":                       {admin, []string{f.ns, secret}, f.ns + " " + secret, "", false},
		"one may not be read":       {config, []string{f.ns, secret}, f.ns, "", false},
		"one is not there":          {admin, []string{f.ns, "nowhere"}, "", "nowhere", false},
		"one is not known":          {unknown(admin, "/namespaces/"+f.ns), []string{f.ns, secret}, "", "", true},
		"nothing is known":          {unknown(admin, "/namespaces"), []string{f.ns, secret}, "", "", true},
		"not known, and not there":  {unknown(admin, "/namespaces/"+f.ns), []string{f.ns, "nowhere"}, "", "nowhere", false},
		"not known, and may not be": {unknown(config, "/namespaces/"+f.ns), []string{secret, f.ns}, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Namespaces(t.Context(), tc.config, tc.names)
			var got []string
			for _, name := range tc.names {
				if found[name] != nil {
					got = append(got, name)
				}
			}
			var none *NoNamespaceError
			missing := ""
			if errors.As(err, &none) {
				missing = none.Name
			}
			if strings.Join(got, " ") != tc.want || missing != tc.missing || (err != nil) != (tc.missing != "" || tc.unknown) {
				t.Errorf("it reads %q, and says: %v", got, err)
			}
		})
	}
}
