package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/rules/expression"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// ErrReplicasUnknown says that a rule writes through scale, but that it is not
// known where objects of the resource keep their replica count.
var ErrReplicasUnknown = errors.New("it is not known where this resource keeps its replica count: the scale subresource cannot be used")

// ErrStatusDropped says that a rule would change status where the server drops
// that.
var ErrStatusDropped = errors.New("it changes status, which this resource takes through its status subresource only: give the patch subresource: status")

// change is what one patch of one rule does to the working copy. Exactly one
// of merge and ops is set; neither is empty.
type change struct {
	subresource string
	merge       map[string]any
	ops         []patch.Op
	before      map[string]any // the working copy that it was computed for
}

// render evaluates the patch for the working copy. It returns no change if
// there is nothing to do, else the change and the working copy after it. The
// working copy itself is not modified.
func (p *patchTemplate) render(names expression.Resolver, working map[string]any, in *Input) (*change, map[string]any, error) {
	if p.subresource == scale {
		return p.renderScale(names, working, in.ReplicasPath)
	}
	c, next, err := p.renderOn(names, working, in.Schema)
	if c == nil || err != nil {
		return nil, working, err
	}
	if p.subresource == mainResource && in.HasStatus && !patch.Equal(working["status"], next["status"]) {
		return nil, working, ErrStatusDropped
	}
	c.subresource, c.before = p.subresource, working
	return c, next, nil
}

// renderOn evaluates the patch for a document: the object, or its Scale.
func (p *patchTemplate) renderOn(names expression.Resolver, doc map[string]any, schema Schema) (*change, map[string]any, error) {
	switch {
	case p.apply != nil:
		return p.renderApply(names, doc, schema)
	case p.merge != nil:
		m, err := p.evalPartial(p.merge, names)
		if err != nil {
			return nil, nil, err
		}
		m = patch.Shrink(doc, m)
		if len(m) == 0 {
			return nil, nil, nil
		}
		return &change{merge: m}, patch.ApplyMerge(doc, m), nil
	}
	ops, err := p.evalOps(names)
	if err != nil || len(ops) == 0 {
		return nil, nil, err
	}
	next, err := patch.ApplyOps(doc, ops)
	if err != nil {
		return nil, nil, err
	}
	if patch.Equal(doc, next) {
		return nil, nil, nil
	}
	return &change{ops: ops}, next, nil
}

// renderApply merges a partial object into the object by the schema of its
// kind. What that changes goes out as operations: a merge patch would replace
// lists whole.
func (p *patchTemplate) renderApply(names expression.Resolver, doc map[string]any, schema Schema) (*change, map[string]any, error) {
	config, err := p.evalPartial(p.apply, names)
	if err != nil || len(config) == 0 {
		return nil, nil, err
	}
	if schema == nil {
		return nil, nil, &UnknownError{What: "the schema of the kind", Schema: true}
	}
	next, err := schema.Merge(doc, config)
	if err != nil {
		return nil, nil, fmt.Errorf("apply the configuration: %w", err)
	}
	ops := patch.Diff(doc, next)
	if len(ops) == 0 {
		return nil, nil, nil
	}
	return &change{ops: ops}, next, nil
}

// evalPartial evaluates a partial object: a merge patch, or a configuration.
func (p *patchTemplate) evalPartial(t template, names expression.Resolver) (map[string]any, error) {
	v, err := t.eval(names)
	if errors.Is(err, expression.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the patch must be a mapping, but the expression gives %s", kindOf(v))
	}
	if err := checkMerge(m, p.subresource); err != nil {
		return nil, err
	}
	return m, p.checkText(m, nil, false)
}

func (p *patchTemplate) evalOps(names expression.Resolver) ([]patch.Op, error) {
	v, err := p.json.eval(names)
	if errors.Is(err, expression.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ops, err := patch.ParseOps(v)
	if err != nil {
		return nil, err
	}
	if err := checkOps(ops, p.subresource); err != nil {
		return nil, err
	}
	for _, op := range ops {
		if op.Op != "test" {
			if err := p.checkText(op.Value, op.Path, op.HasValue); err != nil {
				return nil, err
			}
		}
	}
	return ops, nil
}

// checkText refuses numbers, bools and the like where only strings may stand,
// in values that were computed as a whole. A null deletes in a merge patch; in
// a JSON patch it is a value.
func (p *patchTemplate) checkText(v any, path []string, nullIsValue bool) error {
	if m, ok := v.(map[string]any); ok {
		for k, v := range m {
			if err := p.checkText(v, extend(path, k), nullIsValue); err != nil {
				return err
			}
		}
		return nil
	}
	if _, ok := v.(string); !ok && (v != nil || nullIsValue) && p.textAt(path) {
		return errors.New(notText(strings.Join(path, "."), kindOf(v)))
	}
	return nil
}

// renderScale evaluates the patch for the object's Scale, of which only the
// replica count is ours to write.
func (p *patchTemplate) renderScale(names expression.Resolver, working map[string]any, replicasPath []string) (*change, map[string]any, error) {
	if replicasPath == nil {
		return nil, nil, ErrReplicasUnknown
	}
	view := scaleOf(working, replicasPath)
	c, after, err := p.renderOn(names, view, nil)
	if c == nil || err != nil {
		return nil, working, err
	}
	spec, _ := after["spec"].(map[string]any)
	replicas, ok := spec["replicas"].(int64)
	if !ok {
		return nil, nil, fmt.Errorf("spec.replicas must be an integer, but the patch gives %s", kindOf(spec["replicas"]))
	}
	if replicas < 0 {
		return nil, nil, fmt.Errorf("spec.replicas must not be negative, but the patch gives %d", replicas)
	}
	merge := patch.Shrink(view, scaleMerge(replicas))
	if len(merge) == 0 {
		return nil, working, nil
	}
	return &change{subresource: scale, merge: merge, before: working},
		patch.ApplyMerge(working, nest(replicasPath, replicas)), nil
}

// scaleOf is the Scale of an object, as far as a patch may read or write it.
func scaleOf(object map[string]any, replicasPath []string) map[string]any {
	var v any = object
	for _, key := range replicasPath {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	if v == nil {
		return map[string]any{"spec": map[string]any{}}
	}
	return scaleMerge(v)
}

func scaleMerge(replicas any) map[string]any {
	return map[string]any{"spec": map[string]any{"replicas": replicas}}
}

func nest(path []string, v any) map[string]any {
	for i, key := range slices.Backward(path) {
		if i == 0 {
			return map[string]any{key: v}
		}
		v = map[string]any{key: v}
	}
	return nil
}

// outsideError says that a patch writes what its endpoint does not take.
type outsideError struct {
	subresource string
	path        patch.Pointer
}

func (e *outsideError) Error() string {
	if e.subresource == scale {
		return fmt.Sprintf("through scale only /spec/replicas can be written, not %s", e.path)
	}
	return fmt.Sprintf("through status only /status can be written, not %s", e.path)
}

// pathOf is the path that an error of checkMerge is about.
func pathOf(err error) []string {
	var outside *outsideError
	if errors.As(err, &outside) {
		return outside.path
	}
	var protected *patch.ProtectedError
	if errors.As(err, &protected) {
		return protected.Path
	}
	return nil
}

// checkMerge and checkOps are the one place that decides where a rule may
// write: what identifies an object is never changed, and a subresource takes
// only what is its own.
func checkMerge(m map[string]any, subresource string) error {
	switch subresource {
	case status:
		for k := range m {
			if k != "status" {
				return &outsideError{status, patch.Pointer{k}}
			}
		}
		return nil
	case scale:
		for k, v := range m {
			spec, _ := v.(map[string]any)
			if k != "spec" {
				return &outsideError{scale, patch.Pointer{k}}
			}
			for k := range spec {
				if k != "replicas" {
					return &outsideError{scale, patch.Pointer{"spec", k}}
				}
			}
		}
		return nil
	}
	return patch.CheckMerge(m)
}

func checkOps(ops []patch.Op, subresource string) error {
	for i, op := range ops {
		if err := checkPointer(op.Path, subresource, op.Op != "test"); err != nil {
			return &patch.OpError{Index: i, Member: "path", Err: err}
		}
		if op.From == nil {
			continue
		}
		if err := checkPointer(op.From, subresource, op.Op == "move"); err != nil {
			return &patch.OpError{Index: i, Member: "from", Err: err}
		}
	}
	return nil
}

func checkPointer(p patch.Pointer, subresource string, writes bool) error {
	if right, wrong := patch.SuspectRawSlash(p); wrong {
		return &rawSlashError{right}
	}
	if !writes {
		return nil
	}
	return checkTarget(p, subresource)
}

// rawSlashError says that a key with a / was written into a pointer as it is.
type rawSlashError struct{ right string }

func (e *rawSlashError) Error() string {
	return "a / in a label's or annotation's key is written ~1: " + e.right
}

func checkTarget(target patch.Pointer, subresource string) error {
	switch subresource {
	case status:
		if target[0] != "status" {
			return &outsideError{status, target}
		}
		return nil
	case scale:
		if !slices.Equal(target, patch.Pointer{"spec", "replicas"}) {
			return &outsideError{scale, target}
		}
		return nil
	}
	return patch.CheckPath(target)
}
