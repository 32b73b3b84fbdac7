package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// class is what an error of a write means for what is done next.
type class string

const (
	conflict    class = "conflict"    // another version, or another object: decide again
	gone        class = "gone"        // forget
	unavailable class = "unavailable" // throttled, timed out, down: the same again later
	forbidden   class = "forbidden"   // a permission is missing, or admission says no
	refused     class = "refused"     // invalid, immutable, denied, too large: never as it is
)

type failure struct {
	class  class
	after  time.Duration // with unavailable: when the server wants to be asked again
	reason string        // fit for logs and events
	// unexplained: the server names no field, as when an operation of a JSON
	// patch does not fit.
	unexplained bool
}

// bodyError is a request that could not be rendered.
type bodyError struct{ error }

// classify is the one place that decides what an error of a write means.
//
// The reason never holds the server's message: that can contain the whole
// object, data of Secrets included. It holds what the API declares as safe to
// show: status reason, and cause types and fields.
func classify(err error) failure {
	var later *retryAfterError
	var body *bodyError
	switch {
	case errors.As(err, &later):
		return failure{class: unavailable, after: later.after, reason: later.Error()}
	case errors.As(err, &body):
		return failure{class: refused, reason: body.Error()}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		if errors.Is(err, context.DeadlineExceeded) {
			return failure{class: unavailable, reason: fmt.Sprintf("no answer within %v", writeTimeout)}
		}
		return failure{class: unavailable, reason: "the API server cannot be reached"}
	}
	s := status.Status()
	f := failure{reason: publicReason(s)}
	switch {
	case apierrors.IsConflict(err) && aboutObject(s), replaced(s):
		f.class = conflict
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		f.class = gone
	case apierrors.IsNotFound(err) && aboutObject(s) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		f.class = gone
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsUnauthorized(err), s.Code >= http.StatusInternalServerError:
		f.class = unavailable
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			f.after = time.Duration(seconds) * time.Second
		}
	case apierrors.IsForbidden(err):
		f.class = forbidden
	default:
		f.class = refused
		f.unexplained = s.Details == nil || len(s.Details.Causes) == 0
	}
	return f
}

// aboutObject reports whether a status says which object it is about, as the API
// server's own do. A webhook may deny with any code: its "not found" or
// "conflict" is about something else, and no watch event will follow.
func aboutObject(s metav1.Status) bool { return s.Details != nil && s.Details.Name != "" }

// replaced reports whether the object that was decided on is not there any
// more, but another one of its name: the uid then is "immutable".
func replaced(s metav1.Status) bool {
	return s.Reason == metav1.StatusReasonInvalid && s.Details != nil &&
		slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// publicReason tells of a status what cannot contain an object's content.
func publicReason(s metav1.Status) string {
	reason := string(s.Reason)
	if !word.MatchString(reason) {
		reason = http.StatusText(int(s.Code))
	}
	if s.Details == nil {
		return reason
	}
	var causes []string
	for _, c := range s.Details.Causes {
		if !word.MatchString(string(c.Type)) {
			continue
		}
		switch {
		case c.Field != "" && c.Type != "":
			causes = append(causes, strings.Join(append([]string{fmt.Sprintf("%s: %s", c.Field, c.Type)}, mistakes(c.Message)...), "; "))
		case c.Type != "":
			causes = append(causes, string(c.Type))
		}
	}
	if len(causes) == 0 {
		return reason
	}
	return reason + " (" + strings.Join(causes, ", ") + ")"
}

// word is what reasons and types of causes look like. A webhook may put a whole
// text there that quotes the object.
var word = regexp.MustCompile(`^[A-Z][A-Za-z]{1,60}$`)

// What the decoder of the API server says of a patch that does not fit the
// type: names of fields and types, which come from the rule and the schema. The
// rest of its message is the whole object.
var decoderMistakes = regexp.MustCompile(`unknown field "[A-Za-z0-9_.\[\]-]{1,200}"|cannot unmarshal [a-z]+ into Go (struct field|value) ([A-Za-z0-9_.]{1,200} )?of type [A-Za-z0-9_.*\[\]]{1,100}`)

// maxMistakes keeps a reason readable.
const maxMistakes = 3

// mistakes picks out of a server's message what is fit to be told.
func mistakes(message string) []string {
	found := decoderMistakes.FindAllString(message, -1)
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), maxMistakes)]
}

// retryAfterError is an answer that asks to come back later.
type retryAfterError struct {
	status int
	after  time.Duration
}

func (e *retryAfterError) Error() string {
	return fmt.Sprintf("the API server answered %d %s", e.status, http.StatusText(e.status))
}

// retryAfterTransport takes 429 and 5xx answers that carry a Retry-After away
// from client-go, which would sleep and retry inside of the call: the worker
// would be lost to other objects meanwhile. The queue waits instead.
type retryAfterTransport struct{ next http.RoundTripper }

func (t retryAfterTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return resp, err
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, &retryAfterError{resp.StatusCode, time.Duration(seconds) * time.Second}
}

// accessReviewer asks whether the engine may write. A 403 can come from RBAC or
// from admission, and nothing but its text tells them apart.
type accessReviewer struct {
	client authorizationclient.SelfSubjectAccessReviewInterface
}

func (a accessReviewer) mayPatch(ctx context.Context, resource schema.GroupVersionResource, key Key, subresource string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	review, err := a.client.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "patch", Group: resource.Group, Version: resource.Version, Resource: resource.Resource,
			Subresource: subresource, Namespace: key.Namespace, Name: key.Name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for permission to patch: %w", err)
	}
	return review.Status.Allowed, nil
}
