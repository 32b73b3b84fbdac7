package endpoints

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// review asks who has a token, and whether they may get a nonResourceURL. An error means
// that the API server has given no answer.
func (a *Authorizer) review(ctx context.Context, token, right string) (verdict, error) {
	// client-go logs the bodies of requests where the verbosity is high, and this
	// one is a token.
	ctx = klog.NewContext(ctx, logr.Discard())
	who, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return "", &reviewError{"tokenreviews.authentication.k8s.io", err}
	}
	// What is wrong with a token is in an error of the status, as if it had not
	// been possible to look: in both cases nobody knows whose it is.
	if !who.Status.Authenticated {
		return unauthenticated, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := a.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: right, Verb: "get"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", &reviewError{"subjectaccessreviews.authorization.k8s.io", err}
	}
	if !may.Status.Allowed || may.Status.Denied {
		a.logger.V(2).Info("Not allowed to read", "user", user.Username, "nonResourceURL", right)
		return forbidden, nil
	}
	return allowed, nil
}

// reviewError is a review that was not made. Its text has nothing of the server's
// message, nor of the request.
type reviewError struct {
	resource string
	err      error
}

func (e *reviewError) Unwrap() error { return e.err }

func (e *reviewError) Error() string {
	var status apierrors.APIStatus
	if errors.As(e.err, &status) {
		return fmt.Sprintf("create %s: HTTP %d", e.resource, status.Status().Code)
	}
	return fmt.Sprintf("create %s: no answer of the API server", e.resource)
}

// tellFailure logs that the API server cannot be asked, once until it can.
func (a *Authorizer) tellFailure(err error) {
	if a.failing.Swap(true) {
		return
	}
	if apierrors.IsForbidden(err) {
		a.logger.Error(err, "Not allowed to ask who may read metrics and status: nobody may; `rectifier rbac --authorize` prints the role that is needed")
		return
	}
	a.logger.Error(err, "The API server cannot be asked who may read metrics and status; those that were allowed lately still may")
}
