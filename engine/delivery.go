package engine

import (
	"context"
	"errors"
	"hash/maphash"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// firstEventRetry is when an Event is tried again that the API server did not
	// take, or not answer; each further time it takes twice as long. After
	// maxEventTries, which is some minutes later, it is dropped.
	firstEventRetry = time.Second
	maxEventTries   = 9
	// toldEventTries is after how many tries it is told that Events cannot be
	// written.
	toldEventTries = 5
	// maxEventRetries is how many Events may wait to be tried again. If there are
	// so many, all others wait too: the API server is out of order.
	maxEventRetries = 100
)

// delivery is an Event on its way.
type delivery struct {
	*eventsv1.Event
	tries int       // so far
	due   time.Time // not before
}

// next waits for the Event whose turn it is; nil: no more is to be written.
func (r *recorder) next(ctx context.Context) *delivery {
	for ctx.Err() == nil {
		warnings, normal := r.warnings, r.normal
		if len(r.retries) >= maxEventRetries {
			warnings, normal = nil, nil
		}
		now := time.Now()
		if d := r.first(warnings, corev1.EventTypeWarning, now); d != nil {
			return d
		}
		if d := r.first(normal, corev1.EventTypeNormal, now); d != nil {
			return d
		}
		finish := r.finish
		if r.finishing {
			finish = nil
			if len(r.retries) == 0 {
				return nil
			}
		}
		select {
		case e := <-warnings:
			return &delivery{Event: e}
		case e := <-normal:
			return &delivery{Event: e}
		case <-r.nextRetry(now):
		case <-ctx.Done():
		case <-finish:
			r.finishing = true
			for _, d := range r.retries {
				d.due = now // there is no better time any more
			}
		}
	}
	return nil
}

// first returns an Event of a type that can be written now: those that have failed
// come last.
func (r *recorder) first(queue chan *eventsv1.Event, eventType string, now time.Time) *delivery {
	select {
	case e := <-queue:
		return &delivery{Event: e}
	default:
	}
	i := slices.IndexFunc(r.retries, func(d *delivery) bool { return d.Type == eventType && !now.Before(d.due) })
	if i < 0 {
		return nil
	}
	d := r.retries[i]
	r.retries = slices.Delete(r.retries, i, i+1)
	return d
}

// nextRetry tells when an Event is to be tried again; never, if none has failed.
func (r *recorder) nextRetry(now time.Time) <-chan time.Time {
	if len(r.retries) == 0 {
		return nil
	}
	next := slices.MinFunc(r.retries, func(a, b *delivery) int { return a.due.Compare(b.due) })
	return time.After(next.due.Sub(now))
}

// deliver writes one Event, or counts it as a repetition of one before. If that
// does not succeed and may later, it is put back.
func (r *recorder) deliver(ctx context.Context, d *delivery) {
	key := seriesKey{d.Regarding.UID, d.Type, d.Reason, d.Action, maphash.String(r.seed, d.Note)}
	once, cancel := context.WithTimeout(ctx, eventTimeout)
	err := r.send(once, key, d.Event)
	cancel()
	d.tries++
	if err == nil {
		r.prune(time.Now())
		return
	}
	again := worthRetrying(err) && d.tries < maxEventTries && ctx.Err() == nil
	if !again || d.tries >= toldEventTries {
		r.tell(ctx, err)
	}
	if !again {
		r.dropped.Inc()
		return
	}
	pause := firstEventRetry << (d.tries - 1)
	if r.finishing {
		pause = firstEventRetry
	}
	d.due = time.Now().Add(pause)
	r.retries = append(r.retries, d)
}

// worthRetrying reports whether a request that failed may succeed later.
func worthRetrying(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer
	}
	code := status.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
