package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/rectifier-dev/rectifier/rules"
)

// writeTimeout bounds one PATCH, so that a webhook that hangs does not keep a
// worker.
const writeTimeout = 10 * time.Second

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
		if wait := d.permissions.wait(d.permissionFor(request), time.Now()); wait > 0 {
			d.waitForPermission(wait)
			continue
		}
		if wait := d.state.wait(time.Now()); wait > 0 {
			return &againError{wait, "the last request has failed not long ago"}
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

// patch sends one request: the only call of the engine that changes objects.
func (d *decision) patch(ctx context.Context, request *rules.Request, version string) (*unstructured.Unstructured, error) {
	d.sent = false
	body, err := request.Body(d.object.GetUID(), version)
	if err != nil {
		return nil, &bodyError{err}
	}
	if err := d.rate.Wait(ctx); err != nil {
		return nil, fmt.Errorf("wait for the rate of writes: %w", err)
	}
	if d.election != nil {
		if err := d.election.mayWrite(); err != nil {
			return nil, err
		}
	}
	if d.outdated() {
		return nil, errOutdated
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
	d.sent = true
	return d.writer().Resource(d.resource).Namespace(d.key.Namespace).Patch(ctx, d.key.Name, request.Type(), body, options, subresources...)
}

// target names what a request writes: group/version/resource/subresource.
func (d *decision) target(request *rules.Request) string {
	if request.Subresource == "" {
		return rules.ResourceName(d.resource)
	}
	return rules.ResourceName(d.resource) + "/" + request.Subresource
}

// remember gives the object's state, made when it is first needed.
func (d *decision) remember() *objectState {
	if d.state == nil {
		d.state = newObjectState(d.object.GetUID())
		d.state.generation = d.policy.generation
	}
	return d.state
}
