package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	recordutil "k8s.io/client-go/tools/record/util"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

// ReportingController is what all Events of the engine say that they come from.
const ReportingController = "rectifier.dev/rectifier"

const (
	eventQPS   = 10
	eventBurst = 50
	// eventBacklog is how many Events of each type may wait for their turn.
	eventBacklog = 1000
	// eventTimeout bounds one request.
	eventTimeout = 10 * time.Second

	// eventGrace is how long a shutdown waits at its end for Events that are on
	// their way, and flushQPS is how fast they go during it.
	eventGrace = 5 * time.Second
	flushQPS   = 200

	// seriesTime is for how long an Event that says the same again is a
	// repetition of the one before.
	seriesTime = 30 * time.Minute

	// eventTellInterval is how often it is told that Events cannot be written.
	eventTellInterval = 10 * time.Minute
)

// recorder writes Events on objects, in the background: a fix never waits for
// one, and one that cannot be written fails nothing. One goroutine writes them,
// Warnings first; an Event that fails is put back, and the others go on. What comes
// when too many wait is dropped, and counted.
//
// It stands in for client-go's broadcaster, which has a goroutine for each Event
// that waits for its turn, however many, takes what differs only in its text for
// a repetition, and logs each Event that is refused.
type recorder struct {
	client   eventsclient.EventsV1Interface
	instance string
	silent   bool // write nothing: a dry run
	dropped  prometheus.Counter

	warnings, normal chan *eventsv1.Event
	limit            *rate.Limiter
	finish, finished chan struct{}
	cancel           context.CancelFunc

	// Of the goroutine that writes:
	retries   []*delivery // Events that have failed
	finishing bool        // no more come
	seed      maphash.Seed
	series    map[seriesKey]*series
	pruned    time.Time
	told      time.Time // when it was last told that Events cannot be written
}

// seriesKey is what Events say that are repetitions of each other.
type seriesKey struct {
	regarding               types.UID
	eventType, reason, rule string
	note                    uint64 // hashed
}

// series is an Event that has been written, and may be repeated.
type series struct {
	namespace, name string
	count           int32
	last            time.Time
}

func newRecorder(client eventsclient.EventsV1Interface, silent bool, dropped prometheus.Counter) *recorder {
	hostname, _ := os.Hostname()
	return &recorder{
		client:   client,
		instance: truncate(ReportingController+"-"+hostname, maxInstance),
		silent:   silent,
		dropped:  dropped,
		warnings: make(chan *eventsv1.Event, eventBacklog),
		normal:   make(chan *eventsv1.Event, eventBacklog),
		limit:    rate.NewLimiter(eventQPS, eventBurst),
		finish:   make(chan struct{}),
		finished: make(chan struct{}),
		seed:     maphash.MakeSeed(),
		series:   map[seriesKey]*series{},
	}
}

// What the API server takes, in bytes.
const (
	maxInstance = 128
	maxNote     = 1000
)

func truncate(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const end = "…"
	return strings.ToValidUTF8(s[:limit-len(end)], "") + end
}

// event tells something on an object; the rule stands as the event's action. It
// never blocks. An object that is in no Namespace has its Events in the default
// one.
func (r *recorder) event(object *unstructured.Unstructured, rule *rules.Rule, eventType, reason, message string) {
	if r.silent {
		return
	}
	queue := r.normal
	if eventType == corev1.EventTypeWarning {
		queue = r.warnings
	}
	if len(queue) == cap(queue) { // as in a storm of fixes: not worth the work
		r.dropped.Inc()
		return
	}
	now := time.Now()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      recordutil.GenerateEventName(object.GetName(), now.UnixNano()),
			Namespace: namespace,
		},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: ReportingController,
		ReportingInstance:   r.instance,
		Type:                eventType,
		Reason:              reason,
		Action:              rule.Name,
		Note:                truncate(message, maxNote),
		Regarding: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
			Namespace: object.GetNamespace(), Name: object.GetName(),
			UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		},
	}
	select {
	case queue <- e:
	default:
		r.dropped.Inc()
	}
}

// start begins to write, until drain or until ctx ends.
func (r *recorder) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(ctx)
	go func() {
		defer close(r.finished)
		for {
			d := r.next(ctx)
			if d == nil {
				return
			}
			if r.limit.Wait(ctx) != nil {
				r.dropped.Inc()
				return
			}
			r.deliver(ctx, d)
		}
	}()
}

// hurry has Events written faster: not much time is left.
func (r *recorder) hurry() { r.limit.SetLimit(flushQPS) }

// drain waits for Events on their way, and stops. There must not come more.
func (r *recorder) drain(ctx context.Context) {
	close(r.finish)
	ctx, cancel := context.WithTimeout(ctx, eventGrace)
	defer cancel()
	select {
	case <-r.finished:
	case <-ctx.Done():
		r.cancel()
		<-r.finished
		if left := len(r.warnings) + len(r.normal) + len(r.retries); left > 0 {
			klog.FromContext(ctx).Info("Events are left unwritten", "events", left)
		}
	}
	r.cancel()
}

func (r *recorder) send(ctx context.Context, key seriesKey, e *eventsv1.Event) error {
	if s := r.series[key]; s != nil {
		err := r.repeat(ctx, s, e.EventTime)
		if !apierrors.IsNotFound(err) {
			return err
		}
		delete(r.series, key) // it has expired
	}
	_, err := r.client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil // an attempt whose answer got lost
	}
	if err == nil {
		r.series[key] = &series{namespace: e.Namespace, name: e.Name, count: 1, last: e.EventTime.Time}
	}
	return err
}

// repeat counts a repetition on the Event that was written first.
func (r *recorder) repeat(ctx context.Context, s *series, at metav1.MicroTime) error {
	patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: s.count + 1, LastObservedTime: at}})
	if err != nil {
		return fmt.Errorf("render the series of an Event: %w", err)
	}
	if _, err = r.client.Events(s.namespace).Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
		s.count++
		s.last = at.Time
	}
	return err
}

// prune forgets what has not been repeated for long.
func (r *recorder) prune(now time.Time) {
	if now.Sub(r.pruned) < seriesTime/10 {
		return
	}
	r.pruned = now
	for key, s := range r.series {
		if now.Sub(s.last) > seriesTime {
			delete(r.series, key)
		}
	}
}

// tell logs, now and then, why Events are not written. That a Namespace which is
// being deleted takes none goes without saying.
func (r *recorder) tell(ctx context.Context, err error) {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || ctx.Err() != nil || time.Since(r.told) < eventTellInterval {
		return
	}
	r.told = time.Now()
	logger := klog.FromContext(ctx)
	var status apierrors.APIStatus
	switch {
	case apierrors.IsForbidden(err):
		logger.Error(nil, "Not allowed to write Events; objects do not tell what was done to them", "verb", "create, patch", "resource", "events.k8s.io/v1/events")
	case errors.As(err, &status):
		logger.Error(nil, "Events could not be written; objects do not tell what was done to them", "reason", publicReason(status.Status()))
	default:
		logger.Error(nil, "Events could not be written; objects do not tell what was done to them", "reason", "no answer of the API server")
	}
}
