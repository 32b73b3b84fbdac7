package patch

import (
	"maps"
	"slices"
	"strconv"
)

// Diff returns the operations that make after of before, on the smallest paths
// and in an order in which each is applicable; nil if both are the same value.
// Maps are compared by key. Of lists, a common beginning and end is left alone,
// and what is between is compared by index: so the operations hold for before
// only, and belong into a request with a resourceVersion.
//
// It is cheap for results of this package and others that share unchanged parts
// with their input: what is shared is not walked. Values are shared with after.
func Diff(before, after map[string]any) []Op {
	return diffMaps(nil, nil, before, after)
}

func diffMaps(ops []Op, at Pointer, before, after map[string]any) []Op {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[key]; !ok {
			ops = append(ops, Op{Op: "remove", Path: at.child(key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if have, ok := before[key]; ok {
			ops = diffValues(ops, at.child(key), have, after[key])
		} else {
			ops = append(ops, Op{Op: "add", Path: at.child(key), Value: after[key], HasValue: true})
		}
	}
	return ops
}

func diffValues(ops []Op, at Pointer, before, after any) []Op {
	if Equal(before, after) {
		return ops
	}
	switch a := after.(type) {
	case map[string]any:
		if b, ok := before.(map[string]any); ok {
			return diffMaps(ops, at, b, a)
		}
	case []any:
		if b, ok := before.([]any); ok {
			return diffLists(ops, at, b, a)
		}
	}
	return append(ops, Op{Op: "replace", Path: at, Value: after, HasValue: true})
}

func diffLists(ops []Op, at Pointer, before, after []any) []Op {
	head, shorter := 0, min(len(before), len(after))
	for head < shorter && Equal(before[head], after[head]) {
		head++
	}
	tail := 0
	for tail < shorter-head && Equal(before[len(before)-1-tail], after[len(after)-1-tail]) {
		tail++
	}
	b, a := before[head:len(before)-tail], after[head:len(after)-tail]
	both := min(len(b), len(a))
	for i := range both {
		ops = diffValues(ops, at.child(strconv.Itoa(head+i)), b[i], a[i])
	}
	for i := len(b) - 1; i >= both; i-- { // from the end: the indices before stay as they are
		ops = append(ops, Op{Op: "remove", Path: at.child(strconv.Itoa(head + i))})
	}
	for i := both; i < len(a); i++ {
		ops = append(ops, Op{Op: "add", Path: at.child(strconv.Itoa(head + i)), Value: a[i], HasValue: true})
	}
	return ops
}
