package endpoints

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// review asks who has a token, and whether they may get a nonResourceURL. An error means
// that the API server has given no answer, or, errBusy, that it was not asked.
func (a *Authorizer) review(ctx context.Context, token, right string) (verdict, error) {
	// client-go logs the bodies of requests where the verbosity is high, and this
	// one is a token.
	ctx = klog.NewContext(ctx, logr.Discard())
	var who *authenticationv1.TokenReview
	err := a.inTurn(ctx, "tokenreviews.authentication.k8s.io", func(ctx context.Context) (err error) {
		who, err = a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return "", err
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
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: right, Verb: "get"},
	}}
	err = a.inTurn(ctx, "subjectaccessreviews.authorization.k8s.io", func(ctx context.Context) (err error) {
		may, err = a.access.Create(ctx, may, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	if !may.Status.Allowed || may.Status.Denied {
		a.logger.V(2).Info("Not allowed to read", "user", user.Username, "nonResourceURL", right)
		return forbidden, nil
	}
	return allowed, nil
}

// errBusy says that there are too many questions.
var errBusy = errors.New("too many questions for the API server")

// inTurn sends a request for a review when it is its turn.
func (a *Authorizer) inTurn(ctx context.Context, resource string, send func(context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, reviewWait)
	defer cancel()
	if a.turns.Wait(wait) != nil {
		return errBusy
	}
	ctx, cancel = context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	if err := send(ctx); err != nil {
		return &reviewError{resource, err}
	}
	return nil
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

// tellOutage logs that the API server cannot be asked, once until it can.
func (a *Authorizer) tellOutage(err error) {
	if !a.outage.due(a.now()) {
		return
	}
	if apierrors.IsForbidden(err) {
		a.logger.Error(err, "Not allowed to ask who may read metrics and status: nobody may; `rectifier rbac --authorize` prints the role that is needed")
		return
	}
	a.logger.Error(err, "The API server cannot be asked who may read metrics and status; those that were allowed lately still may")
}

// tellFlood logs that somebody sends more tokens than the API server is asked
// about.
func (a *Authorizer) tellFlood() {
	if a.flood.due(a.now()) {
		a.logger.Info("Too many tokens come that are not known yet, and some requests are refused for that; those that were allowed lately still may read", "perSecond", reviewQPS)
		a.flood.over() // each minute in which it goes on is told
	}
}

// notice is something that is told when it begins, and not more often than
// tellEvery, however often it comes and goes. It is safe for concurrent use.
type notice struct {
	mu    sync.Mutex
	told  bool // and it is not over yet
	until time.Time
}

// due reports whether it is to be told now.
func (n *notice) due(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told || now.Before(n.until) {
		return false
	}
	n.told, n.until = true, now.Add(tellEvery)
	return true
}

// over notes that it has ended.
func (n *notice) over() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = false
}
