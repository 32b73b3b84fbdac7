package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

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

// first reports whether something is counted for the first time. Only Once counts
// so: what has been counted is remembered.
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
	if logger := klog.FromContext(ctx); logger.Enabled() {
		logger.Info("Fixed", "rules", names(kept), "subresource", request.Subresource, "fields", d.fieldsOf(verdicts))
	}
	d.countDrift()
	for _, r := range kept {
		d.counters(r).fixed()
	}
	for _, v := range verdicts {
		d.recorder.event(d.object, v.Rule, corev1.EventTypeNormal, v.Event.Reason, d.message(v))
	}
	d.noteChange(Fixed, request, verdicts)
}

// valuesAt is from which verbosity on the log may hold values of objects. Those of
// Secrets never do.
const valuesAt = 4

// logged is a message as it goes into the log. Those that quote an error of an
// expression may hold values of the object, and who reads the log is not who may
// read the object. What rules' authors have written, names, and what the API
// declares as safe to show is told as it is.
func logged(ctx context.Context, quotes bool, message string) string {
	if quotes && !klog.FromContext(ctx).V(valuesAt).Enabled() {
		return "an expression failed on the object: the Event on it, explain, or -v 4 tell why"
	}
	return message
}

// recordDryRun tells what would be done, once for each rule and change.
func (d *decision) recordDryRun(ctx context.Context, request *rules.Request, verdicts []rules.Verdict) {
	if d.pending != nil && d.tally.first(&d.tally.wouldBe, d.key.String()+" "+request.Subresource) {
		d.tally.count(func(s *Summary) { s.WouldBe++ })
	}
	for _, v := range verdicts {
		d.reportOnce(ctx, v.Rule, d.message(v), func(message string) {
			klog.FromContext(ctx).Info("Would be fixed (dry run)", "rule", v.Rule.Name, "subresource", request.Subresource, "message", logged(ctx, v.EventQuotes, message))
			d.noteChange(WouldFix, request, []rules.Verdict{v})
		})
	}
}

// Reasons of the Events that tell of failures, and of the metric that counts them.
const (
	reasonIneffective      = "Ineffective"
	reasonNotConverging    = "NotConverging"
	reasonEvaluationFailed = "EvaluationFailed"
	reasonBadOptOut        = "BadOptOut"
	reasonPatchRefused     = "PatchRefused"
	reasonPatchDelayed     = "PatchDelayed"
	reasonContended        = "Contended"
)

// recordProblem tells that a rule has failed on an object.
func (d *decision) recordProblem(ctx context.Context, r *rules.Rule, reason, message string) {
	d.tally.count(func(s *Summary) { s.Failed++ })
	d.counters(r).failed(reason)
	message = d.told(message, "it failed (the reason holds data of the Secret, and is not shown)")
	klog.FromContext(ctx).Info("Rule failed", "rule", r.Name, "reason", reason, "message", logged(ctx, reason == reasonEvaluationFailed, message))
	d.recorder.event(d.object, r, corev1.EventTypeWarning, reason, fmt.Sprintf("rule %s: %s", r.Name, message))
	d.noteProblem(r, reason, message)
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
			d.reportOnce(ctx, r, d.message(v), func(message string) {
				klog.FromContext(ctx).Info("Would be fixed (mode Audit)", "rule", r.Name, "message", logged(ctx, v.EventQuotes, message))
				d.noteAudit(v)
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
	d.reportBadOptOut(ctx, ran, result)
}

func (d *decision) reportError(ctx context.Context, v rules.Verdict) {
	reason := reasonEvaluationFailed
	var loop *rules.NotConvergingError
	var unknown *rules.UnknownError
	switch {
	case errors.As(v.Err, &unknown):
		// No fault of the rule: what is missing is looked for again.
		klog.FromContext(ctx).V(2).Info("No decision", "rule", v.Rule.Name, "reason", unknown)
		d.recheckAt(d.now.Add(unknownWait))
		return
	case errors.As(v.Err, &loop):
		reason = reasonNotConverging
	case v.Outcome == rules.Skip:
		return // told once for all rules
	}
	d.reportOnce(ctx, v.Rule, d.shield().Error(v.Rule, v.Err), func(message string) { d.recordProblem(ctx, v.Rule, reason, message) })
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
