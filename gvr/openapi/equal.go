package openapi

import "reflect"

// same reports whether two values are one: the same map, the same list, or equal scalars.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return equalNumber(a, b)
		}
		return false
	case float64:
		switch b := b.(type) {
		case float64:
			return a == b
		case int64:
			return equalNumber(b, a)
		}
		return false
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return false // not a JSON type
}

func equalNumber(i int64, f float64) bool {
	whole, ok := wholeNumber(f)
	return ok && whole == i
}

func sameItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}

// equal reports whether two values are the same JSON value. What they share is not walked.
func equal(a, b any) bool {
	if same(a, b) {
		return true
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, av := range a {
			if bv, ok := b[key]; !ok || !equal(av, bv) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// unlessEqual returns replacement, or live where that is the same value.
func unlessEqual(live, replacement any) any {
	if equal(live, replacement) {
		return live
	}
	return replacement
}
