package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/rules"
)

// PreviewOptions say what a preview looks at. The zero value is everything.
type PreviewOptions struct {
	// Select says whether an object is looked at. It is asked about those that are
	// excluded too, which are not looked at in any case. Nil: all are.
	Select func(info gvr.Info, namespace, name string) bool
	// ServerDryRun sends each request with dryRun=All: admission, defaults and
	// validation of the server then count. It takes the permission to patch.
	ServerDryRun bool
}

// Preview is what the rules would do to one object at this moment.
type Preview struct {
	Info gvr.Info
	// Object is the object in the cache, whole, but without managedFields unless a
	// rule reads them: read-only.
	Object *unstructured.Unstructured
	// Result holds verdicts of all rules that can run.
	Result rules.Result
	// Server is with ServerDryRun what the server says; nil if nothing was asked.
	Server *DryRun
	// Unknown says why no decision was possible; empty: one was.
	Unknown string
}

// downWait is how long a preview waits for a cluster that does not answer
// discovery, once an attempt has failed.
const downWait = 3 * time.Second

// failingWait is how long a preview waits for a resource whose requests fail.
const failingWait = 10 * time.Second

// namespaceWait is how long a preview waits for the Namespace of an object that
// has only just been made.
const namespaceWait = 2 * time.Second

// Preview waits for the informers, evaluates each object once, and hands what
// the rules would do to visit: in the order of resources, namespaces and names,
// one call at a time. Nothing is written, and to list and watch is all that it
// has to be allowed. An Engine previews once, and does not run then.
//
// The error is as that of Once: what could not be looked at. All that could has
// been, in that case too. When ctx ends, what has not been looked at is left.
func (e *Engine) Preview(ctx context.Context, opts PreviewOptions, visit func(Preview)) error {
	e.opts.FullObjects = true // people are shown them
	running, stop := context.WithCancel(ctx)
	defer stop()
	e.informers.Use(watched(e.rules()))
	done := make(chan error, 1)
	go func() { done <- e.informers.Run(running) }()
	schemas := make(chan struct{})
	go func() { defer close(schemas); e.readSchemas(running) }()

	err := e.informed(running, done)
	if err == nil {
		err = e.preview(running, opts, visit)
	}
	if err == nil {
		err = e.shortfall(e.failures()...)
	}
	stop()
	<-schemas
	return cmp.Or(err, <-done)
}

// informed waits until the caches are filled, as far as they can be.
func (e *Engine) informed(ctx context.Context, done chan error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	reach, began := time.After(reachTimeout), time.Now()
	unfinished := e.unfinished() // when it was last asked: what ends the wait also stops the informers
	for {
		select {
		case <-reach:
			if !e.informers.Discovered() {
				return e.unreached(reachTimeout)
			}
		case <-ctx.Done():
		case err := <-done:
			done <- err
			if ctx.Err() == nil {
				return err
			}
		case <-tick.C:
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: not done in time: %s", ErrUnreachable, unfinished)
		}
		if reason, refused := e.informers.DiscoveryFailure(); refused || reason != "" && time.Since(began) > downWait {
			return e.unreached(time.Since(began).Round(time.Second))
		}
		if unfinished = e.unfinished(); unfinished == "" || e.onlyFailing() {
			return nil
		}
	}
}

// onlyFailing reports whether nothing is waited for but resources that have
// failed for a while: the others need not wait for them.
func (e *Engine) onlyFailing() bool {
	failing := false
	for _, s := range e.informers.Status() {
		if s.State == gvr.Syncing || s.State == gvr.Failing && time.Since(s.Since) < failingWait {
			return false
		}
		failing = failing || s.State == gvr.Failing
	}
	return failing && e.informers.Discovered()
}

// failures says which resources could not be read for another reason than a
// missing permission: a line for each.
func (e *Engine) failures() (out []string) {
	for _, s := range e.informers.Status() {
		if s.State == gvr.Failing {
			out = append(out, fmt.Sprintf("%s: %s", rules.ResourceName(s.Resource), s.Reason))
		}
	}
	return out
}

// subject is an object to be looked at.
type subject struct {
	info gvr.Info
	key  Key
}

func (e *Engine) preview(ctx context.Context, opts PreviewOptions, visit func(Preview)) error {
	var all []subject
	for _, resource := range e.rules().Resources() {
		all = append(all, e.subjects(resource, opts)...)
	}
	for i, s := range all {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: not done in time: %d of %d objects have been looked at", ErrUnreachable, i, len(all))
		}
		object, ok := e.informers.Get(s.info.Resource, s.key.Namespace, s.key.Name)
		if ok && !e.own(s.key, object) { // it may have gone meanwhile
			visit(e.previewObject(ctx, s, object, opts.ServerDryRun))
		}
	}
	return nil
}

// subjects lists the objects of a resource in order, own Events among them.
func (e *Engine) subjects(resource schema.GroupVersionResource, opts PreviewOptions) []subject {
	info, ok := e.informers.Info(resource)
	if !ok {
		return nil
	}
	var out []subject
	for _, name := range e.informers.Keys(resource) {
		key := Key{Resource: resource.GroupResource(), Namespace: name.Namespace, Name: name.Name}
		selected := !e.ownLease(key) && (opts.Select == nil || opts.Select(info, key.Namespace, key.Name))
		if selected && !e.excludes(key) {
			out = append(out, subject{info, key})
		}
	}
	slices.SortFunc(out, func(a, b subject) int {
		return cmp.Or(strings.Compare(a.key.Namespace, b.key.Namespace), strings.Compare(a.key.Name, b.key.Name))
	})
	return out
}

func (e *Engine) previewObject(ctx context.Context, s subject, object *unstructured.Unstructured, ask bool) Preview {
	out := Preview{Info: s.info, Object: object, Result: rules.Result{Object: object.Object}}
	d := &decision{Engine: e, policy: e.policy.Load(), key: s.key, now: time.Now(), lookups: &lookups{Engine: e, object: s.key}, preview: true}
	all, found := d.about(view{s.info.Resource, object}, s.info)
	for deadline := time.Now().Add(namespaceWait); !found && time.Now().Before(deadline) && ctx.Err() == nil; {
		time.Sleep(20 * time.Millisecond)
		all, found = d.about(d.view, s.info)
	}
	if !found {
		out.Unknown = fmt.Sprintf("its Namespace %q is not known", s.key.Namespace)
		return out
	}
	if !ask {
		out.Result = rules.Settle(all, d.input(object.Object))
		return out
	}
	// The server does not keep what it was only asked, so it is asked about the
	// first requests.
	out.Result = d.evaluate(all, object.Object)
	if len(out.Result.Requests) > 0 {
		out.Result, out.Server = d.ask(ctx, all, out.Result)
	}
	return out
}
