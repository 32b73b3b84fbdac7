package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rectifier-dev/rectifier/rules"
)

// result is what the rules that nothing keeps from the object make of it
// together. Those that have to give way are held before, and those that fail are
// told of. It also returns after which time a rule that was refused may be tried
// again (0: none is waiting for time).
func (d *decision) result(ctx context.Context, all []*rules.Rule) (rules.Result, time.Duration, error) {
	if d.runnable != nil && d.state == nil && !d.known {
		return d.resultOfIndex(ctx)
	}
	for {
		free, wait := d.free(ctx, all)
		result := d.evaluate(free, d.object.Object)
		if d.outdated() {
			// What it missed may be missing because nobody needs it any more.
			return rules.Result{}, 0, errOutdated
		}
		if !d.giveWay(ctx, result) {
			d.countEvaluations(free, result)
			d.reportErrors(ctx, free, result)
			return result, wait, nil
		}
	}
}

// resultOfIndex is result for an object of which nothing is remembered, so that
// nothing keeps rules from it: then the index of the rules will do.
func (d *decision) resultOfIndex(ctx context.Context) (rules.Result, time.Duration, error) {
	ran := d.runnable.rules
	result := d.concluded(d.runnable.index.Evaluate(d.input(d.object.Object)))
	if d.outdated() {
		return rules.Result{}, 0, errOutdated
	}
	d.countEvaluations(ran, result)
	if result.Passed() {
		// Of the others there is nothing to tell, and no opt-out that could be misspelt.
		if len(result.Verdicts) == 0 {
			return result, 0, nil
		}
		ran = rulesOf(result.Verdicts)
	}
	d.reportErrors(ctx, ran, result)
	return result, 0, nil
}

func rulesOf(verdicts []rules.Verdict) []*rules.Rule {
	out := make([]*rules.Rule, len(verdicts))
	for i, v := range verdicts {
		out[i] = v.Rule
	}
	return out
}

// writeTogether runs all rules and sends what they change, as one request per
// subresource.
func (d *decision) writeTogether(ctx context.Context, all []*rules.Rule) error {
	result, wait, err := d.result(ctx, all)
	if err != nil {
		return err
	}
	err = d.send(ctx, result)
	var refused *refusedError
	if errors.As(err, &refused) {
		if len(refused.request.Rules) > 1 {
			d.remember().split = true
			if d.wrote {
				return nil
			}
			return d.writeOneByOne(ctx, all)
		}
		d.hold(ctx, refused)
		if d.wrote {
			return nil // the watch brings the object that the rest is decided on
		}
		return d.writeTogether(ctx, all)
	}
	if err == nil {
		d.retryHeld(wait)
	}
	return err
}

// writeOneByOne finds the culprit after a composed request was refused: each
// rule that would have a part in one is evaluated and sent alone. After a write
// the next one waits for the fresh object. When nothing is left to write, the
// rules go together again.
func (d *decision) writeOneByOne(ctx context.Context, all []*rules.Rule) error {
	together, _, err := d.result(ctx, all)
	if err != nil {
		return err
	}
	for _, r := range writersOf(together) {
		alone := d.evaluate([]*rules.Rule{r}, d.object.Object)
		if d.giveWay(ctx, alone) || len(alone.Requests) == 0 {
			continue
		}
		err := d.send(ctx, alone)
		var refused *refusedError
		if errors.As(err, &refused) {
			d.hold(ctx, refused)
			err = nil
		}
		if err != nil || d.wrote || d.gone {
			return err
		}
	}
	d.remember().split = false
	_, wait := d.free(ctx, all)
	d.retryHeld(wait)
	return nil
}

// writersOf picks the rules that have a part in the requests of a result.
func writersOf(result rules.Result) []*rules.Rule {
	var out []*rules.Rule
	for _, v := range result.Verdicts {
		writes := func(request rules.Request) bool { return slices.Contains(request.Rules, v.Rule) }
		if slices.ContainsFunc(result.Requests, writes) {
			out = append(out, v.Rule)
		}
	}
	return out
}

// free returns the rules that nothing keeps from the object when the decision
// begins, and after which time from then one that was refused may be tried again
// (0: none is waiting for time). What is held meanwhile is so until the next
// decision, however long the requests take.
func (d *decision) free(ctx context.Context, all []*rules.Rule) ([]*rules.Rule, time.Duration) {
	return d.state.free(d.willing(ctx, all), d.object.GetResourceVersion(), d.now)
}

// retryHeld has the object looked at again when a refused rule may be tried
// again. Once does not wait for that.
func (d *decision) retryHeld(wait time.Duration) {
	if wait > 0 && d.pending == nil {
		d.recheckAt(d.now.Add(wait))
	}
}
