package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

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
