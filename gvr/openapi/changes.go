package openapi

import (
	"maps"
	"slices"
	"strconv"
)

// Change is one operation of a JSON patch (RFC 6902): add, replace or remove.
type Change struct {
	Op    string
	Path  []string // reference tokens, not escaped; never empty
	Value any      // of add and replace; null is a value
}

// Changes returns the operations that make after of before, on the smallest paths and in an order in which each is applicable:
// nil if both are the same value. Maps are compared by key. Of lists, a common beginning and end is left alone, and what is
// between is compared by index; so it says what has changed only as long as before does not change, and belongs into a
// request with a resourceVersion.
//
// It is cheap for the results of Merge, because what before and after share is not walked. Values are shared with after.
func Changes(before, after map[string]any) []Change {
	return appendMapChanges(nil, nil, before, after)
}

func appendMapChanges(changes []Change, at []string, before, after map[string]any) []Change {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[key]; !ok {
			changes = append(changes, Change{Op: "remove", Path: child(at, key)})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if have, ok := before[key]; ok {
			changes = appendChanges(changes, at, key, have, after[key])
		} else {
			changes = append(changes, Change{Op: "add", Path: child(at, key), Value: after[key]})
		}
	}
	return changes
}

func appendChanges(changes []Change, at []string, token string, before, after any) []Change {
	if same(before, after) {
		return changes
	}
	switch a := after.(type) {
	case map[string]any:
		if b, ok := before.(map[string]any); ok {
			return appendMapChanges(changes, child(at, token), b, a)
		}
	case []any:
		if b, ok := before.([]any); ok {
			return appendListChanges(changes, child(at, token), b, a)
		}
	}
	return append(changes, Change{Op: "replace", Path: child(at, token), Value: after})
}

func appendListChanges(changes []Change, at []string, before, after []any) []Change {
	head, shorter := 0, min(len(before), len(after))
	for head < shorter && equal(before[head], after[head]) {
		head++
	}
	tail := 0
	for tail < shorter-head && equal(before[len(before)-1-tail], after[len(after)-1-tail]) {
		tail++
	}
	b, a := before[head:len(before)-tail], after[head:len(after)-tail]
	both := min(len(b), len(a))
	for i := range both {
		changes = appendChanges(changes, at, strconv.Itoa(head+i), b[i], a[i])
	}
	for i := len(b) - 1; i >= both; i-- { // from the end: the indices before stay as they are
		changes = append(changes, Change{Op: "remove", Path: child(at, strconv.Itoa(head+i))})
	}
	for i := both; i < len(a); i++ {
		changes = append(changes, Change{Op: "add", Path: child(at, strconv.Itoa(head+i)), Value: a[i]})
	}
	return changes
}

// child returns a path of its own: siblings must not share the array behind theirs.
func child(at []string, token string) []string {
	return append(slices.Clip(at), token)
}
