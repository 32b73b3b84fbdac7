package expression

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A list made from a map is the same each time.
func TestMapsAreIteratedInTheOrderOfTheirKeys(t *testing.T) {
	object := map[string]any{"m": map[string]any{}}
	var want []any
	for _, key := range strings.Split("abcdefghijkl", "") {
		object["m"].(map[string]any)[key] = "v" + key
		want = append(want, key)
	}
	for source, want := range map[string]any{
		"object.m.map(k, k)":                                                                  want,
		"object.?m.orValue({}).filter(k, true)":                                               want,
		"object.m.transformMap(k, v, v).map(k, k)":                                            want, // a map that CEL made
		"object.m.transformList(k, v, k)":                                                     want,
		"{'b': 1, 'a': object.m, 'c': 3}.map(k, k)":                                           []any{"a", "b", "c"},
		"{'b': 1, 'a': 2}.map(k, k)":                                                          []any{"a", "b"},
		"{3: '', 1: '', 'a': '', true: '', 2u: '', false: ''}.map(k, string(k))":              []any{"false", "true", "1", "3", "a", "2"},
		"[object.m].map(m, m.map(k, k))[0]":                                                   want,
		"has(object.x) ? [] : (object.m.exists(k, k == 'l') ? object.m : {}).map(k, k)":       want,
		"object.m.map(k, k == 'c' || k == 'a', k + '!')":                                      []any{"a!", "c!"},
		"object.m.transformMapEntry(k, v, {v: k}).transformList(k, v, v)":                     want,
		"object.m.map(k, k in object.m ? object.m[k] : '').map(v, v.substring(1))":            want,
		"variables.m.map(k, k)":                                                               want,
		"object.m.all(k, object.m[k].startsWith('v')) && object.m.existsOne(k, v, k == 'a')":  true,
		"object.m.map(k, k).size() == object.m.size() && object.m.exists_one(k, k == 'none')": false,
	} {
		for range 5 {
			got, err := eval(t, source, names{"object": object, "variables.m": object["m"]})
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", source, diff)
			}
		}
	}
}
