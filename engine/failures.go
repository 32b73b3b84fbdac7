package engine

import (
	"context"
	"fmt"
	"strings"
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
	f := classify(err, d.objectID())
	result := patchResult(f)
	defer func() { d.countPatch(request, result) }()
	switch f.class {
	case conflict, gone:
		if d.state != nil && d.state.disputed == version && !d.informerFails() {
			// The watch had all the time to confirm it, and did not: these are the
			// words of a webhook that means something else by them.
			result = patchDenied
			return &refusedError{request: request, version: version, reason: f.reason, retry: true}
		}
		// Until the watch brings what has become of the object, this version is
		// not decided on again. It is never created again.
		d.remember().expectNewerThan(version, time.Now())
		if d.gone = f.class == gone; d.gone {
			d.recheckAt(time.Now().Add(failOpen))
			return nil
		}
		klog.FromContext(ctx).V(2).Info("The object has changed since; deciding again", "version", version)
		return &againError{max(staleWait, d.putOff(ctx, request, f)), "conflict"}
	case outdated:
		return errOutdated
	case deposed:
		return &againError{staleWait, f.reason} // it will not come to that: the engine stops
	case throttled, unavailable, unauthorized:
		if wait := d.putOff(ctx, request, f); f.after > 0 {
			return &againError{wait, f.reason}
		}
		return fmt.Errorf("patch %s: %s", d.target(request), f.reason)
	case forbidden:
		allowed, err := d.permissions.mayPatch(ctx, d.permissionFor(request), d.key.Name)
		if err != nil {
			d.putOff(ctx, request, f)
			return fmt.Errorf("patch %s: %s, and %w", d.target(request), f.reason, err)
		}
		if allowed { // an admission plugin said no
			result = patchDenied
			return &refusedError{request: request, version: version, reason: f.reason, retry: true}
		}
		wait, news := d.permissions.forbidden(d.permissionFor(request), d.key.Name, time.Now())
		if news {
			klog.FromContext(ctx).Info("Not allowed to write; waiting for permission", "verb", "patch", "target", d.target(request))
		}
		d.waitForPermission(wait)
		return nil
	}
	if f.misfit && request.Type() == types.JSONPatchType && d.remember().doubted != version && d.state.delays < slowAttempts {
		// An operation that does not fit a newer object fails before the
		// server compares versions: look whether there is one.
		d.state.doubted = strings.Clone(version)
		d.putOff(ctx, request, f)
		return &againError{doubtWait, "the object may have changed since"}
	}
	return &refusedError{request: request, version: version, reason: f.reason, retry: f.passing}
}

// objectID is the object as a status of the API server names it.
func (d *decision) objectID() objectID {
	return objectID{resource: d.key.Resource, kind: d.object.GetKind(), name: d.key.Name, uid: d.object.GetUID()}
}

// informerFails reports whether the cache may be old because the watch is broken.
func (d *decision) informerFails() bool {
	at := scope{resource: d.resource}
	if len(d.opts.Namespaces) > 0 {
		at.namespace = d.key.Namespace
	}
	_, fails := d.failing.Load(at)
	return fails
}

// slowAttempts is after how many failures in a row the object is told that its
// fix has to wait. (The queue does not count those that said when to come back.)
const slowAttempts = 5

// putOff keeps requests for the object back, for longer with each failure in a
// row: an object that changes every second must not turn an outage into a
// request a second, nor send one before the server wants it. It returns for how
// long.
func (d *decision) putOff(ctx context.Context, request *rules.Request, f failure) time.Duration {
	s := d.remember()
	s.delays++
	d.tellOfDelay(ctx, request, f.reason)
	wait := backoff(s.delays)
	if f.after > 0 {
		wait = comeBack(f.after, s.delays)
	}
	s.putOff(wait, time.Now())
	return wait
}

// tellOfDelay tells of a write that keeps failing although it may work later.
func (d *decision) tellOfDelay(ctx context.Context, request *rules.Request, reason string) {
	if d.state.delays != slowAttempts+1 {
		return
	}
	for _, r := range request.Rules {
		d.recordProblem(ctx, r, reasonPatchDelayed, "the change waits for the API server: "+reason)
	}
}

// hold keeps a refused rule away from the object until the object changes.
func (d *decision) hold(ctx context.Context, refused *refusedError) {
	for _, r := range refused.request.Rules {
		d.holdRule(ctx, r, refused.version, refused.retry, reasonPatchRefused, "the API server refuses the change: "+refused.reason)
	}
}

func (d *decision) holdRule(ctx context.Context, r *rules.Rule, version string, retry bool, reason, message string) {
	if d.remember().hold(r.Name, version, message, retry, time.Now()) {
		d.recordProblem(ctx, r, reason, message)
	}
}
