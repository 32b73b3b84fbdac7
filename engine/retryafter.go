package engine

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// maxRetryAfter bounds what a server may ask for: a promise to come back must be
// one that somebody lives to see.
const maxRetryAfter = lastRetry

// retryAfterError is an answer that asks to come back later.
type retryAfterError struct {
	status int
	after  time.Duration // 0: in a moment, or it is not to be understood
}

func (e *retryAfterError) Error() string {
	return fmt.Sprintf("the API server answered %d %s", e.status, http.StatusText(e.status))
}

func (e *retryAfterError) class() class {
	if e.status == http.StatusTooManyRequests {
		return throttled
	}
	return unavailable
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
	header := resp.Header.Get("Retry-After")
	if header == "" {
		return resp, nil // client-go does not retry without
	}
	// What is read to its end leaves the connection fit for the next request.
	_, _ = io.CopyN(io.Discard, resp.Body, 2<<10)
	_ = resp.Body.Close()
	return nil, &retryAfterError{resp.StatusCode, parseRetryAfter(header, time.Now())}
}

// parseRetryAfter reads the header: seconds, as the API server sends them, or a
// date, as what stands in between may.
func parseRetryAfter(header string, now time.Time) time.Duration {
	var after time.Duration
	if seconds, err := strconv.Atoi(header); err == nil {
		after = time.Duration(min(seconds, int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, 0), maxRetryAfter)
}

// comeBack is when a request is sent again that was answered with Retry-After,
// failures times in a row: not earlier than that, nor than one without it would
// be, and not together with all others that were turned away.
func comeBack(after time.Duration, failures int) time.Duration {
	return wait.Jitter(max(after, backoff(failures)), 0.2)
}

// backoff is how long to wait after so many failures in a row: what the queue's
// rate limiter says, too.
func backoff(failures int) time.Duration {
	const doublings = 16 // more than lastRetry needs
	return min(firstRetry<<min(failures-1, doublings), lastRetry)
}
