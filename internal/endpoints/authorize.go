package endpoints

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// How long verdicts hold. A right that is taken away ends within allowedFor, and
// one that is given begins within refusedFor.
const (
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	// remembered are the verdicts of each kind that are kept. Refusals have a place
	// of their own: whoever makes tokens up pushes nobody out that is allowed.
	remembered = 1000
)

// What the API server is asked, at most. The client is one of its own: neither
// does it wait for fixes nor they for it. A verdict takes two questions; with all
// the waiting they end before the answer has to be there.
const (
	reviewQPS     = 20
	reviewBurst   = 40
	reviewWait    = 5 * time.Second // for its turn, each
	reviewTimeout = 5 * time.Second // for the answer, each
)

// tellEvery is how often it is told, at most, that tokens could not be asked about:
// whoever reaches the port can bring that about.
const tellEvery = time.Minute

// Authorizer asks the API server who may read what. See
// docs/adr/0013-authorization-of-endpoints.md on why this is our own.
type Authorizer struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	logger klog.Logger
	turns  *rate.Limiter
	now    clock

	allowed, refused *cache.LRUExpireCache // verdicts by question
	asking           singleflight.Group    // by question: many who ask the same cost as much as one
	outage, flood    notice
}

// NewAuthorizer prepares an Authorizer; it does not contact the cluster. Its
// identity needs the rights to create tokenreviews and subjectaccessreviews.
func NewAuthorizer(config *rest.Config, logger klog.Logger) (*Authorizer, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil // turns has the limit: what waits too long for it is no outage
	config.WarningHandler = rest.NoWarnings{}
	tokens, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the client for token reviews: %w", err)
	}
	access, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("prepare the client for access reviews: %w", err)
	}
	a := &Authorizer{tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), logger: logger, turns: rate.NewLimiter(reviewQPS, reviewBurst)}
	a.remember(time.Now)
	return a, nil
}

// clock is what a cache goes by.
type clock func() time.Time

// Now implements cache.Clock.
func (c clock) Now() time.Time { return c() }

func (a *Authorizer) remember(now clock) {
	a.now = now
	a.allowed = cache.NewLRUExpireCacheWithClock(remembered, now)
	a.refused = cache.NewLRUExpireCacheWithClock(remembered, now)
}

// verdict is what becomes of a request.
type verdict string

const (
	allowed         verdict = "allowed"
	unauthenticated verdict = "the API server does not accept the token"
	noToken         verdict = "this takes a bearer token of the cluster"
	forbidden       verdict = "the right to read this is missing: get on the nonResourceURL"
	unknown         verdict = "the API server could not be asked who may read this"
	busy            verdict = "too many tokens come that are not known yet: try again"
)

// The nonResourceURLs that it takes the right to get. That of the status counts for
// all its forms, for the paths of the others would not do: Kubernetes gives
// everybody who has a token the right to get /api/* and /readyz (the ClusterRole
// system:discovery).
const (
	metricsRight = "/metrics"
	statusRight  = "/"
)

// guard lets those through who may get a nonResourceURL. A nil Authorizer allows
// all.
func (a *Authorizer) guard(right string, next http.Handler) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch v := a.verdict(r, right); v {
		case allowed:
			next.ServeHTTP(w, r)
		case forbidden:
			answer(w, http.StatusForbidden, string(v)+" "+right)
		case unknown, busy:
			answer(w, http.StatusServiceUnavailable, string(v))
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, string(v))
		}
	})
}

// question is what a verdict is about. It holds a hash of the token: the token
// itself is kept nowhere.
type question struct {
	token [sha256.Size]byte
	right string
}

func tokenHash(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// verdict decides whether who sends a request has a right.
func (a *Authorizer) verdict(r *http.Request, right string) verdict {
	token := bearerToken(r)
	if token == "" {
		return noToken
	}
	q := question{tokenHash(token), right}
	for _, known := range []*cache.LRUExpireCache{a.allowed, a.refused} {
		if v, ok := known.Get(q); ok {
			return v.(verdict)
		}
	}
	// It is not the request's context that counts: others may wait for the answer.
	v, _, _ := a.asking.Do(string(q.token[:])+q.right, func() (any, error) {
		return a.ask(context.Background(), q, token), nil
	})
	return v.(verdict)
}

// ask asks the API server, and remembers what it says.
func (a *Authorizer) ask(ctx context.Context, q question, token string) verdict {
	v, err := a.review(ctx, token, q.right)
	switch {
	case errors.Is(err, errBusy):
		a.tellFlood()
		return busy
	case err != nil:
		a.tellOutage(err)
		return unknown
	case v == allowed:
		a.allowed.Add(q, v, allowedFor)
	default:
		a.refused.Add(q, v, refusedFor)
	}
	a.outage.over()
	return v
}

// bearerToken is the token of a request; empty: it has none.
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
