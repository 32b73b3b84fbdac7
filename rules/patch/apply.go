package patch

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// MaxCopyBytes is how many bytes of JSON the copy operations of one patch may
// duplicate: the API server's own limit. A few dozen copies that double a value
// each would otherwise make a petabyte of an annotation.
const MaxCopyBytes = 3 << 20

// ApplyOps returns doc with a JSON patch applied, all of it or, on an error,
// nothing. It works by copy-on-write and returns doc itself if no operation writes.
//
// It does what kube-apiserver 1.37 does (json-patch.v4): replace of an absent key
// of a map acts like add; a test for null passes where the key is absent from a
// map that exists; add, replace and move create no parents. It refuses what only
// that library takes: indices that are negative, signed or have leading zeros, and
// a value moved into itself. A copy of what is absent is ErrNotApplicable, where
// the library writes null. Numbers in a test are compared as numbers.
//
// The error is an *OpError around ErrNotApplicable (remove, move, copy of what is
// not there), *TestFailedError, *MissingParentError, *NotContainerError,
// *IndexError or ErrTooLarge; a patch that ParseOps would refuse is refused with
// the same errors. Protected paths are not checked here: see CheckOps.
func ApplyOps(doc map[string]any, ops []Op) (map[string]any, error) {
	if err := checkCount(len(ops)); err != nil {
		return nil, err
	}
	e := editor{root: doc, owned: map[uintptr]struct{}{}}
	for i, op := range ops {
		member, err := op.check()
		if err == nil {
			member, err = e.apply(op)
		}
		if err != nil {
			return nil, &OpError{Index: i, Member: member, Err: err}
		}
	}
	return e.root.(map[string]any), nil
}

// editor applies operations to one document. Containers in owned were made by it
// and are reachable from root in one place only, so they may be modified: without
// that, 10,000 operations on one long list would copy it 10,000 times.
//
// A container is known by its address. No address is taken again by foreign memory
// while the editor works: all that is foreign was there before it.
type editor struct {
	root   any
	owned  map[uintptr]struct{}
	copied int // bytes of JSON that copy operations have duplicated
}

// apply runs one operation and returns the member that is to blame for an error.
func (e *editor) apply(op Op) (member string, err error) {
	switch op.Op {
	case "add":
		return "path", e.edit(op.Path, addTo(op.Value))
	case "replace":
		return "path", e.edit(op.Path, replaceIn(op.Value))
	case "remove":
		return "path", e.remove(op.Path)
	case "test":
		return "path", e.test(op.Path, op.Value)
	}
	v, err := e.existing(op.From) // move or copy
	if err != nil {
		return "from", err
	}
	if op.Op == "copy" {
		return e.copy(v, op)
	}
	if err := e.remove(op.From); err != nil {
		return "from", err
	}
	return "path", e.edit(op.Path, addTo(v))
}

func (e *editor) copy(v any, op Op) (member string, err error) {
	size, err := encodedSize(v, MaxCopyBytes-e.copied)
	if err != nil {
		return "from", fmt.Errorf("duplicate %s: %w", op.From, err)
	}
	e.copied += size
	// The value is reachable in two places from now on: nothing below may be
	// modified in place, and the simplest truth is that nothing at all is owned.
	clear(e.owned)
	return "path", e.edit(op.Path, addTo(v))
}

func (e *editor) test(path Pointer, want any) error {
	parent, err := lookup(e.root, path[:len(path)-1])
	if err == nil {
		var have any
		have, err = member(parent, path)
		_, inMap := parent.(map[string]any)
		if inMap && errors.Is(err, errAbsent) {
			have, err = nil, nil // absent from a map is null, for the API server
		}
		if err == nil && Equal(have, want) {
			return nil
		}
	}
	if err == nil || errors.Is(err, errAbsent) {
		return &TestFailedError{Path: path}
	}
	return err
}

func (e *editor) remove(path Pointer) error {
	if _, err := e.existing(path); err != nil {
		return err
	}
	return e.edit(path, removeFrom)
}

// existing returns the value at path. That there is none is ErrNotApplicable.
func (e *editor) existing(path Pointer) (any, error) {
	v, err := lookup(e.root, path)
	if errors.Is(err, errAbsent) {
		return nil, fmt.Errorf("%s: %w", path, ErrNotApplicable)
	}
	return v, err
}

// leafFunc changes one member of a container that the editor owns and returns the
// container, which may have moved. path ends in the member's token.
type leafFunc func(container any, path Pointer) (any, error)

// edit applies leaf at the end of path, copying what it does not own on the way.
func (e *editor) edit(path Pointer, leaf leafFunc) error {
	root, err := e.editAt(e.root, path, 0, leaf)
	if err != nil {
		return err
	}
	e.root = root
	return nil
}

func (e *editor) editAt(node any, path Pointer, depth int, leaf leafFunc) (any, error) {
	here := path[:depth+1]
	if depth == len(path)-1 {
		if err := checkContainer(node, here[:depth]); err != nil {
			return nil, err
		}
		out, err := leaf(e.own(node), here)
		e.claim(out)
		return out, err
	}
	child, err := member(node, here)
	if err != nil {
		return nil, missingOnTheWay(err, node, here)
	}
	child, err = e.editAt(child, path, depth+1, leaf)
	if err != nil {
		return nil, err
	}
	return put(e.own(node), here, child), nil
}

// own returns node itself if the editor made it, and a copy otherwise.
func (e *editor) own(node any) any {
	if _, ok := e.owned[address(node)]; ok {
		return node
	}
	switch n := node.(type) {
	case map[string]any:
		if node = maps.Clone(n); n == nil {
			node = map[string]any{}
		}
	case []any:
		node = slices.Clone(n)
	}
	e.claim(node)
	return node
}

func (e *editor) claim(node any) {
	// A list without memory of its own shares its address with others.
	if l, ok := node.([]any); node != nil && (!ok || cap(l) > 0) {
		e.owned[address(node)] = struct{}{}
	}
}

func address(container any) uintptr {
	return reflect.ValueOf(container).Pointer()
}

func addTo(v any) leafFunc {
	return func(c any, path Pointer) (any, error) {
		l, ok := c.([]any)
		if !ok {
			return put(c, path, v), nil
		}
		token := path[len(path)-1]
		if token == "-" {
			return append(l, v), nil
		}
		i, ok := index(token)
		if !ok || i > len(l) {
			return nil, &IndexError{Path: path, Len: len(l)}
		}
		return slices.Insert(l, i, v), nil
	}
}

func replaceIn(v any) leafFunc {
	return func(c any, path Pointer) (any, error) {
		if l, ok := c.([]any); ok {
			if i, ok := index(path[len(path)-1]); !ok || i >= len(l) {
				return nil, &IndexError{Path: path, Len: len(l)}
			}
		}
		return put(c, path, v), nil
	}
}

// removeFrom is called for members that exist.
func removeFrom(c any, path Pointer) (any, error) {
	token := path[len(path)-1]
	if m, ok := c.(map[string]any); ok {
		delete(m, token)
		return m, nil
	}
	i, _ := index(token)
	return slices.Delete(c.([]any), i, i+1), nil
}

// put sets a key of a map, or an index that is known to exist.
func put(c any, path Pointer, v any) any {
	token := path[len(path)-1]
	switch c := c.(type) {
	case map[string]any:
		c[token] = v
	case []any:
		i, _ := index(token)
		c[i] = v
	}
	return c
}
