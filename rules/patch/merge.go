package patch

import (
	"maps"
	"reflect"
	"slices"
)

// Shrink returns the part of a merge patch that live does not already have: the
// smallest patch that makes of live what merge makes of it. nil means that merge
// changes nothing, so nothing is to be sent. What counts as nothing is said in the
// package comment.
//
// The result is a plain RFC 7386 patch that shares values with merge; all three
// are read-only. live may be nil.
func Shrink(live, merge map[string]any) map[string]any {
	return shrinkMap(live, merge, "")
}

// ApplyMerge returns live with merge applied, by copy-on-write. It returns live
// itself if nothing changes, and shares values with both arguments otherwise.
func ApplyMerge(live, merge map[string]any) map[string]any {
	return applyMerge(live, merge, "")
}

func applyMerge(live, merge map[string]any, name string) map[string]any {
	left := shrinkMap(live, merge, name)
	if left == nil {
		return live
	}
	return applyShrunk(live, left)
}

// applyShrunk is RFC 7386 for a patch that was shrunk against live: all that it
// holds is a change, and a map in it is either merged into a map or taken whole.
func applyShrunk(live, left map[string]any) map[string]any {
	out := make(map[string]any, len(live)+len(left))
	maps.Copy(out, live)
	for key, want := range left {
		switch want := want.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			if have, ok := live[key].(map[string]any); ok {
				out[key] = applyShrunk(have, want)
			} else {
				out[key] = want
			}
		default:
			out[key] = want
		}
	}
	return out
}

// shrinkMap is Shrink for the map that stands under name in its parent ("" for
// the object). With a nil live it yields what merge creates where there is nothing.
func shrinkMap(live, merge map[string]any, name string) map[string]any {
	var left map[string]any
	for key, want := range merge {
		have, exists := live[key]
		keep, changes := shrinkMember(have, exists, want, name, key)
		if !changes {
			continue
		}
		if left == nil {
			left = make(map[string]any)
		}
		left[key] = keep
	}
	return left
}

// shrinkMember decides about one key of the map called name.
func shrinkMember(have any, exists bool, want any, name, key string) (keep any, changes bool) {
	switch want := want.(type) {
	case nil:
		return nil, exists
	case map[string]any:
		return shrinkInto(have, want, len(want) == 0, name, key)
	case ensuredMap:
		return shrinkInto(have, want, true, name, key)
	case wholeMap:
		return shrinkWhole(have, want, name, key)
	}
	v := dropNulls(want)
	if exists && Equal(have, v) || have == nil && emptyMeansAbsent(name, key, v) {
		return nil, false
	}
	return v, true
}

// shrinkInto merges want into what is there. Where that is no map, want makes one:
// if it has something to put in, or if ensure says that there must be one.
func shrinkInto(have any, want map[string]any, ensure bool, name, key string) (any, bool) {
	if live, ok := have.(map[string]any); ok {
		left := shrinkMap(live, want, key)
		return left, left != nil
	}
	made := shrinkMap(nil, want, key)
	if made == nil {
		if !ensure || have == nil && emptyMeansAbsent(name, key, map[string]any{}) {
			return nil, false
		}
		made = map[string]any{}
	}
	return made, true
}

// dropNulls removes null members of maps inside of lists: the API server does so
// with every list that a merge patch brings. Null elements stay. v is not modified.
func dropNulls(v any) any {
	switch v := v.(type) {
	case []any:
		out, copied := v, false
		for i, old := range v {
			now := dropNulls(old)
			if identical(old, now) {
				continue
			}
			if !copied {
				out, copied = slices.Clone(v), true
			}
			out[i] = now
		}
		return out
	case map[string]any:
		out, copied := v, false
		for key, old := range v {
			now := dropNulls(old)
			if old != nil && identical(old, now) {
				continue
			}
			if !copied {
				out, copied = maps.Clone(v), true
			}
			if old == nil {
				delete(out, key)
			} else {
				out[key] = now
			}
		}
		return out
	}
	return v
}

// emptyMeansAbsent reports whether v is an empty collection that the API server
// does not store: it drops these fields of any ObjectMeta when they are empty.
func emptyMeansAbsent(name, key string, v any) bool {
	if name != "metadata" {
		return false
	}
	switch key {
	case "annotations", "labels":
		m, ok := v.(map[string]any)
		return ok && len(m) == 0
	case "finalizers", "ownerReferences":
		l, ok := v.([]any)
		return ok && len(l) == 0
	}
	return false
}

// identical reports whether a container came back from a walk as it went in.
// Scalars always do.
func identical(old, now any) bool {
	switch old := old.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		return ok && sameMap(old, now)
	case []any:
		now, ok := now.([]any)
		return ok && sameList(old, now)
	}
	return true
}

func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func sameList(a, b []any) bool {
	return len(a) == len(b) && (len(a) == 0 && (a == nil) == (b == nil) || len(a) > 0 && &a[0] == &b[0])
}
