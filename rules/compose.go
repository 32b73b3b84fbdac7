package rules

import (
	"errors"
	"maps"
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

// errReplicasOverwritten says that the order in which requests are sent is not
// that of the patches: the server would end with the count of scale.
var errReplicasOverwritten = errors.New("it writes the replica count through scale, and a later patch writes it to the object itself: leave it to one of them")

// compose makes of all changes one request per subresource, in the order in
// which they are sent. What is as it was in the end is not sent.
func compose(in Input, c chain) ([]Request, *composeError) {
	object := in.Object
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
		switch {
		case !slices.ContainsFunc(changes, func(c ruleChange) bool { return c.ops != nil }):
			needed = r.composeMerge(object, changes)
		case len(changes) == len(c.changes):
			r.composeOps(changes)
			needed = !patch.Equal(object, c.object)
		default:
			// Operations may read (copy, move, test) what goes to another endpoint,
			// and is not there yet.
			r.ops = patch.Diff(object, share(in, c, subresource))
			needed = len(r.ops) > 0
		}
		if subresource == scale && len(patch.Shrink(scaleOf(c.object, in.ReplicasPath), r.merge)) > 0 {
			return nil, &composeError{r.Rules, errReplicasOverwritten}
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

// composeOps makes one JSON patch of changes that all go to one endpoint.
func (r *Request) composeOps(changes []ruleChange) {
	for _, c := range changes {
		if c.ops != nil {
			r.ops = append(r.ops, c.ops...)
		} else {
			r.ops = append(r.ops, patch.MergeToOps(c.before, c.merge)...)
		}
	}
}

// share is what the request to one endpoint has to make of an object where other
// changes go to other endpoints.
func share(in Input, c chain, subresource string) map[string]any {
	if subresource == status {
		return restore(in.Object, c.object, []string{status})
	}
	out := c.object
	if c.writes(status) {
		out = restore(out, in.Object, []string{status})
	}
	if c.writes(scale) {
		out = restore(out, in.Object, in.ReplicasPath)
	}
	return out
}

func (c *chain) writes(subresource string) bool {
	return slices.ContainsFunc(c.changes, func(c ruleChange) bool { return c.subresource == subresource })
}

// restore returns an object with what another one has at a path, or without it
// where that has nothing there. Neither is modified.
func restore(object, from map[string]any, path []string) map[string]any {
	key := path[0]
	value, exists := from[key]
	if child, ok := object[key].(map[string]any); ok && len(path) > 1 {
		below, _ := value.(map[string]any)
		left := restore(child, below, path[1:])
		value, exists = left, exists || len(left) > 0
	}
	out := maps.Clone(object)
	if exists {
		out[key] = value
	} else {
		delete(out, key)
	}
	return out
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
