// Package jsonvalue compares decoded JSON: map[string]any, []any, string, bool,
// int64, float64, nil. What two values are the same is decided here, for
// patches, schemas and manifests alike. Its functions are pure.
package jsonvalue

import (
	"math"
	"reflect"
)

// Equal reports whether two values are the same JSON value. An int64 and a
// float64 are equal if they are the same number exactly (not after rounding).
// NaN equals nothing, nor does a value outside of the JSON shape.
//
// Parts that two values share, as results of this package do with their inputs,
// are recognised without being walked.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case int64:
		switch b := b.(type) {
		case int64:
			return a == b
		case float64:
			return equalNumber(a, b)
		}
	case float64:
		switch b := b.(type) {
		case float64:
			return a == b
		case int64:
			return equalNumber(b, a)
		}
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMaps(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && equalLists(a, b)
	}
	return false
}

func equalMaps(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return true
	}
	for key, av := range a {
		bv, ok := b[key]
		if !ok || !Equal(av, bv) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalNumber(i int64, f float64) bool {
	whole, ok := WholeNumber(f)
	return ok && whole == i
}

// WholeNumber returns f as an int64 if that is the same number. The bounds are
// checked first: Go leaves the conversion of a float64 out of range to the CPU.
func WholeNumber(f float64) (int64, bool) {
	if f < math.MinInt64 || f >= -math.MinInt64 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}
