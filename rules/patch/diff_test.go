package patch

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffUsesTheSmallestPaths(t *testing.T) {
	list := func(v ...any) []any { return v }
	for _, tc := range []struct {
		name          string
		before, after map[string]any
		want          []string
	}{
		{"nothing", map[string]any{"a": int64(3)}, map[string]any{"a": 3.0}, nil},
		{"a field below", map[string]any{"a": map[string]any{"b": "1", "c": "2"}}, map[string]any{"a": map[string]any{"b": "1", "c": "3"}}, []string{"replace /a/c"}},
		{"added and removed", map[string]any{"a": "1"}, map[string]any{"b": nil}, []string{"remove /a", "add /b"}},
		{"an element in the middle", map[string]any{"l": list("a", "b", "c")}, map[string]any{"l": list("a", "x", "c")}, []string{"replace /l/1"}},
		{"an element inserted", map[string]any{"l": list("a", "c")}, map[string]any{"l": list("a", "b", "c")}, []string{"add /l/1"}},
		{"elements removed", map[string]any{"l": list("a", "b", "c", "d")}, map[string]any{"l": list("a", "d")}, []string{"remove /l/2", "remove /l/1"}},
		{"a key with a slash", map[string]any{}, map[string]any{"a/b": "1"}, []string{"add /a~1b"}},
		{"another type", map[string]any{"a": list()}, map[string]any{"a": map[string]any{}}, []string{"replace /a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, op := range Diff(tc.before, tc.after) {
				got = append(got, op.Op+" "+op.Path.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiffMakesAfterOfBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		before, after := randomDoc(r, 3), randomDoc(r, 3)
		got, err := ApplyOps(before, Diff(before, after))
		if err != nil {
			t.Fatalf("%v -> %v: %v", before, after, err)
		}
		if !Equal(got, after) {
			t.Fatalf("%v -> %v gives %v", before, after, got)
		}
	}
}

func randomDoc(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for _, k := range []string{"a", "b", "c/d"}[:r.IntN(4)] {
		m[k] = randomValue(r, depth)
	}
	return m
}

func randomValue(r *rand.Rand, depth int) any {
	if depth > 0 {
		switch r.IntN(4) {
		case 0:
			return randomDoc(r, depth-1)
		case 1:
			l := make([]any, r.IntN(5))
			for i := range l {
				l[i] = randomValue(r, depth-1)
			}
			return l
		}
	}
	return []any{"x", "y", int64(1), int64(2), true, nil}[r.IntN(6)]
}
