package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/rectifier-dev/rectifier/rules"
)

const (
	// A write that is forbidden is tried again after growing waits.
	firstParking = 5 * time.Second
	maxParking   = 5 * time.Minute
	// forgetParking is when a permission is forgotten that nobody has asked for.
	forgetParking = 2 * maxParking

	// reviewGrace is how long the writes that wait for a permission have to try
	// it themselves, before the server is asked for it.
	reviewGrace = time.Second
	// reviewInterval is how often it is looked which permissions to ask for.
	reviewInterval = time.Second
)

// permissions knows which writes the engine is not allowed, so that a missing
// permission costs one request now and then, not one per object. It ends with a
// write that is accepted or, if nobody has anything to write any more, with the
// word of the API server. It is safe for concurrent use.
type permissions struct {
	reviews authorizationclient.SelfSubjectAccessReviewInterface

	mu      sync.Mutex
	missing map[permission]*absence
}

// permission is one to patch.
type permission struct {
	resource    schema.GroupVersionResource
	subresource string
	namespace   string // a Role may allow one and not another
}

// missing says that it is.
func (p permission) missing() string {
	where := ""
	if p.namespace != "" {
		where = " in namespace " + p.namespace
	}
	return "forbidden: patch " + strings.TrimSuffix(p.resource.Resource+"/"+p.subresource, "/") + where
}

// absence is a permission that is missing.
type absence struct {
	name   string    // of the object that it was last missing for: a Role may name objects
	met    time.Time // when a write last was forbidden
	until  time.Time // no write is tried before
	wait   time.Duration
	review time.Time // when the server is asked for it, if no write is tried
}

// permissionFor is the permission that a request takes.
func (d *decision) permissionFor(request *rules.Request) permission {
	return permission{d.resource, request.Subresource, d.key.Namespace}
}

// waitForPermission has the object looked at again when its write may be tried
// again. Once does not wait for a Role: it tells what was missing.
func (d *decision) waitForPermission(wait time.Duration) {
	if d.pending == nil {
		d.recheckAt(time.Now().Add(wait))
	}
}

// mayPatch asks the API server whether the engine may write an object. A 403 can
// come from RBAC or from admission, and nothing but its text tells them apart.
func (p *permissions) mayPatch(ctx context.Context, to permission, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	review, err := p.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "patch", Group: to.resource.Group, Version: to.resource.Version, Resource: to.resource.Resource,
			Subresource: to.subresource, Namespace: to.namespace, Name: name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for permission to patch: %s", reasonOf(err))
	}
	return review.Status.Allowed, nil
}

// forbidden notes that a write was. It returns when to try again, and whether
// that is news.
func (p *permissions) forbidden(to permission, name string, now time.Time) (wait time.Duration, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.missing == nil {
		p.missing = map[permission]*absence{}
	}
	a := p.missing[to]
	if a == nil {
		a = &absence{}
		p.missing[to] = a
		news = true
	}
	a.name, a.met = name, now
	if now.After(a.until) {
		a.wait = min(max(2*a.wait, firstParking), maxParking)
		a.until = now.Add(a.wait)
		a.review = a.until.Add(reviewGrace)
	}
	return a.until.Sub(now), news
}

// wait returns how long a write has to wait for a permission; 0: it may go.
func (p *permissions) wait(to permission, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.missing[to]
	if a == nil || !now.Before(a.until) {
		return 0
	}
	return a.until.Sub(now)
}

// granted notes that a write is allowed.
func (p *permissions) granted(to permission) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.missing, to)
}

// list lists the permissions that are missing.
func (p *permissions) list() []permission {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.missing))
}

// due returns the permissions to ask the server for, with the name of an object:
// those that no write has tried although it may. What nobody has needed for long
// is forgotten: its objects are right, or have gone with their Namespace.
func (p *permissions) due(now time.Time) map[permission]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.missing, func(_ permission, a *absence) bool { return now.Sub(a.met) > forgetParking })
	out := map[permission]string{}
	for to, a := range p.missing {
		if !now.Before(a.review) {
			out[to] = a.name
			// Writes may be tried at any time: one for another object may be allowed.
			a.wait = min(2*a.wait, maxParking)
			a.review = now.Add(a.wait)
		}
	}
	return out
}

// reviewPermissions finds out, until ctx ends, which of the missing permissions
// have been granted although no write shows it.
func (e *Engine) reviewPermissions(ctx context.Context) {
	tick := time.NewTicker(reviewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for to, name := range e.permissions.due(time.Now()) {
			// If it cannot be found out now, there is another time.
			if allowed, err := e.permissions.mayPatch(ctx, to, name); err == nil && allowed {
				e.permissions.granted(to)
			}
		}
	}
}
