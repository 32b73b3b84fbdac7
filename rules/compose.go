package rules

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Request is one PATCH: what changed of an object, or of one of its
// subresources, and the rules that changed it.
type Request struct {
	Subresource string  // "", status or scale
	Rules       []*Rule // in the order of evaluation

	merge map[string]any // exactly one of merge and ops is set
	ops   []patch.Op
}

// Type is the content type of the body.
func (r *Request) Type() types.PatchType {
	if r.merge != nil {
		return types.MergePatchType
	}
	return types.JSONPatchType
}

// Body renders the request for one version of one object: the server refuses
// it for any other. Both arguments are needed.
func (r *Request) Body(uid types.UID, resourceVersion string) ([]byte, error) {
	if r.merge != nil {
		return patch.MergeBody(r.merge, string(uid), resourceVersion)
	}
	return patch.OpsBody(r.ops, string(uid), resourceVersion)
}

// Operations gives the change as RFC 6902 operations, whatever the request
// sends.
func (r *Request) Operations(object map[string]any) []patch.Op {
	if r.merge != nil {
		return patch.MergeToOps(object, r.merge)
	}
	return r.ops
}

// composeError says that changes of these rules cannot go out as one request.
type composeError struct {
	rules []*Rule
	err   error
}

// compose makes of all changes one request per subresource, in the order in
// which they are sent. What is as it was in the end is not sent.
func compose(object map[string]any, c chain) ([]Request, *composeError) {
	var out []Request
	for _, subresource := range []string{mainResource, status, scale} {
		changes := slices.DeleteFunc(slices.Clone(c.changes), func(c ruleChange) bool { return c.subresource != subresource })
		if len(changes) == 0 {
			continue
		}
		r := Request{Subresource: subresource}
		for _, c := range changes {
			if !slices.Contains(r.Rules, c.rule) {
				r.Rules = append(r.Rules, c.rule)
			}
		}
		var needed bool
		var err error
		if slices.ContainsFunc(changes, func(c ruleChange) bool { return c.ops != nil }) {
			needed, err = r.composeOps(object, changes)
		} else {
			needed = r.composeMerge(object, changes)
		}
		if err != nil {
			return nil, &composeError{r.Rules, err}
		}
		if needed {
			out = append(out, r)
		}
	}
	return out, nil
}

// composeMerge makes one merge patch. For scale, the first change was computed
// against the Scale of the original object, and so is the end.
func (r *Request) composeMerge(object map[string]any, changes []ruleChange) bool {
	for _, c := range changes {
		r.merge = patch.ComposeMerge(r.merge, c.merge)
	}
	if r.Subresource != scale {
		r.merge = patch.Shrink(object, r.merge)
	}
	return len(r.merge) > 0
}

// composeOps makes one JSON patch and tries it on the object as it is stored,
// which does not see what goes to other subresources.
func (r *Request) composeOps(object map[string]any, changes []ruleChange) (bool, error) {
	for _, c := range changes {
		if c.ops != nil {
			r.ops = append(r.ops, c.ops...)
		} else {
			r.ops = append(r.ops, patch.MergeToOps(c.before, c.merge)...)
		}
	}
	after, err := patch.ApplyOps(object, r.ops)
	if err != nil {
		return false, fmt.Errorf("put the changes of all rules together: %w", err)
	}
	return !patch.Equal(object, after), nil
}

// HeldBy reports whether a document already is as the request wants it. It
// serves to verify the answer to a request for scale, which always is a merge
// patch; it says nothing (false) about a JSON patch.
func (r *Request) HeldBy(doc map[string]any) bool {
	if r.Subresource == scale {
		// A Scale leaves out what is 0.
		doc = patch.ApplyMerge(scaleMerge(int64(0)), doc)
	}
	return r.merge != nil && len(patch.Shrink(doc, r.merge)) == 0
}
