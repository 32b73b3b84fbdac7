package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

const (
	eventQPS   = 10
	eventBurst = 50

	// eventGrace is how long a shutdown waits for events that are on their way.
	eventGrace = 5 * time.Second

	reportingController = "rectifier.dev/rectifier"
)

// recorder writes Events on objects, in the background: a fix never waits for
// one, and one that cannot be written fails nothing.
type recorder struct {
	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder
	sink        *countingSink
	sent        atomic.Int64
	silent      bool // write nothing: a dry run
}

func newRecorder(client eventsclient.EventsV1Interface, silent bool) *recorder {
	sink := &countingSink{EventSink: &events.EventSinkImpl{Interface: client}}
	r := &recorder{broadcaster: events.NewBroadcaster(sink), sink: sink, silent: silent}
	r.recorder = r.broadcaster.NewRecorder(runtime.NewScheme(), reportingController)
	return r
}

func (r *recorder) start(ctx context.Context) error {
	return r.broadcaster.StartRecordingToSinkWithContext(ctx)
}

// event tells something on an object. The rule stands as the event's action,
// so that client-go does not take what two rules say for a repetition.
func (r *recorder) event(object *unstructured.Unstructured, rule *rules.Rule, eventType, reason, message string) {
	about := &corev1.ObjectReference{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
	if r.silent {
		return
	}
	r.sent.Add(1)
	r.recorder.Eventf(about, nil, eventType, reason, rule.Name, "%s", truncate(message))
}

// truncate keeps a message within what the API server takes.
func truncate(s string) string {
	const limit = 1000
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// drain waits for events on their way, and stops.
func (r *recorder) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, eventGrace)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for r.sink.handled.Load() < r.sent.Load() && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	r.broadcaster.Shutdown()
}

// countingSink counts the events that are done with, and keeps client-go from
// logging each one that may not be written: that is told once.
type countingSink struct {
	events.EventSink
	handled atomic.Int64

	mu   sync.Mutex
	told time.Time // when it was last told that Events may not be written
}

func (s *countingSink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	out, err := s.EventSink.Create(ctx, e)
	return s.done(ctx, e, out, err)
}

func (s *countingSink) Patch(ctx context.Context, old *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	out, err := s.EventSink.Patch(ctx, old, data)
	return s.done(ctx, old, out, err)
}

func (s *countingSink) done(ctx context.Context, in, out *eventsv1.Event, err error) (*eventsv1.Event, error) {
	s.handled.Add(1)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return in, nil
	case apierrors.IsForbidden(err):
		s.mu.Lock()
		defer s.mu.Unlock()
		if time.Since(s.told) > forbiddenInterval {
			s.told = time.Now()
			klog.FromContext(ctx).Error(nil, "Not allowed to write Events; objects do not tell what was done to them", "verb", "create, patch", "resource", "events.k8s.io/v1/events")
		}
		return in, nil
	}
	return out, err
}

// forbiddenInterval is how often it is told that Events may not be written.
const forbiddenInterval = 10 * time.Minute

// Summary counts what an engine has done.
type Summary struct {
	Fixed     int // requests that were accepted
	Failed    int // rules that failed on an object, each counted once per object
	WouldBe   int // requests that --dry-run held back, each counted once per object
	Audit     int // rules of mode Audit that would change an object, each counted once per object
	LeftAlone int // objects that asked not to be touched, each counted once
}

// tally is a Summary in the making.
type tally struct {
	mu sync.Mutex
	Summary
	wouldBe, leftAlone, audit map[string]bool // what has been counted
}

// dryRun reports whether a request is held back for the first time.
func (t *tally) dryRun(key Key, subresource string) bool {
	return t.first(&t.wouldBe, key.String()+" "+subresource)
}

func (t *tally) first(seen *map[string]bool, what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *seen == nil {
		*seen = map[string]bool{}
	}
	was := (*seen)[what]
	(*seen)[what] = true
	return !was
}

func (t *tally) count(add func(*Summary)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	add(&t.Summary)
}

func (t *tally) summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Summary
}

// recordFix tells what rules have put right by an accepted request: on the
// object, and in the log.
func (d *decision) recordFix(ctx context.Context, request *rules.Request, kept []*rules.Rule, verdicts []rules.Verdict) {
	d.tally.count(func(s *Summary) { s.Fixed++ })
	klog.FromContext(ctx).Info("Fixed", "rules", names(kept), "subresource", request.Subresource)
	for _, v := range verdicts {
		d.recorder.event(d.object, v.Rule, corev1.EventTypeNormal, v.Event.Reason, v.Event.Message)
	}
}

// recordDryRun tells what would be done, once for each rule and change.
func (d *decision) recordDryRun(ctx context.Context, request *rules.Request, verdicts []rules.Verdict) {
	if d.tally.dryRun(d.key, request.Subresource) {
		d.tally.count(func(s *Summary) { s.WouldBe++ })
	}
	for _, v := range verdicts {
		d.reportOnce(ctx, v.Rule, v.Event.Message, func(message string) {
			klog.FromContext(ctx).Info("Would be fixed (dry run)", "rule", v.Rule.Name, "subresource", request.Subresource, "message", message)
		})
	}
}

// recordProblem tells that a rule has failed on an object.
func (d *decision) recordProblem(ctx context.Context, r *rules.Rule, reason, message string) {
	d.tally.count(func(s *Summary) { s.Failed++ })
	klog.FromContext(ctx).Info("Rule failed", "rule", r.Name, "reason", reason, "message", message)
	d.recorder.event(d.object, r, corev1.EventTypeWarning, reason, fmt.Sprintf("rule %s: %s", r.Name, message))
}

// reportErrors tells of rules that could not be evaluated, once for each
// error: not again as long as it stays the same. What rules do that only
// report is logged. Rules that have nothing to change lose their holds.
func (d *decision) reportErrors(ctx context.Context, ran []*rules.Rule, result rules.Result) {
	verdicts := result.Verdicts
	for _, r := range ran {
		var v rules.Verdict
		if len(verdicts) > 0 && verdicts[0].Rule == r {
			v, verdicts = verdicts[0], verdicts[1:]
		}
		switch {
		case v.Err != nil:
			d.reportError(ctx, v)
			continue
		case v.Outcome == rules.Skip:
			d.reportOptOut(ctx, v)
			continue
		case v.Outcome == rules.Patch && r.Mode == rules.Audit:
			if d.pending != nil && d.tally.first(&d.tally.audit, d.key.String()+" "+r.Name) {
				d.tally.count(func(s *Summary) { s.Audit++ })
			}
			d.reportOnce(ctx, r, v.Event.Message, func(message string) {
				klog.FromContext(ctx).Info("Would be fixed (mode Audit)", "rule", r.Name, "message", message)
			})
			continue
		case v.Outcome == rules.Patch && d.opts.DryRun:
			continue // told when the request is held back
		case v.Outcome == "":
			d.state.release(r.Name)
		}
		if d.state != nil {
			delete(d.state.reported, r.Name)
		}
	}
}

func (d *decision) reportError(ctx context.Context, v rules.Verdict) {
	reason := "EvaluationFailed"
	var loop *rules.NotConvergingError
	var unknown *rules.UnknownError
	switch {
	case errors.As(v.Err, &unknown):
		// No fault of the rule: what is missing is looked for again.
		klog.FromContext(ctx).V(2).Info("No decision", "rule", v.Rule.Name, "reason", unknown)
		d.recheckAt(d.now.Add(unknownWait))
		return
	case errors.As(v.Err, &loop):
		reason = "NotConverging"
	case v.Outcome == rules.Skip:
		reason = "BadOptOut"
	}
	d.reportOnce(ctx, v.Rule, v.Err.Error(), func(message string) { d.recordProblem(ctx, v.Rule, reason, message) })
}

// reportOptOut tells that an object asked a rule to leave it alone: a forgotten
// annotation must not be a riddle.
func (d *decision) reportOptOut(ctx context.Context, v rules.Verdict) {
	if d.pending != nil && d.tally.first(&d.tally.leftAlone, d.key.String()) {
		d.tally.count(func(s *Summary) { s.LeftAlone++ })
	}
	d.reportOnce(ctx, v.Rule, v.Reason, func(reason string) {
		klog.FromContext(ctx).V(1).Info("Left alone", "rule", v.Rule.Name, "reason", reason)
	})
}

func (d *decision) reportOnce(ctx context.Context, r *rules.Rule, message string, tell func(string)) {
	if s := d.remember(); s.reported[r.Name] != message {
		s.reported[r.Name] = message
		tell(message)
	}
}

func names(rs []*rules.Rule) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.Name
	}
	slices.Sort(out)
	return out
}
