package patch

import (
	"math"
	"testing"
)

func TestEqual(t *testing.T) {
	m := map[string]any{"a": []any{int64(1)}}
	for name, tc := range map[string]struct {
		a, b any
		want bool
	}{
		"int and whole double":              {int64(3), 3.0, true},
		"int and fraction":                  {int64(3), 3.5, false},
		"int beyond 2^53 is not rounded":    {int64(9007199254740993), float64(9007199254740992), false},
		"max int64 is not 2^63":             {int64(math.MaxInt64), float64(1 << 63), false},
		"min int64 is -2^63":                {int64(math.MinInt64), -float64(1 << 63), true},
		"big doubles":                       {1e300, 1e300, true},
		"number and string":                 {int64(3), "3", false},
		"null and absent":                   {map[string]any{"a": nil}, map[string]any{}, false},
		"null and false":                    {nil, false, false},
		"other key":                         {map[string]any{"a": int64(1)}, map[string]any{"b": int64(1)}, false},
		"nested numbers":                    {map[string]any{"a": []any{int64(1)}}, map[string]any{"a": []any{1.0}}, true},
		"list order counts":                 {[]any{"a", "b"}, []any{"b", "a"}, false},
		"list length counts":                {[]any{"a"}, []any{"a", "b"}, false},
		"map and list":                      {map[string]any{}, []any{}, false},
		"nil map is empty":                  {map[string]any(nil), map[string]any{}, true},
		"the same map":                      {m, m, true},
		"a Go int equals nothing":           {3, 3, false},
		"an uncomparable type does no harm": {map[string]string{}, map[string]string{}, false},
		"NaN equals nothing":                {math.NaN(), math.NaN(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("Equal(%v, %v) = %v", tc.a, tc.b, got)
			}
			if got := Equal(tc.b, tc.a); got != tc.want {
				t.Errorf("Equal is not symmetric for %v, %v", tc.a, tc.b)
			}
		})
	}
}
