package patch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// MaxOps is how many operations a JSON patch may have: the API server takes
// 10,000, and two of them are the guards that OpsBody adds.
const MaxOps = 10_000 - guardOps

// Op is one operation of a JSON patch (RFC 6902). The zero Path is the whole
// document, which no operation may have.
type Op struct {
	Op   string // add, remove, replace, move, copy or test
	Path Pointer
	From Pointer // move and copy only
	// Value belongs to add, replace and test. HasValue tells a null from a value
	// that was never given.
	Value    any
	HasValue bool
}

// opMembers says which of the optional members an operation takes. It is the list
// of operations.
var opMembers = map[string]struct{ from, value bool }{
	"add":     {value: true},
	"remove":  {},
	"replace": {value: true},
	"move":    {from: true},
	"copy":    {from: true},
	"test":    {value: true},
}

// check returns the member that is at fault, and why.
func (o Op) check() (member string, err error) {
	takes, ok := opMembers[o.Op]
	switch {
	case !ok:
		return "op", fmt.Errorf("%.20q is none of add, remove, replace, move, copy, test", o.Op)
	case len(o.Path) == 0:
		return "path", ErrWholeDocument
	case takes.from && len(o.From) == 0:
		return "from", ErrWholeDocument
	case !takes.from && len(o.From) > 0:
		return "from", fmt.Errorf("%s takes no from", o.Op)
	case takes.value && !o.HasValue:
		return "value", fmt.Errorf("%s needs a value (null is one)", o.Op)
	case !takes.value && o.HasValue:
		return "value", fmt.Errorf("%s takes no value", o.Op)
	case o.Op == "move" && len(o.Path) > len(o.From) && o.Path.HasPrefix(o.From):
		return "path", errors.New("a value cannot be moved into itself")
	}
	return "", nil
}

// MarshalJSON writes the members that the operation takes; "value": null included,
// without which a test for absence would lose its meaning. An invalid Op is an error.
func (o Op) MarshalJSON() ([]byte, error) {
	if member, err := o.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", member, err)
	}
	e := encoder{limit: MaxBodyBytes}
	if err := e.op(o); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return e.finish()
}

// ParseOps reads a JSON patch from its JSON shape, a list of maps. It is strict:
// an unknown member, a member that the operation does not take, one that it needs
// and lacks, and a bad pointer are errors. Values are normalized and otherwise
// shared with v. All errors are *OpError, except that v is no list, or too long
// (ErrTooLarge).
func ParseOps(v any) ([]Op, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("a JSON patch is a list of operations, not %s", typeName(v))
	}
	if err := checkCount(len(list)); err != nil {
		return nil, err
	}
	ops := make([]Op, len(list))
	for i, item := range list {
		op, member, err := parseOp(item)
		if err != nil {
			return nil, &OpError{Index: i, Member: member, Err: err}
		}
		ops[i] = op
	}
	return ops, nil
}

func parseOp(item any) (op Op, member string, err error) {
	m, ok := item.(map[string]any)
	if !ok {
		return Op{}, "", fmt.Errorf("an operation is an object, not %s", typeName(item))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) { // sorted: the same error every time
		switch v := m[key]; key {
		case "op":
			op.Op, err = stringMember(v)
		case "path":
			op.Path, err = pointerMember(v)
		case "from":
			op.From, err = pointerMember(v)
		case "value":
			op.HasValue = true
			op.Value, err = Normalize(v)
		default:
			err = errors.New("unknown member (there are op, path, from and value)")
		}
		if err != nil {
			return Op{}, key, err
		}
	}
	for _, key := range []string{"op", "path"} {
		if _, ok := m[key]; !ok {
			return Op{}, key, errors.New("missing")
		}
	}
	if _, ok := m["from"]; !ok && opMembers[op.Op].from {
		return Op{}, "from", errors.New("missing")
	}
	member, err = op.check()
	return op, member, err
}

func stringMember(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("must be a string, not %s", typeName(v))
	}
	return s, nil
}

func pointerMember(v any) (Pointer, error) {
	s, err := stringMember(v)
	if err != nil {
		return nil, err
	}
	return ParsePointer(s)
}

func checkCount(n int) error {
	if n > MaxOps {
		return fmt.Errorf("%w: %d operations, at most %d are allowed", ErrTooLarge, n, MaxOps)
	}
	return nil
}

// MergeToOps returns the JSON patch that does to live what merge does to it, on the
// smallest paths and in sorted order: nil where ApplyMerge changes nothing. A list
// is replaced whole, as in a merge patch. The operations share values with merge.
func MergeToOps(live, merge map[string]any) []Op {
	return appendMergeOps(nil, nil, live, Shrink(live, merge))
}

func appendMergeOps(ops []Op, at Pointer, live, left map[string]any) []Op {
	for _, key := range slices.Sorted(maps.Keys(left)) {
		path, want := at.child(key), left[key]
		have, exists := live[key]
		haveMap, isMap := have.(map[string]any)
		wantMap, wantsMap := want.(map[string]any)
		switch {
		case want == nil:
			ops = append(ops, Op{Op: "remove", Path: path})
		case isMap && wantsMap:
			ops = appendMergeOps(ops, path, haveMap, wantMap)
		case exists:
			ops = append(ops, Op{Op: "replace", Path: path, Value: want, HasValue: true})
		default:
			ops = append(ops, Op{Op: "add", Path: path, Value: want, HasValue: true})
		}
	}
	return ops
}
