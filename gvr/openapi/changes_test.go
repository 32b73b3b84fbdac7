package openapi

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/google/go-cmp/cmp"
)

// checkChanges applies the changes with the API server's library and compares.
func checkChanges(t *testing.T, before, after map[string]any) {
	t.Helper()
	changes := Changes(before, after)
	if len(changes) == 0 {
		if !equal(before, after) {
			t.Errorf("no changes, but the values differ")
		}
		return
	}
	if equal(before, after) {
		t.Errorf("changes between equal values: %v", changes)
	}
	type op struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var ops []op
	for _, c := range changes {
		pointer := ""
		for _, token := range c.Path {
			pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
		}
		ops = append(ops, op{c.Op, pointer, c.Value})
	}
	encode := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	patch, err := jsonpatch.DecodePatch(encode(ops))
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Apply(encode(before))
	if err != nil {
		t.Errorf("applying %v: %v", changes, err)
		return
	}
	var gotValue, wantValue any
	if err := json.Unmarshal(got, &gotValue); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encode(after), &wantValue); err != nil {
		t.Fatal(err)
	}
	if !equal(gotValue, wantValue) { // not cmp.Diff: it takes for ever on deeply nested lists
		t.Errorf("applying %v: not the value wanted", changes)
	}
}

func TestChanges(t *testing.T) {
	container := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	tests := []struct {
		name          string
		before, after any
		want          []Change
	}{
		{"equal", int64(3), 3.0, nil},
		{"scalar", int64(3), int64(4), []Change{{"replace", []string{"v"}, int64(4)}}},
		{"to null", "a", nil, []Change{{"replace", []string{"v"}, nil}}},
		{"another type", map[string]any{"a": "b"}, []any{}, []Change{{"replace", []string{"v"}, []any{}}}},
		{"key added and removed", map[string]any{"a": "1"}, map[string]any{"b/c": "2"}, []Change{
			{"remove", []string{"v", "a"}, nil}, {"add", []string{"v", "b/c"}, "2"},
		}},
		{"field of an element", []any{container("a", "1"), container("b", "1")}, []any{container("a", "1"), container("b", "2")},
			[]Change{{"replace", []string{"v", "1", "image"}, "2"}}},
		{"element in front", []any{container("b", "1")}, []any{container("a", "1"), container("b", "1")},
			[]Change{{"add", []string{"v", "0"}, container("a", "1")}}},
		{"elements removed in the middle", []any{"a", "b", "c", "d"}, []any{"a", "d"},
			[]Change{{"remove", []string{"v", "2"}, nil}, {"remove", []string{"v", "1"}, nil}}},
		{"appended", []any{"a"}, []any{"a", "b", "c"},
			[]Change{{"add", []string{"v", "1"}, "b"}, {"add", []string{"v", "2"}, "c"}}},
		{"repeated elements", []any{"a", "a"}, []any{"a", "a", "a"}, []Change{{"add", []string{"v", "2"}, "a"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before, after := map[string]any{"v": test.before}, map[string]any{"v": test.after}
			if diff := cmp.Diff(test.want, Changes(before, after)); diff != "" {
				t.Error(diff)
			}
			checkChanges(t, before, after)
		})
	}
}

func TestChangesOfRandomValues(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 2))
		var value func(depth int) any
		value = func(depth int) any {
			switch n := random.IntN(6); {
			case n == 0 && depth < 4:
				m := map[string]any{}
				for range random.IntN(4) {
					m[[]string{"a", "b", "~/", ""}[random.IntN(4)]] = value(depth + 1)
				}
				return m
			case n <= 2 && depth < 4:
				l := []any{}
				for range random.IntN(5) {
					l = append(l, value(depth+1))
				}
				return l
			case n == 3:
				return nil
			}
			return int64(random.IntN(2))
		}
		checkChanges(t, map[string]any{"v": value(0)}, map[string]any{"v": value(0)})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
