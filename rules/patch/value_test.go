package patch

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNormalizeTurnsWholeDoublesIntoIntegers(t *testing.T) {
	in := map[string]any{
		"whole": 3.0, "minus zero": math.Copysign(0, -1), "fraction": 2.5, "huge": 1e300, "2^63": float64(1 << 63),
		"list": []any{1.0, "x", nil, []any{2.0}}, "kept": map[string]any{"b": true}, "nil map": map[string]any(nil), "nil list": []any(nil),
	}
	check := frozen(t, in)
	got, err := Normalize(in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"whole": int64(3), "minus zero": int64(0), "fraction": 2.5, "huge": 1e300, "2^63": float64(1 << 63),
		"list": []any{int64(1), "x", nil, []any{int64(2)}}, "kept": map[string]any{"b": true}, "nil map": map[string]any{}, "nil list": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	check()
}

func TestNormalizeReturnsTheSameValueIfNothingChanges(t *testing.T) {
	in := map[string]any{"a": []any{map[string]any{"b": int64(1)}, []any{}}, "f": 2.5}
	got, err := Normalize(in)
	if err != nil || !sameMap(in, got.(map[string]any)) {
		t.Errorf("a copy was made (err %v)", err)
	}
}

func TestNormalizeRefuses(t *testing.T) {
	cycle := map[string]any{}
	cycle["in"] = cycle
	for name, tc := range map[string]struct {
		in   any
		path string
	}{
		"a Go int":            {map[string]any{"spec": map[string]any{"replicas": 3}}, "/spec/replicas"},
		"a map of strings":    {map[string]any{"labels": map[string]string{}}, "/labels"},
		"a typed list":        {[]any{int64(1), []string{"x"}}, "/1"},
		"NaN":                 {map[string]any{"a": math.NaN()}, "/a"},
		"infinity":            {math.Inf(-1), ""},
		"bad UTF-8":           {[]any{"\xff"}, "/0"},
		"bad UTF-8 in a key":  {[]any{map[string]any{"\xff": nil}}, "/0"},
		"a pointer":           {new(int), ""},
		"a composed map type": {wholeMap{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Normalize(tc.in)
			var ve *ValueError
			if !errors.As(err, &ve) || ve.Path.String() != tc.path {
				t.Errorf("got %v, want a ValueError at %q", err, tc.path)
			}
		})
	}
	if _, err := Normalize(cycle); err == nil {
		t.Error("a map inside itself was accepted")
	}
}
