package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// class is what an error of a write means for what is done next.
type class string

const (
	conflict     class = "conflict"     // another version, or another object: decide again
	gone         class = "gone"         // forget
	throttled    class = "throttled"    // too many requests: the same again when the server says
	unavailable  class = "unavailable"  // timed out, down, out of order: the same again later
	unauthorized class = "unauthorized" // the credentials are not accepted: the same again, new ones may come
	forbidden    class = "forbidden"    // a permission is missing, or admission says no
	refused      class = "refused"      // invalid, immutable, denied, too large: never as it is
	outdated     class = "outdated"     // the rules have changed: decide again
	deposed      class = "deposed"      // the lease is lost: another instance will do it
)

type failure struct {
	class  class
	after  time.Duration // when the server wants to be asked again; 0: it does not say
	reason string        // fit for logs and events
	// passing, with refused: it is admission that may say something else another
	// time, not the object.
	passing bool
	// misfit, with refused: an operation of a JSON patch may not fit. The server
	// says no more than that something is invalid.
	misfit bool
}

// bodyError is a request that could not be rendered.
type bodyError struct{ error }

// objectID is the object that a write was about.
type objectID struct {
	resource   schema.GroupResource
	kind, name string
	uid        types.UID
}

// classify is the one place that decides what an error of a write means.
//
// The reason never holds the server's message: that can contain the whole
// object, data of Secrets included. It holds what the API declares as safe to
// show: status reason, and cause types and fields.
func classify(err error, about objectID) failure {
	var later *retryAfterError
	var body *bodyError
	switch {
	case errors.As(err, &later):
		return failure{class: later.class(), after: later.after, reason: later.Error()}
	case errors.As(err, &body):
		return failure{class: refused, reason: body.Error()}
	case errors.Is(err, errOutdated):
		return failure{class: outdated, reason: errOutdated.reason}
	case errors.Is(err, ErrLeaseLost):
		return failure{class: deposed, reason: ErrLeaseLost.Error()}
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
	case about.namedBy(s) && (apierrors.IsConflict(err) || replaced(s)):
		f.class = conflict
	case about.namedBy(s) && apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		f.class = gone
	case tooLarge(s):
		f.class = refused
		f.reason = "the object or the request is too large"
	case apierrors.IsTooManyRequests(err):
		f.class = throttled
	case apierrors.IsUnauthorized(err) && !namesSomething(s):
		f.class = unauthorized
	case apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err), s.Code >= http.StatusInternalServerError:
		f.class = unavailable
	case apierrors.IsForbidden(err):
		f.class = forbidden
	default:
		f.class = refused
		f.passing = byAdmission(s)
		f.misfit = s.Reason == metav1.StatusReasonInvalid && !hasCauses(s)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		f.after = min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	return f
}

// reasonOf tells of any error of the API server what is fit for logs.
func reasonOf(err error) string { return classify(err, objectID{}).reason }

// namedBy reports whether a status says that it is about the object, as the API
// server's own do. A webhook may deny with any code: its "not found" or
// "conflict" is about something else, and no watch event will follow. (So is
// the conflict of a quota.)
func (o objectID) namedBy(s metav1.Status) bool {
	d := s.Details
	if d == nil || d.Name != o.name || d.Group != o.resource.Group || d.UID != "" && d.UID != o.uid {
		return false
	}
	resource, _, _ := strings.Cut(d.Kind, "/") // deployments/scale
	return (resource == o.resource.Resource || resource == o.kind) && !hasCause(s, metav1.CauseTypeUnexpectedServerResponse)
}

// namesSomething tells the statuses of admission from those that the API server
// gives before it looks at what the request is about.
func namesSomething(s metav1.Status) bool { return s.Details != nil && s.Details.Name != "" }

func hasCauses(s metav1.Status) bool { return s.Details != nil && len(s.Details.Causes) > 0 }

func hasCause(s metav1.Status, t metav1.CauseType) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == t })
}

// replaced reports whether the object that was decided on is not there any
// more, but another one of its name: the uid then is "immutable".
func replaced(s metav1.Status) bool {
	return s.Reason == metav1.StatusReasonInvalid && s.Details != nil &&
		slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// tooLarge reports whether a request is larger than the API server reads, or an
// object larger than it can store. The latter is an error 500 without a reason,
// as an outage is: only the texts of etcd and of its client tell. (The API
// server itself goes by them: isTooLargeError in its handlers.)
func tooLarge(s metav1.Status) bool {
	switch s.Code {
	case http.StatusRequestEntityTooLarge:
		return !namesSomething(s)
	case http.StatusInternalServerError:
		return s.Reason == "" && (s.Message == "etcdserver: request is too large" || strings.Contains(s.Message, "trying to send message larger than max"))
	}
	return false
}

// byAdmission reports whether it may be admission that refuses: webhooks and
// policies come, go and think better of it, so that the same object may be taken
// another time. The API server's own validation names a field, and what it has
// against a request as such has its own reasons.
func byAdmission(s metav1.Status) bool {
	switch s.Reason {
	case metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonUnsupportedMediaType:
		return false
	}
	return s.Details == nil || !slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" })
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
		text := string(c.Type)
		if fieldPath.MatchString(c.Field) {
			text = strings.Join(append([]string{c.Field + ": " + text}, mistakes(c.Message)...), "; ")
		}
		causes = append(causes, text)
	}
	if len(causes) == 0 {
		return reason
	}
	return reason + " (" + strings.Join(slices.Compact(causes), ", ") + ")"
}

// word is what reasons and types of causes look like. A webhook may put a whole
// text there that quotes the object.
var word = regexp.MustCompile(`^[A-Z][A-Za-z]{1,60}$`)

// fieldPath is what fields of causes look like, with the names of map entries
// and the positions of list items in brackets.
var fieldPath = regexp.MustCompile(`^[a-z][A-Za-z0-9]*(\.[A-Za-z0-9$_-]+|\[[A-Za-z0-9._/-]*\]){0,30}$`)

// What the API server says of a patch that does not fit the type, and of a field
// that cannot change: fixed words, and names of fields and types, which come from
// the rule and the schema. The rest of its messages can be the whole object.
var knownMistakes = regexp.MustCompile(`unknown field "[A-Za-z0-9_.\[\]-]{1,200}"|cannot unmarshal [a-z]+ into Go (struct field|value) ([A-Za-z0-9_.]{1,200} )?of type [A-Za-z0-9_.*\[\]]{1,100}|field is immutable|may not change once set`)

// maxMistakes keeps a reason readable.
const maxMistakes = 3

// mistakes picks out of a server's message what is fit to be told.
func mistakes(message string) []string {
	found := knownMistakes.FindAllString(message, -1)
	slices.Sort(found)
	found = slices.Compact(found)
	return found[:min(len(found), maxMistakes)]
}
