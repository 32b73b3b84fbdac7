package patch

import (
	"testing"
)

// canonical drops empty collections that the API server does not store.
func canonical(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			if c := canonical(e, key); !emptyMeansAbsent(name, key, c) {
				out[key] = c
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = canonical(e, "")
		}
		return out
	}
	return v
}

func TestComposeMergeDoesWhatBothDoInARow(t *testing.T) {
	for name, tc := range map[string]struct{ live, first, second, want string }{
		"different keys":                  {`{}`, `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		"the second wins":                 {`{}`, `{"a":1}`, `{"a":2}`, `{"a":2}`},
		"set and unset":                   {`{"a":0}`, `{"a":1}`, `{"a":null}`, `{}`},
		"removed and built anew":          {`{"a":{"x":1,"y":2}}`, `{"a":null}`, `{"a":{"y":3}}`, `{"a":{"y":3}}`},
		"replaced by a list, then a map":  {`{"a":{"x":1}}`, `{"a":[1]}`, `{"a":{"y":3}}`, `{"a":{"y":3}}`},
		"removed, then a key removed":     {`{"a":{"x":1}}`, `{"a":null}`, `{"a":{"x":null}}`, `{}`},
		"a scalar, then a key removed":    {`{"a":{"x":1}}`, `{"a":5}`, `{"a":{"x":null}}`, `{"a":5}`},
		"made, then emptied":              {`{}`, `{"a":{"x":1}}`, `{"a":{"x":null}}`, `{"a":{}}`},
		"made empty, then a key removed":  {`{}`, `{"a":{}}`, `{"a":{"x":null}}`, `{"a":{}}`},
		"a key removed, then made empty":  {`{}`, `{"a":{"x":null}}`, `{"a":{}}`, `{"a":{}}`},
		"deep":                            {`{"a":{"b":{"k":1}}}`, `{"a":{"b":null,"c":1}}`, `{"a":{"b":{"n":1}}}`, `{"a":{"b":{"n":1},"c":1}}`},
		"whole, emptied key by key":       {`{"a":{"x":1,"y":1}}`, `{"a":null}`, `{"a":{"z":{}}}`, `{"a":{"z":{}}}`},
		"explicitly empty after a delete": {`{"a":{"x":1}}`, `{"a":null}`, `{"a":{}}`, `{"a":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			live, first, second := object(t, tc.live), object(t, tc.first), object(t, tc.second)
			check := frozen(t, live, first, second)
			if got := text(t, ApplyMerge(ApplyMerge(live, first), second)); got != tc.want {
				t.Fatalf("in a row: %s, want %s", got, tc.want)
			}
			composed := ComposeMerge(first, second)
			if got := text(t, ApplyMerge(live, composed)); got != tc.want {
				t.Errorf("composed: %s, want %s", got, tc.want)
			}
			check()
		})
	}
}

func TestComposeMergeOfNothingIsNothing(t *testing.T) {
	if got := ComposeMerge(nil, map[string]any{}); got != nil {
		t.Errorf("got %v", got)
	}
}

// A rule that sets a value and one that sets it back: nothing is to be sent.
func TestComposeMergeShrinksToTheNetChange(t *testing.T) {
	live := object(t, `{"spec":{"replicas":3,"paused":false}}`)
	composed := ComposeMerge(object(t, `{"spec":{"replicas":5,"paused":true}}`), object(t, `{"spec":{"replicas":3}}`))
	if got := text(t, Shrink(live, composed)); got != `{"spec":{"paused":true}}` {
		t.Errorf("got %s", got)
	}
}

func TestComposeMergeLaw(t *testing.T) {
	g := newGenerator(3)
	for range rounds {
		live, first, second, third := g.object(3), g.merge(3), g.merge(3), g.merge(3)
		check := frozen(t, live, first, second, third)
		step := ApplyMerge(ApplyMerge(live, first), second)
		two := ComposeMerge(first, second)
		mustAgree(t, live, first, second, step, ApplyMerge(live, two))

		step = ApplyMerge(step, third)
		mustAgree(t, live, first, second, step, ApplyMerge(live, ComposeMerge(two, third)))
		mustAgree(t, live, first, second, step, ApplyMerge(live, ComposeMerge(first, ComposeMerge(second, third))))

		left := Shrink(live, two) // plain RFC 7386 again: it can be written
		if got, err := Normalize(map[string]any(left)); err != nil {
			t.Fatalf("Shrink left something that is not JSON: %v %v", got, err)
		}
		check()
	}
}

func mustAgree(t *testing.T, live, first, second, want, got map[string]any) {
	t.Helper()
	if !Equal(canonical(want, ""), canonical(got, "")) {
		t.Fatalf("live   %s\nfirst  %s\nsecond %s\nwant %s\ngot  %s", text(t, live), text(t, first), text(t, second), text(t, want), text(t, got))
	}
}
