package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rectifier-dev/rectifier/rules"
)

// DryRun is the server's answer to what the rules would do to an object.
type DryRun struct {
	// Object is what the server would store, except for what it counts itself:
	// resourceVersion, generation and managedFields are those of the object
	// before. Nil: it was not asked to the end, see Err.
	Object map[string]any
	// Refused are the rules whose change the server refuses, in their order. The
	// others were asked without them.
	Refused []Refusal
	// Err says that the server could not be asked: a permission is missing, the
	// object changes all the time, there is no answer. It is fit for logs.
	Err error
}

// Refusal is a rule whose change the server refuses.
type Refusal struct {
	Rule *rules.Rule
	// Reason holds nothing of the object.
	Reason string
}

// ask sends a decision to the server, which does all but store it. Rules that
// are refused are left out, as in a real run, and the rest is decided anew: the
// result returned is that of the rest.
func (d *decision) ask(ctx context.Context, all []*rules.Rule, result rules.Result) (rules.Result, *DryRun) {
	out := &DryRun{}
	for {
		answer, err := d.rehearse(ctx, result)
		var refused *refusedError
		switch {
		case !errors.As(err, &refused):
			out.Object, out.Err = answer, err
			return result, out
		case len(refused.request.Rules) > 1:
			if err := d.culprits(ctx, refused, out); err != nil {
				out.Err = err
				return result, out
			}
		default:
			out.Refused = append(out.Refused, Refusal{refused.request.Rules[0], refused.reason})
		}
		all = slices.DeleteFunc(slices.Clone(all), func(r *rules.Rule) bool {
			return slices.ContainsFunc(out.Refused, func(f Refusal) bool { return f.Rule == r })
		})
		result = d.evaluate(all, d.object.Object)
	}
}

// culprits adds those rules of a refused request that are refused alone too; all
// of them if it takes several together.
func (d *decision) culprits(ctx context.Context, refused *refusedError, out *DryRun) error {
	before := len(out.Refused)
	for _, r := range refused.request.Rules {
		_, err := d.rehearse(ctx, d.evaluate([]*rules.Rule{r}, d.object.Object))
		var alone *refusedError
		switch {
		case errors.As(err, &alone):
			out.Refused = append(out.Refused, Refusal{r, alone.reason})
		case err != nil:
			return err
		}
	}
	if len(out.Refused) == before {
		for _, r := range refused.request.Rules {
			out.Refused = append(out.Refused, Refusal{r, refused.reason + ", together with other rules"})
		}
	}
	return nil
}

// rehearse sends the requests of a decision with dryRun=All and puts the
// answers together. An error is a *refusedError, or says why there is no answer.
func (d *decision) rehearse(ctx context.Context, result rules.Result) (map[string]any, error) {
	out := d.object.Object
	version := d.object.GetResourceVersion()
	for i := range result.Requests {
		request := &result.Requests[i]
		answer, err := d.patch(ctx, request, version) // nothing is stored: the version stays
		if err != nil {
			return nil, d.unanswered(ctx, request, version, err)
		}
		switch request.Subresource {
		case "":
			out = answer.Object
		case "status":
			out = with(out, answer.Object["status"], "status")
		case "scale":
			replicas, _, _ := unstructured.NestedFieldNoCopy(answer.Object, "spec", "replicas")
			if replicas == nil {
				replicas = int64(0) // a Scale leaves it out
			}
			out = with(out, replicas, d.replicasPath...)
		}
	}
	return d.settleMeta(out), nil
}

// with returns an object with a field set; the object itself stays as it is.
func with(object map[string]any, value any, path ...string) map[string]any {
	out := runtime.DeepCopyJSON(object)
	if value == nil {
		unstructured.RemoveNestedField(out, path...)
	} else if err := unstructured.SetNestedField(out, runtime.DeepCopyJSONValue(value), path...); err != nil {
		return object // something else stands at the path: the server has its own idea of it
	}
	return out
}

// settleMeta takes what the server counts from the object as it is: it is not
// what the rules are about.
func (d *decision) settleMeta(answer map[string]any) map[string]any {
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		value, _, _ := unstructured.NestedFieldNoCopy(d.object.Object, "metadata", field)
		answer = with(answer, value, "metadata", field)
	}
	return answer
}

// unanswered makes of an error of the server what it means for a preview.
func (d *decision) unanswered(ctx context.Context, request *rules.Request, version string, err error) error {
	f := classify(err, d.objectID())
	switch f.class {
	case conflict:
		return errors.New("the object has changed meanwhile")
	case gone:
		return errors.New("the object has gone meanwhile")
	case throttled, unavailable, unauthorized:
		return fmt.Errorf("%w: patch %s: %s", ErrUnreachable, d.target(request), f.reason)
	case forbidden:
		allowed, err := d.permissions.mayPatch(ctx, d.permissionFor(request), d.key.Name)
		if err != nil {
			return fmt.Errorf("%w: patch %s: %s", ErrUnreachable, d.target(request), f.reason)
		}
		if !allowed {
			return fmt.Errorf("%w: not allowed to patch %s", ErrUnreachable, d.target(request))
		}
	}
	return &refusedError{request: request, version: version, reason: f.reason}
}
