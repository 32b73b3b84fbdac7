package gvr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/watchlist"
)

// This file is the client between an informer's reflector and the server. The reflector would answer a failed
// request with its own back-off, which grows to a minute, cannot be configured through an informer and in places
// cannot be interrupted. So a failed request is repeated here, inside the reflector's call, with our back-off:
// the reflector only sees that the answer took long. Only what the reflector must act on goes through to it: its
// resource version has expired, or lies in the future.

// attemptBackoff has a quick start, because a CRD is often listed a moment before it is served, and ends below 20 s.
var attemptBackoff = wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 8, Cap: 15 * time.Second}

// A watch that ends within shortWatch is a sign of trouble if it happens shortWatches times in a row: some proxies
// answer 200 and close at once. The reflector tells nobody in that case, and backs off only if the watch was empty: one
// that has brought an event it opens again at once, for each event. So stopping one takes shortWatch then: opening the
// next one may not, or the reflector would take that for a watch that was not short.
const (
	shortWatch   = time.Second
	shortWatches = 3
)

var errWatchEnds = errors.New("every watch ends at once")

// attempts is a dynamic.Interface that repeats failed lists and watches until they succeed or their context ends.
type attempts struct {
	dynamic.Interface
	backoff wait.Backoff
	// report is called after each attempt, with nil if it worked; from the reflector's goroutines.
	report func(verb string, err error)

	mu    sync.Mutex
	short int // short watches in a row
}

// IsWatchListSemanticsUnSupported hands through what client-go's fake clients say about themselves.
func (a *attempts) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(a.Interface)
}

func (a *attempts) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resourceAttempts{a.Interface.Resource(gvr), a}
}

type resourceAttempts struct {
	dynamic.NamespaceableResourceInterface
	attempts *attempts
}

func (r resourceAttempts) Namespace(namespace string) dynamic.ResourceInterface {
	return scopeAttempts{r.NamespaceableResourceInterface.Namespace(namespace), r.attempts}
}

type scopeAttempts struct {
	dynamic.ResourceInterface
	attempts *attempts
}

func (s scopeAttempts) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := repeat(ctx, s.attempts, "list", func() (*unstructured.UnstructuredList, error) {
		return s.ResourceInterface.List(ctx, options)
	})
	if err == nil {
		s.attempts.report("list", nil)
	}
	return list, err
}

func (s scopeAttempts) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		return s.stream(ctx, options)
	}
	w, err := repeat(ctx, s.attempts, "watch", func() (watch.Interface, error) {
		return s.ResourceInterface.Watch(ctx, options)
	})
	if err != nil {
		return nil, err
	}
	return s.attempts.observe(ctx, w), nil
}

// stream is the streaming form of a list. If it fails, the reflector falls back to a plain list, which reports what is
// wrong. The error is opaque, or the reflector would repeat the stream instead: uninterruptibly where it is throttled,
// and without any back-off where its resource version has expired, for as long as the server says so.
func (s scopeAttempts) stream(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if s.attempts.doubtful() {
		return nil, fmt.Errorf("stream the list: %w", errWatchEnds)
	}
	w, err := s.ResourceInterface.Watch(ctx, options)
	switch {
	case err == nil:
		return s.attempts.observe(ctx, w), nil
	case needsRelist(err) && options.ResourceVersion != "":
		return nil, err // the next one is without a resource version
	default:
		return nil, fmt.Errorf("stream the list: %s", describe(err))
	}
}

// repeat calls until it works, until the reflector has to act, or until ctx ends.
func repeat[T any](ctx context.Context, a *attempts, verb string, call func() (T, error)) (T, error) {
	backoff := a.backoff
	for {
		result, err := call()
		if err == nil || needsRelist(err) || ctx.Err() != nil {
			return result, err
		}
		a.report(verb, err)
		if !sleep(ctx, backoff.Step()) {
			return result, ctx.Err()
		}
	}
}

// needsRelist says whether the resource version of the request is the problem.
func needsRelist(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// observe reports that a watch works: when it opens, unless the ones before it were short; then when it has lasted.
func (a *attempts) observe(ctx context.Context, w watch.Interface) watch.Interface {
	if !a.doubtful() {
		a.report("watch", nil)
	}
	lasted := time.AfterFunc(shortWatch, func() {
		a.mu.Lock()
		a.short = 0
		a.mu.Unlock()
		a.report("watch", nil)
	})
	return &observedWatch{Interface: w, onStop: sync.OnceFunc(func() {
		if !lasted.Stop() || ctx.Err() != nil {
			return
		}
		a.mu.Lock()
		a.short++
		a.mu.Unlock()
		if a.doubtful() {
			a.report("watch", errWatchEnds)
			sleep(ctx, shortWatch)
		}
	})}
}

// doubtful says whether the newest watches were all short.
func (a *attempts) doubtful() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.short >= shortWatches
}

type observedWatch struct {
	watch.Interface
	onStop func()
}

func (w *observedWatch) Stop() {
	w.Interface.Stop()
	w.onStop()
}

// oneAttempt makes of failures of the connection errors that client-go does not know. It would repeat the request inside
// of the call, up to ten times, where that may take 10 s each time; and then it would give out a watch that could not be
// opened as one that was opened and ended.
type oneAttempt struct{ next http.RoundTripper }

func (o oneAttempt) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	switch {
	case err == nil || r.Context().Err() != nil:
		return resp, err
	case utilnet.IsTimeout(err):
		return nil, errNoAnswer
	case utilnet.IsProbableEOF(err), utilnet.IsConnectionReset(err), utilnet.IsHTTP2ConnectionLost(err):
		return nil, errBroken
	default:
		return nil, err
	}
}

var (
	errNoAnswer = errors.New("no answer in time")
	errBroken   = errors.New("the connection broke")
)

// describe says what went wrong in words that cannot contain an object's content: server messages are left out.
func describe(err error) string {
	var status apierrors.APIStatus
	var urlErr *url.Error
	var netErr net.Error
	switch {
	case errors.As(err, &status):
		s := status.Status()
		reason := string(s.Reason)
		if reason == "" {
			reason = http.StatusText(int(s.Code))
		}
		return fmt.Sprintf("%s (HTTP %d)", reason, s.Code)
	case errors.Is(err, errWatchEnds):
		return errWatchEnds.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return errNoAnswer.Error()
	case errors.As(err, &urlErr):
		return urlErr.Err.Error()
	case errors.As(err, &netErr):
		return netErr.Error()
	default:
		return "the answer could not be read"
	}
}

// sleep waits, and reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
