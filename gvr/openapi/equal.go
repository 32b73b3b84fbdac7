package openapi

import (
	"reflect"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

// same reports whether two values are one: the same map, the same list, or equal scalars.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return jsonvalue.Equal(a, b)
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

// unlessEqual returns replacement, or live where that is the same value.
func unlessEqual(live, replacement any) any {
	if jsonvalue.Equal(live, replacement) {
		return live
	}
	return replacement
}
