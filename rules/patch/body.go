package patch

import (
	"fmt"
	"maps"
)

// guardOps is how many operations OpsBody puts in front.
const guardOps = 2

// MergeBody returns the body of the request that makes the changes of a shrunk
// merge patch to the one version of the one object that they were decided on:
// metadata.uid and metadata.resourceVersion are added, and the API server answers
// 409 if the object has moved on and refuses if it is another one. Keys are sorted,
// so equal patches have equal bodies. merge is not modified.
//
// Errors: ErrUnguarded if uid or resourceVersion is empty, *ProtectedError as of
// CheckMerge, *ValueError for what is not JSON (a patch that ComposeMerge made and
// Shrink has not seen included), ErrTooLarge over MaxBodyBytes.
func MergeBody(merge map[string]any, uid, resourceVersion string) ([]byte, error) {
	if uid == "" || resourceVersion == "" {
		return nil, ErrUnguarded
	}
	if err := CheckMerge(merge); err != nil {
		return nil, err
	}
	metadata, isPlain := merge["metadata"].(map[string]any)
	if _, ok := merge["metadata"]; ok && !isPlain {
		return nil, (&ValueError{Msg: "a composed merge patch can be written only after Shrink"}).under("metadata")
	}
	guarded := make(map[string]any, len(metadata)+2)
	maps.Copy(guarded, metadata)
	guarded["uid"] = uid
	guarded["resourceVersion"] = resourceVersion
	body := make(map[string]any, len(merge)+1)
	maps.Copy(body, merge)
	body["metadata"] = guarded

	e := encoder{buf: make([]byte, 0, 256), limit: MaxBodyBytes}
	if err := e.value(body, 0); err != nil {
		return nil, err
	}
	return e.finish()
}

// OpsBody is MergeBody for a JSON patch. The guards come first, as add operations:
// a test of a stale resourceVersion would get a 422 that says nothing.
//
// On a stale object an operation of the patch itself may fail before the API server
// looks at the resourceVersion (an index or a test that no longer fits): that is a
// 422 too, and means no more than a 409.
//
// Errors: ErrUnguarded, *OpError (as of CheckOps, or around what ParseOps would
// refuse or a *ValueError), ErrTooLarge.
func OpsBody(ops []Op, uid, resourceVersion string) ([]byte, error) {
	if uid == "" || resourceVersion == "" {
		return nil, ErrUnguarded
	}
	if err := checkCount(len(ops)); err != nil {
		return nil, err
	}
	if err := CheckOps(ops); err != nil {
		return nil, err
	}
	e := encoder{buf: make([]byte, 0, 256), limit: MaxBodyBytes}
	e.buf = append(e.buf, `[{"op":"add","path":"/metadata/uid","value":`...)
	e.string(uid)
	e.buf = append(e.buf, `},{"op":"add","path":"/metadata/resourceVersion","value":`...)
	e.string(resourceVersion)
	e.buf = append(e.buf, '}')
	for i, op := range ops {
		if member, err := op.check(); err != nil {
			return nil, &OpError{Index: i, Member: member, Err: err}
		}
		e.buf = append(e.buf, ',')
		if err := e.op(op); err != nil {
			return nil, &OpError{Index: i, Member: "value", Err: err}
		}
	}
	e.buf = append(e.buf, ']')
	body, err := e.finish()
	if err != nil {
		return nil, fmt.Errorf("write %d operations: %w", len(ops), err)
	}
	return body, nil
}
