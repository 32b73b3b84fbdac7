package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

// writeTimeout bounds one PATCH, so that a webhook that hangs does not keep a
// worker.
const writeTimeout = 10 * time.Second

// doubtWait is how long a refused JSON patch waits for a newer version.
const doubtWait = time.Second

// refusedError is a request that the server will not take however often it is
// sent: a fault of its rules for this version of the object.
type refusedError struct {
	request *rules.Request
	version string // of the object, when it was refused
	reason  string // fit for logs and events: nothing of the object
	retry   bool   // it may have been refused for something else than the object
}

func (e *refusedError) Error() string { return "refused: " + e.reason }

// send carries a decision out: its requests in their order, each on the
// version that the one before returned. A request that a permission is missing
// for is passed over; any other failure ends it, and the rest is decided again.
func (d *decision) send(ctx context.Context, result rules.Result) error {
	version := d.object.GetResourceVersion()
	for i := range result.Requests {
		request := &result.Requests[i]
		if d.opts.DryRun {
			d.recordDryRun(ctx, request, verdictsOf(result.Verdicts, request.Rules))
			continue
		}
		if wait := d.parked.wait(d.parkedTarget(request), time.Now()); wait > 0 {
			d.waitForPermission(wait)
			continue
		}
		answer, err := d.patch(ctx, request, version)
		if err != nil {
			if err = d.failed(ctx, request, version, err); err != nil || d.gone {
				return err
			}
			continue
		}
		d.accepted(ctx, request, version, answer, result)
		version = answer.GetResourceVersion()
	}
	return nil
}

func (d *decision) parkedTarget(request *rules.Request) parkedTarget {
	return parkedTarget{d.resource, request.Subresource, d.key.Namespace}
}

// waitForPermission has the object looked at again when its write may be tried
// again. Once does not wait for a Role: it tells what was missing.
func (d *decision) waitForPermission(wait time.Duration) {
	if d.pending == nil {
		d.recheckAt(time.Now().Add(wait))
	}
}

// patch sends one request: the only call of the engine that changes objects.
func (d *decision) patch(ctx context.Context, request *rules.Request, version string) (*unstructured.Unstructured, error) {
	body, err := request.Body(d.object.GetUID(), version)
	if err != nil {
		return nil, &bodyError{err}
	}
	if err := d.rate.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait for the rate of writes: %w", err)
	}
	// At high verbosity client-go would log both bodies, data of Secrets included.
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logr.Discard()), writeTimeout)
	defer cancel()
	var subresources []string
	if request.Subresource != "" {
		subresources = []string{request.Subresource}
	}
	options := metav1.PatchOptions{FieldManager: d.opts.FieldManager, FieldValidation: metav1.FieldValidationStrict}
	if d.preview {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return d.writer.Resource(d.resource).Namespace(d.key.Namespace).Patch(ctx, d.key.Name, request.Type(), body, options, subresources...)
}

// failed decides what becomes of a request that was not accepted.
func (d *decision) failed(ctx context.Context, request *rules.Request, version string, err error) error {
	f := classify(err)
	switch f.class {
	case conflict:
		// Somebody else wrote in between. The watch brings the fresh object;
		// until then this version is not decided on again.
		klog.FromContext(ctx).V(2).Info("The object has changed since; deciding again", "version", version)
		d.remember().expectNewerThan(version, time.Now())
		return &againError{staleWait, "conflict"}
	case gone:
		// The watch will say so too; the object is never created again.
		d.remember().expectNewerThan(version, time.Now())
		d.gone = true
		return nil
	case unavailable:
		d.remember().delays++
		d.tellOfDelay(ctx, request, f.reason)
		if f.after > 0 {
			return &againError{f.after, f.reason}
		}
		return fmt.Errorf("patch %s: %s", d.target(request), f.reason)
	case forbidden:
		allowed, err := d.access.mayPatch(ctx, d.resource, d.key, request.Subresource)
		if err != nil {
			return fmt.Errorf("patch %s: %s, and %w", d.target(request), f.reason, err)
		}
		if allowed { // an admission plugin said no
			return &refusedError{request: request, version: version, reason: f.reason, retry: true}
		}
		wait, news := d.parked.park(d.parkedTarget(request), time.Now())
		if news {
			klog.FromContext(ctx).Info("Not allowed to write; waiting for permission", "verb", "patch", "target", d.target(request))
		}
		d.waitForPermission(wait)
		return nil
	}
	if f.unexplained && request.Type() == types.JSONPatchType && d.remember().doubted != version {
		// An operation that does not fit a newer object fails before the
		// server compares versions: look whether there is one.
		d.state.doubted = version
		return &againError{doubtWait, "the object may have changed since"}
	}
	return &refusedError{request: request, version: version, reason: f.reason, retry: f.unexplained}
}

// slowAttempts is after how many failures in a row the object is told that its
// fix has to wait. (The queue does not count those that said when to come back.)
const slowAttempts = 5

// tellOfDelay tells of a write that keeps failing although it may work later.
func (d *decision) tellOfDelay(ctx context.Context, request *rules.Request, reason string) {
	if d.state.delays != slowAttempts+1 {
		return
	}
	for _, r := range request.Rules {
		d.recordProblem(ctx, r, "PatchDelayed", "the change waits for the API server: "+reason)
	}
}

// target names what a request writes: group/version/resource/subresource.
func (d *decision) target(request *rules.Request) string {
	if request.Subresource == "" {
		return rules.ResourceName(d.resource)
	}
	return rules.ResourceName(d.resource) + "/" + request.Subresource
}

// accepted notes a write, verifies it on the server's answer and tells of it.
func (d *decision) accepted(ctx context.Context, request *rules.Request, version string, answer *unstructured.Unstructured, result rules.Result) {
	written := answer.GetResourceVersion()
	if written != version {
		d.wrote = true
		d.remember().wrote(version, written, time.Now())
	}
	unmet := d.unmet(request, answer, result.Object)
	switch {
	case written == version && d.released(answer):
		// The object went instead of being stored, and what the cache has of
		// it until the watch says so is not decided on again.
		d.remember().expectNewerThan(version, time.Now())
		unmet = nil
	case written == version:
		unmet = request.Rules // nothing was stored at all
	}
	for _, r := range unmet {
		d.holdRule(ctx, r, written, false, "Ineffective", "the server accepted the change but did not keep it: it was normalised, dropped or set back at once")
	}
	d.parked.unpark(d.parkedTarget(request))
	if kept := slices.DeleteFunc(slices.Clone(request.Rules), func(r *rules.Rule) bool { return slices.Contains(unmet, r) }); len(kept) > 0 {
		d.recordFix(ctx, request, kept, verdictsOf(result.Verdicts, kept))
	}
}

// released reports whether an answer lacks the last finalizer of an object that
// is being deleted.
func (d *decision) released(answer *unstructured.Unstructured) bool {
	return answer.GetDeletionTimestamp() != nil && len(answer.GetFinalizers()) == 0 && len(d.object.GetFinalizers()) > 0
}

// unmet returns the rules of an accepted request that would change the
// server's answer again, although they would leave the expected object alone:
// what they wrote was not kept. (A rule that also wants to change the expected
// object reacts to what another one did; it has its turn.)
func (d *decision) unmet(request *rules.Request, answer *unstructured.Unstructured, expected map[string]any) []*rules.Rule {
	if request.Subresource == "scale" {
		// The answer is a Scale, not the object.
		if request.HeldBy(answer.Object) {
			return nil
		}
		return request.Rules
	}
	again := d.changing(request, answer.Object)
	if len(again) == 0 {
		return nil
	}
	reacting := d.changing(request, expected)
	return slices.DeleteFunc(again, func(r *rules.Rule) bool { return slices.Contains(reacting, r) })
}

// changing returns those rules of a request that would change an object, there
// where the request writes.
func (d *decision) changing(request *rules.Request, object map[string]any) []*rules.Rule {
	for _, r := range d.evaluate(request.Rules, object).Requests {
		if r.Subresource == request.Subresource {
			return slices.Clone(r.Rules)
		}
	}
	return nil
}

// verdictsOf picks the verdicts of the rules behind a request.
func verdictsOf(verdicts []rules.Verdict, of []*rules.Rule) []rules.Verdict {
	var out []rules.Verdict
	for _, v := range verdicts {
		for _, r := range of {
			if v.Rule == r && v.Outcome == rules.Patch {
				out = append(out, v)
			}
		}
	}
	return out
}

// hold keeps a refused rule away from the object until the object changes.
func (d *decision) hold(ctx context.Context, refused *refusedError) {
	for _, r := range refused.request.Rules {
		d.holdRule(ctx, r, refused.version, refused.retry, "PatchRefused", "the API server refuses the change: "+refused.reason)
	}
}

func (d *decision) holdRule(ctx context.Context, r *rules.Rule, version string, retry bool, reason, message string) {
	if d.remember().hold(r.Name, version, message, retry, time.Now()) {
		d.recordProblem(ctx, r, reason, message)
	}
}

// remember gives the object's state, made when it is first needed.
func (d *decision) remember() *objectState {
	if d.state == nil {
		d.state = newObjectState(d.object.GetUID())
	}
	return d.state
}
