package chaos

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// traffic counts the requests of a client where they leave it. The audit log has
// only those that arrive, which are none while the API server is away.
type traffic struct {
	mu   sync.Mutex
	sent map[string]int // by what sort of request it is; see kindOf
}

// wrap is for rest.Config.Wrap.
func (t *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		kind := kindOf(r)
		t.mu.Lock()
		if t.sent == nil {
			t.sent = map[string]int{}
		}
		t.sent[kind]++
		t.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// since returns what was sent after an earlier snapshot, which may be nil.
func (t *traffic) since(earlier map[string]int) map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]int{}
	for kind, n := range t.sent {
		if n -= earlier[kind]; n > 0 {
			out[kind] = n
		}
	}
	return out
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// kindOf is verb and resource, such as "list configmaps"; "discovery" for what
// is about no resource. A list that comes as a watch with initial events is a
// "stream", and a list's second part and so on a "page".
func kindOf(r *http.Request) string {
	info, err := requests.NewRequestInfo(r)
	switch {
	case err != nil || !info.IsResourceRequest:
		return "discovery"
	case r.URL.Query().Has("sendInitialEvents"):
		return "stream " + info.Resource
	case r.URL.Query().Has("continue"):
		return "page " + info.Resource
	default:
		return info.Verb + " " + info.Resource
	}
}

// describe lists what was sent, for the table.
func describe(sent map[string]int) string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(sent)) {
		out = append(out, fmt.Sprintf("%d %s", sent[kind], kind))
	}
	return strings.Join(out, ", ")
}
