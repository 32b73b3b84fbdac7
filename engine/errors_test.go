package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// recorded is an answer that kube-apiserver 1.37.2 gave to a PATCH of Deployment
// web, or one that somebody between gives. S3CR3T stands where the object is
// quoted.
type recorded struct {
	name       string
	code       int
	retryAfter string
	status     string // the fields of a Status; it begins with "{": the whole body
	want       failure
}

const aboutWeb = `"details":{"name":"web","group":"apps","kind":"deployments"}`

func causes(kind, list string) string {
	return `"reason":"Invalid","details":{"name":"web","group":"apps","kind":"` + kind + `","causes":[` + list + `]}`
}

var answers = []recorded{
	// Another version, another object.
	{"an old resourceVersion", 409, "", `"reason":"Conflict","message":"Operation cannot be fulfilled on deployments.apps \"web\": the object has been modified",` + aboutWeb,
		failure{class: conflict, reason: "Conflict"}},
	{"an old resourceVersion, also with a detail of the object's kind", 409, "", `"reason":"Conflict","details":{"name":"web","group":"apps","kind":"Deployment"}`,
		failure{class: conflict, reason: "Conflict"}},
	{"another uid, on /scale", 409, "", `"reason":"Conflict","message":"Precondition failed: UID in precondition","details":{"name":"web","group":"apps","kind":"deployments/scale"}`,
		failure{class: conflict, reason: "Conflict"}},
	{"another uid", 422, "", causes("Deployment", `{"reason":"FieldValueInvalid","message":"Invalid value: \"1\": field is immutable","field":"metadata.uid"}`),
		failure{class: conflict, reason: "Invalid (metadata.uid: FieldValueInvalid; field is immutable)"}},
	{"the object is gone, or its Namespace", 404, "", `"reason":"NotFound","message":"deployments.apps \"web\" not found",` + aboutWeb,
		failure{class: gone, reason: "NotFound"}},
	{"a Namespace that is terminating", 403, "", `"reason":"Forbidden","message":"forbidden: unable to create new content in namespace S3CR3T","details":{"name":"web","group":"apps","kind":"deployments","causes":[{"reason":"NamespaceTerminating","message":"S3CR3T","field":"metadata.namespace"}]}`,
		failure{class: gone, reason: "Forbidden (metadata.namespace: NamespaceTerminating)"}},

	// The same words about something else.
	{"a webhook that did not find its tenant", 404, "", `"reason":"NotFound","message":"admission webhook \"w\" denied the request: S3CR3T","details":{"name":"web","group":"tenancy.example.io","kind":"tenants"}`,
		failure{class: refused, reason: "NotFound", passing: true}},
	{"a webhook that found another object of the kind missing", 404, "", `"reason":"NotFound","details":{"name":"other","group":"apps","kind":"deployments"}`,
		failure{class: refused, reason: "NotFound", passing: true}},
	{"a webhook that found an object of that name missing, of another kind", 404, "", `"reason":"NotFound","details":{"name":"web","group":"apps","kind":"replicasets"}`,
		failure{class: refused, reason: "NotFound", passing: true}},
	{"a webhook's conflict with another uid", 409, "", `"reason":"Conflict","details":{"name":"web","group":"apps","kind":"deployments","uid":"another"}`,
		failure{class: refused, reason: "Conflict", passing: true}},
	{"a quota that changes all the time", 409, "", `"reason":"Conflict","message":"Operation cannot be fulfilled on resourcequotas \"q\"","details":{"name":"q","kind":"resourcequotas"}`,
		failure{class: refused, reason: "Conflict", passing: true}},
	{"a webhook that says 409 and no more", 409, "", `"message":"admission webhook \"w\" denied the request: S3CR3T"`,
		failure{class: refused, reason: "Conflict", passing: true}},
	{"the resource is not served any more", 404, "", `{404 page not found`,
		failure{class: refused, reason: "NotFound (UnexpectedServerResponse)", passing: true}},
	{"a subresource that does not exist", 404, "", `"reason":"NotFound","message":"the server could not find the requested resource","details":{}`,
		failure{class: refused, reason: "NotFound", passing: true}},

	// Later.
	{"priority and fairness", 429, "7", `"reason":"TooManyRequests","message":"too many requests, please try again later"`,
		failure{class: throttled, after: 7 * time.Second, reason: "the API server answered 429 Too Many Requests"}},
	{"429 with a delay in its details only", 429, "", `"reason":"TooManyRequests","details":{"retryAfterSeconds":3}`,
		failure{class: throttled, after: 3 * time.Second, reason: "TooManyRequests"}},
	{"429 that says nothing of when", 429, "", `{slow down`,
		failure{class: throttled, reason: "TooManyRequests (UnexpectedServerResponse)"}},
	{"429 with a delay of a year", 429, "31536000", `{slow down`,
		failure{class: throttled, after: lastRetry, reason: "the API server answered 429 Too Many Requests"}},
	{"a server that shuts down", 503, "1", `{S3CR3T`,
		failure{class: unavailable, after: time.Second, reason: "the API server answered 503 Service Unavailable"}},
	{"a proxy with no server behind it", 503, "", `{S3CR3T`,
		failure{class: unavailable, reason: "ServiceUnavailable (UnexpectedServerResponse)"}},
	{"a proxy that waited in vain", 504, "", `{S3CR3T`,
		failure{class: unavailable, reason: "Timeout (UnexpectedServerResponse)"}},
	{"etcd that does not answer", 504, "", `"reason":"Timeout","message":"Timeout: request did not complete within requested timeout - context deadline exceeded","details":{}`,
		failure{class: unavailable, reason: "Timeout"}},
	{"etcd that has no leader", 500, "", `"message":"etcdserver: request timed out"`,
		failure{class: unavailable, reason: "Internal Server Error"}},
	{"a webhook that cannot be called", 500, "", `"reason":"InternalError","message":"Internal error occurred: failed calling webhook \"w\": S3CR3T","details":{"causes":[{"message":"failed calling webhook \"w\": S3CR3T"}]}`,
		failure{class: unavailable, reason: "InternalError"}},
	{"a token that has expired", 401, "", `"reason":"Unauthorized","message":"Unauthorized"`,
		failure{class: unauthorized, reason: "Unauthorized"}},

	// Never as it is.
	{"a field that cannot change", 422, "", causes("Deployment", `{"reason":"FieldValueInvalid","message":"Invalid value: {\"matchLabels\":{\"app\":\"S3CR3T\"}}: field is immutable","field":"spec.selector"}`),
		failure{class: refused, reason: "Invalid (spec.selector: FieldValueInvalid; field is immutable)"}},
	{"an address that cannot change", 422, "", causes("Deployment", `{"reason":"FieldValueInvalid","message":"Invalid value: [\"S3CR3T\"]: may not change once set","field":"spec.clusterIPs[0]"}`),
		failure{class: refused, reason: "Invalid (spec.clusterIPs[0]: FieldValueInvalid; may not change once set)"}},
	{"what a schema forbids", 422, "", causes("Deployment", `{"reason":"FieldValueNotSupported","message":"Unsupported value: \"S3CR3T\"","field":"spec.mode"},{"reason":"FieldValueInvalid","message":"Invalid value: null: some validation rules were not checked","field":"\u003cnil\u003e"}`),
		failure{class: refused, reason: "Invalid (spec.mode: FieldValueNotSupported, FieldValueInvalid)"}},
	{"an unknown field", 422, "", `"reason":"Invalid","message":" \"\" is invalid: patch: Invalid value: S3CR3T","details":{"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"{S3CR3T}\": strict decoding error: unknown field \"dta\"","field":"patch"}]}`,
		failure{class: refused, reason: `Invalid (patch: FieldValueInvalid; unknown field "dta")`}},
	{"an operation of a JSON patch that does not fit", 422, "", `"reason":"Invalid","message":"the server rejected our request due to an error in our request","details":{}`,
		failure{class: refused, reason: "Invalid", passing: true, misfit: true}},
	{"annotations that are too large", 422, "", causes("Deployment", `{"reason":"FieldValueTooLong","message":"Too long: may not be more than 262144 bytes","field":"metadata.annotations"}`),
		failure{class: refused, reason: "Invalid (metadata.annotations: FieldValueTooLong)"}},
	{"an object that is too large for etcd", 500, "", `"message":"etcdserver: request is too large"`,
		failure{class: refused, reason: "the object or the request is too large"}},
	{"an object that is too large to be sent to etcd", 500, "", `"message":"rpc error: code = ResourceExhausted desc = trying to send message larger than max (3200605 vs. 2097152)"`,
		failure{class: refused, reason: "the object or the request is too large"}},
	{"a request that is too large", 413, "", `"reason":"RequestEntityTooLarge","message":"Request entity too large: limit is 3145728"`,
		failure{class: refused, reason: "the object or the request is too large"}},
	{"a patch format that is not understood", 415, "", `"reason":"UnsupportedMediaType","message":"the body of the request was in an unknown format"`,
		failure{class: refused, reason: "UnsupportedMediaType"}},
	{"a resource that cannot be patched", 405, "", `"reason":"MethodNotAllowed","message":"the server does not allow this method on the requested resource","details":{}`,
		failure{class: refused, reason: "MethodNotAllowed"}},
	{"an answer in a format that is not served", 406, "", `"reason":"NotAcceptable","message":"only the following media types are accepted"`,
		failure{class: refused, reason: "NotAcceptable"}},

	// Admission.
	{"a permission that is missing, or admission", 403, "", `"reason":"Forbidden","message":"deployments.apps \"web\" is forbidden: S3CR3T",` + aboutWeb,
		failure{class: forbidden, reason: "Forbidden"}},
	{"an exceeded quota", 403, "", `"reason":"Forbidden","message":"deployments.apps \"web\" is forbidden: exceeded quota: q, requested: S3CR3T",` + aboutWeb,
		failure{class: forbidden, reason: "Forbidden"}},
	{"a webhook that denies", 400, "", `"message":"admission webhook \"w\" denied the request: S3CR3T"`,
		failure{class: refused, reason: "Bad Request", passing: true}},
	{"a policy that denies", 422, "", `"reason":"Invalid","message":"deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: S3CR3T","details":{"name":"web","group":"apps","kind":"deployments","causes":[{"message":"S3CR3T"}]}`,
		failure{class: refused, reason: "Invalid", passing: true}},
	{"a policy that calls it unauthorized", 401, "", `"reason":"Unauthorized","message":"S3CR3T",` + aboutWeb,
		failure{class: refused, reason: "Unauthorized", passing: true}},
	{"a policy that calls it too large", 413, "", `"reason":"RequestEntityTooLarge","message":"S3CR3T",` + aboutWeb,
		failure{class: refused, reason: "RequestEntityTooLarge", passing: true}},
	{"a webhook that writes essays where words belong", 400, "", `"reason":"do not use S3CR3T","details":{"causes":[{"reason":"S3CR3T is weak","field":"data"},{"reason":"Weak","message":"S3CR3T","field":"data is S3CR3T"}]}`,
		failure{class: refused, reason: "Bad Request (Weak)"}},
}

// What each answer means, as it comes out of the engine's client: which asks
// once, whatever the server says of when to come back.
func TestClassify(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	about := objectID{resource.GroupResource(), "Deployment", "web", "the-uid"}
	for _, tc := range answers {
		t.Run(tc.name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				body, whole := strings.CutPrefix(tc.status, "{")
				if !whole {
					body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",%s,"code":%d}`, tc.status, tc.code)
					w.Header().Set("Content-Type", "application/json")
				}
				if tc.retryAfter != "" {
					w.Header().Set("Retry-After", tc.retryAfter)
				}
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(body))
			}))
			defer server.Close()
			config := unlimited(&rest.Config{Host: server.URL})
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return retryAfterTransport{rt} })
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Resource(resource).Namespace("ns").Patch(t.Context(), "web", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			if got := classify(fmt.Errorf("patch: %w", err), about); got != tc.want {
				t.Errorf("%v:\n got %+v\nwant %+v", err, got, tc.want)
			}
			if got := requests.Load(); got != 1 {
				t.Errorf("%d requests", got)
			}
		})
	}
}

// What comes back without an answer.
func TestClassifyWithoutAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want failure
	}{
		{errors.New("dial tcp 127.0.0.1:6443: connect: connection refused"), failure{class: unavailable, reason: "the API server cannot be reached"}},
		{context.DeadlineExceeded, failure{class: unavailable, reason: "no answer within 10s"}},
		{&bodyError{errors.New("patch too large")}, failure{class: refused, reason: "patch too large"}},
		{errOutdated, failure{class: outdated, reason: errOutdated.reason}},
		{ErrLeaseLost, failure{class: deposed, reason: ErrLeaseLost.Error()}},
	} {
		if got := classify(fmt.Errorf("patch: %w", tc.err), objectID{}); got != tc.want {
			t.Errorf("%v: got %+v, want %+v", tc.err, got, tc.want)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"0": 0, "30": 30 * time.Second, "-1": 0, "soon": 0, "99999999999999999999": 0,
		"9223372036854775807":           maxRetryAfter,
		"Wed, 01 Jul 2026 12:00:20 GMT": 20 * time.Second,
		"Wed, 01 Jul 2026 11:00:00 GMT": 0,
		"Fri, 01 Jan 2100 00:00:00 GMT": maxRetryAfter,
	} {
		if got := parseRetryAfter(header, now); got != want {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	}
}

// Not earlier than the server says, nor than the backoff, and never for good.
func TestComeBack(t *testing.T) {
	for _, tc := range []struct {
		after    time.Duration
		failures int
		want     time.Duration
	}{
		{time.Second, 1, time.Second},
		{time.Second, 10, 2560 * time.Millisecond},
		{time.Second, 1000, lastRetry},
		{lastRetry, 1, lastRetry},
	} {
		if got := comeBack(tc.after, tc.failures); got < tc.want || got > tc.want+tc.want/5 {
			t.Errorf("%v after %d failures: got %v, want %v and up to a fifth more", tc.after, tc.failures, got, tc.want)
		}
	}
}
