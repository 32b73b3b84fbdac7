package engine

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What each error of a write means. Answers are built as the API server's own
// code builds them, wrapped as client-go wraps them.
func TestClassify(t *testing.T) {
	gr := schema.GroupResource{Group: "apps", Resource: "deployments"}
	gk := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	secret := errors.New("the whole object: czNjcjN0")
	invalid := func(f string) error {
		return apierrors.NewInvalid(gk, "web", field.ErrorList{field.Invalid(field.NewPath(f), "czNjcjN0", "czNjcjN0 is wrong")})
	}
	terminating := apierrors.NewForbidden(gr, "web", secret)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	noEndpoint := apierrors.NewGenericServerResponse(404, "patch", gr, "web", "czNjcjN0", 0, true)
	for _, tc := range []struct {
		name   string
		err    error
		want   class
		after  time.Duration
		reason string
	}{
		{"an old resourceVersion", apierrors.NewConflict(gr, "web", secret), conflict, 0, "Conflict"},
		{"another object of the same name", invalid("metadata.uid"), conflict, 0, ""},
		{"the object is gone", apierrors.NewNotFound(gr, "web"), gone, 0, "NotFound"},
		{"the endpoint does not exist", noEndpoint, refused, 0, ""},
		{"the namespace is terminating", terminating, gone, 0, ""},
		{"throttled, through the transport", fmt.Errorf("Patch: %w", &retryAfterError{429, 30 * time.Second}), unavailable, 30 * time.Second, "429"},
		{"throttled", apierrors.NewTooManyRequests("czNjcjN0", 7), unavailable, 7 * time.Second, "TooManyRequests"},
		{"a webhook that fails", apierrors.NewInternalError(secret), unavailable, 0, "InternalError"},
		{"overload", apierrors.NewServiceUnavailable("czNjcjN0"), unavailable, 0, "ServiceUnavailable"},
		{"a timeout", apierrors.NewTimeoutError("czNjcjN0", 3), unavailable, 3 * time.Second, "Timeout"},
		{"an expired token", apierrors.NewUnauthorized("czNjcjN0"), unavailable, 0, "Unauthorized"},
		{"no connection", errors.New("connection refused"), unavailable, 0, "cannot be reached"},
		{"forbidden", apierrors.NewForbidden(gr, "web", secret), forbidden, 0, "Forbidden"},
		{"invalid", invalid("spec.selector"), refused, 0, "spec.selector: FieldValueInvalid"},
		{"denied by a webhook", apierrors.NewBadRequest("czNjcjN0"), refused, 0, "BadRequest"},
		{"too large", apierrors.NewRequestEntityTooLargeError("czNjcjN0"), refused, 0, "RequestEntityTooLarge"},
		{"a body that cannot be rendered", &bodyError{errors.New("patch too large")}, refused, 0, "patch too large"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := classify(fmt.Errorf("patch: %w", tc.err))
			if got.class != tc.want || got.after != tc.after || !strings.Contains(got.reason, tc.reason) {
				t.Errorf("got %+v; want class %s after %v with %q", got, tc.want, tc.after, tc.reason)
			}
			if strings.Contains(got.reason, "czNjcjN0") {
				t.Errorf("the reason holds what the server says of the object: %q", got.reason)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRetryAfterIsHandedToTheQueue(t *testing.T) {
	for _, tc := range []struct {
		status int
		header string
		want   time.Duration // -1: the answer goes through
	}{
		{200, "", -1}, {429, "30", 30 * time.Second}, {503, "1", time.Second}, {500, "", -1}, {429, "", -1}, {409, "5", -1}, {429, "soon", -1},
	} {
		rt := retryAfterTransport{roundTripper(func(*http.Request) (*http.Response, error) {
			h := http.Header{}
			if tc.header != "" {
				h.Set("Retry-After", tc.header)
			}
			return &http.Response{StatusCode: tc.status, Header: h, Body: io.NopCloser(strings.NewReader(""))}, nil
		})}
		_, err := rt.RoundTrip(nil)
		var later *retryAfterError
		switch {
		case tc.want < 0 && err != nil:
			t.Errorf("%d %q: error %v", tc.status, tc.header, err)
		case tc.want >= 0 && (!errors.As(err, &later) || later.after != tc.want):
			t.Errorf("%d %q: got %v, want %v", tc.status, tc.header, err, tc.want)
		}
	}
}
