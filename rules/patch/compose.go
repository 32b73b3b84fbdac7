package patch

// RFC 7386 cannot say everything that two merge patches in a row do: {a: null} and
// then {a: {b: 1}} replaces the whole of a, for which one patch would have to name
// every key that some object may have there. ComposeMerge says it with two types
// of its own, which Shrink resolves against the object, so that what leaves this
// package is plain RFC 7386 again.
type (
	// ensuredMap is merged like a map, and leaves a map even where it finds none
	// and has nothing to put in.
	ensuredMap map[string]any

	// wholeMap replaces whatever is there. It holds values, not a patch.
	wholeMap map[string]any
)

// ComposeMerge returns one merge patch that does to every object what first and
// then second do to it (up to empty annotations, labels, finalizers and
// ownerReferences, which nobody can tell from absent ones). nil means that neither
// does anything.
//
// The result is for Shrink, ApplyMerge, MergeToOps, CheckMerge and ComposeMerge
// again. It may hold values outside of the JSON shape; Shrink turns it into a
// plain patch, and MergeBody refuses it before that. It shares values with both
// arguments, which are not modified.
func ComposeMerge(first, second map[string]any) map[string]any {
	return composeMaps(first, second)
}

func composeMaps(first, second map[string]any) map[string]any {
	if len(second) == 0 {
		return emptyToNil(first)
	}
	if len(first) == 0 {
		return second
	}
	out := make(map[string]any, len(first)+len(second))
	for key, a := range first {
		out[key] = a
	}
	for key, b := range second {
		if a, ok := first[key]; ok {
			out[key] = composeMembers(a, b, key)
		} else {
			out[key] = b
		}
	}
	return out
}

func composeMembers(a, b any, key string) any {
	switch b := b.(type) {
	case map[string]any:
		return composeInto(a, b, len(b) == 0, key)
	case ensuredMap:
		return composeInto(a, b, true, key)
	}
	return b // null, a scalar, a list or a wholeMap does not care what was there
}

// composeInto composes with a second patch that merges into what the first left.
func composeInto(a any, b map[string]any, ensure bool, key string) any {
	switch a := a.(type) {
	case map[string]any:
		creates := len(a) == 0 || shrinkMap(nil, a, key) != nil
		return composeBoth(a, b, creates || ensure, key)
	case ensuredMap:
		return composeBoth(a, b, true, key)
	case wholeMap:
		return wholeMap(applyMerge(a, b, key))
	}
	// The first patch left no map: what b makes is all there is, if it makes one.
	made := shrinkMap(nil, b, key)
	if made == nil && !ensure {
		return a
	}
	return wholeMap(made)
}

func composeBoth(a, b map[string]any, ensure bool, key string) any {
	both := composeMaps(a, b)
	if both == nil {
		return map[string]any{}
	}
	if ensure && shrinkMap(nil, both, key) == nil {
		return ensuredMap(both)
	}
	return both // it creates by itself, or need not
}

// shrinkWhole says "nothing but want" in words of RFC 7386: the keys that have to
// go are named, one by one.
func shrinkWhole(have any, want map[string]any, name, key string) (any, bool) {
	if live, ok := have.(map[string]any); ok {
		left := replaceAll(live, want)
		return left, left != nil
	}
	if len(want) == 0 {
		return map[string]any{}, have != nil || !emptyMeansAbsent(name, key, map[string]any{})
	}
	return map[string]any(want), true
}

func replaceAll(live, want map[string]any) map[string]any {
	left := map[string]any{}
	for key := range live {
		if _, ok := want[key]; !ok {
			left[key] = nil
		}
	}
	for key, v := range want {
		have, exists := live[key]
		haveMap, ok1 := have.(map[string]any)
		wantMap, ok2 := v.(map[string]any)
		switch {
		case ok1 && ok2:
			if sub := replaceAll(haveMap, wantMap); sub != nil {
				left[key] = sub
			}
		case !exists || !Equal(have, v):
			left[key] = v
		}
	}
	return emptyToNil(left)
}

func emptyToNil(m map[string]any) map[string]any {
	if len(m) == 0 {
		return nil
	}
	return m
}
