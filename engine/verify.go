package engine

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rectifier-dev/rectifier/rules"
)

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
		d.holdRule(ctx, r, written, false, reasonIneffective, "the server accepted the change but did not keep it: it was normalised, dropped or set back at once")
	}
	if len(unmet) > 0 {
		d.countPatch(request, patchIneffective)
	} else {
		d.countPatch(request, patchSuccess)
	}
	d.permissions.granted(d.permissionFor(request))
	if kept := slices.DeleteFunc(slices.Clone(request.Rules), func(r *rules.Rule) bool { return slices.Contains(unmet, r) }); len(kept) > 0 {
		verdicts := verdictsOf(result.Verdicts, kept)
		d.noteWrites(verdicts, newestTime(answer))
		d.recordFix(ctx, request, kept, verdicts)
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
