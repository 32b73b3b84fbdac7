package patch

import (
	"testing"
)

func TestShrink(t *testing.T) {
	const live = `{"metadata":{"annotations":{"a/b":"1"},"labels":{"x":"1"}},"spec":{"replicas":3,"list":[{"n":1}],"nothing":null,"s":"x"}}`
	for name, tc := range map[string]struct{ merge, want string }{
		"empty":                              {`{}`, `null`},
		"a value that is so":                 {`{"spec":{"replicas":3}}`, `null`},
		"a number of the other type":         {`{"spec":{"replicas":3.0}}`, `null`},
		"a value that differs":               {`{"spec":{"replicas":4,"list":[{"n":1}]}}`, `{"spec":{"replicas":4}}`},
		"a type that differs":                {`{"spec":{"replicas":"3"}}`, `{"spec":{"replicas":"3"}}`},
		"null for a key":                     {`{"metadata":{"labels":{"x":null,"y":null}}}`, `{"metadata":{"labels":{"x":null}}}`},
		"null for an absent key":             {`{"metadata":{"labels":{"y":null}}}`, `null`},
		"null for a null":                    {`{"spec":{"nothing":null}}`, `{"spec":{"nothing":null}}`},
		"empty annotations on some":          {`{"metadata":{"annotations":{}}}`, `null`},
		"removal below an absent parent":     {`{"spec":{"securityContext":{"privileged":null}}}`, `null`},
		"deep removal below an absent one":   {`{"a":{"b":{"c":null},"d":{"e":null}}}`, `null`},
		"removal below a null":               {`{"spec":{"nothing":{"x":null}}}`, `null`},
		"removal below a string":             {`{"spec":{"s":{"x":null}}}`, `null`},
		"removals beside a new value":        {`{"a":{"b":{"c":null},"d":null,"e":1}}`, `{"a":{"e":1}}`},
		"an explicit empty map creates":      {`{"spec":{"selfSigned":{}}}`, `{"spec":{"selfSigned":{}}}`},
		"an explicit empty map on a string":  {`{"spec":{"s":{}}}`, `{"spec":{"s":{}}}`},
		"a map for a null":                   {`{"spec":{"nothing":{"x":1}}}`, `{"spec":{"nothing":{"x":1}}}`},
		"an empty list is a value":           {`{"spec":{"list":[]}}`, `{"spec":{"list":[]}}`},
		"empty finalizers are none":          {`{"metadata":{"finalizers":[],"ownerReferences":[]}}`, `null`},
		"finalizers elsewhere are a list":    {`{"spec":{"finalizers":[]}}`, `{"spec":{"finalizers":[]}}`},
		"template annotations, empty":        {`{"spec":{"template":{"metadata":{"annotations":{}}}}}`, `null`},
		"null members of maps in lists":      {`{"spec":{"list":[{"n":1,"gone":null}]}}`, `null`},
		"null members in new lists":          {`{"spec":{"new":[null,{"a":{"b":null}},[{"c":null}]]}}`, `{"spec":{"new":[null,{"a":{}},[{}]]}}`},
		"only one of two keys":               {`{"metadata":{"labels":{"x":"1","z":"2"}}}`, `{"metadata":{"labels":{"z":"2"}}}`},
		"false and empty strings are values": {`{"spec":{"f":false,"s":""}}`, `{"spec":{"f":false,"s":""}}`},
	} {
		t.Run(name, func(t *testing.T) {
			l, m := object(t, live), object(t, tc.merge)
			check := frozen(t, l, m)
			got := Shrink(l, m)
			if gotText := orNull(t, got); gotText != tc.want {
				t.Errorf("got  %s\nwant %s", gotText, tc.want)
			}
			if tc.want == `null` && !sameMap(l, ApplyMerge(l, m)) {
				t.Error("ApplyMerge made a copy though nothing changes")
			}
			check()
		})
	}
}

func orNull(t *testing.T, m map[string]any) string {
	if m == nil {
		return `null`
	}
	return text(t, m)
}

func TestEmptyAnnotationsAreANoOpWithAndWithoutAnnotations(t *testing.T) {
	merge := object(t, `{"metadata":{"annotations":{},"labels":{}}}`)
	for _, live := range []string{`{}`, `{"metadata":{}}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{"a":"1"},"labels":{}}}`} {
		if got := Shrink(object(t, live), merge); got != nil {
			t.Errorf("on %s: %v", live, got)
		}
	}
	if got := Shrink(nil, merge); got != nil {
		t.Errorf("on nil: %v", got)
	}
}

func TestNullDeletesOnceAndThenNothing(t *testing.T) { // PAT-13
	merge := object(t, `{"metadata":{"labels":{"a":null,"b":null}}}`)
	once := ApplyMerge(object(t, `{"metadata":{"labels":{"a":"1","b":"2","c":"3"}}}`), merge)
	if got := text(t, once); got != `{"metadata":{"labels":{"c":"3"}}}` {
		t.Errorf("got %s", got)
	}
	if again := Shrink(once, merge); again != nil {
		t.Errorf("a second patch: %v", again)
	}
}

func TestMergeIntoNullAnnotations(t *testing.T) { // PAT-02
	got := ApplyMerge(object(t, `{"metadata":{"annotations":null}}`), object(t, `{"metadata":{"annotations":{"team":"x"}}}`))
	if want := `{"metadata":{"annotations":{"team":"x"}}}`; text(t, got) != want {
		t.Errorf("got %s", text(t, got))
	}
}

// The examples of RFC 7386, appendix A, that have an object on both sides.
func TestApplyMergeExamplesOfTheRFC(t *testing.T) {
	for _, tc := range []struct{ live, merge, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
	} {
		live, merge := object(t, tc.live), object(t, tc.merge)
		check := frozen(t, live, merge)
		if got := text(t, ApplyMerge(live, merge)); got != tc.want {
			t.Errorf("%s with %s: got %s, want %s", tc.live, tc.merge, got, tc.want)
		}
		check()
	}
}

func TestApplyMergeSharesWhatIsUntouched(t *testing.T) {
	live := object(t, `{"metadata":{"labels":{"a":"1"}},"spec":{"replicas":1,"template":{"x":1}}}`)
	got := ApplyMerge(live, object(t, `{"spec":{"replicas":2}}`))
	spec, gotSpec := live["spec"].(map[string]any), got["spec"].(map[string]any)
	if !sameMap(live["metadata"].(map[string]any), got["metadata"].(map[string]any)) ||
		!sameMap(spec["template"].(map[string]any), gotSpec["template"].(map[string]any)) {
		t.Error("an untouched part was copied")
	}
	if sameMap(spec, gotSpec) || sameMap(live, got) {
		t.Error("a changed part is shared")
	}
}

// rounds is how many random cases a property gets; the fuzz targets go further.
const rounds = 5_000

func TestShrinkIsWhatApplyMergeNeeds(t *testing.T) {
	g := newGenerator(1)
	g.nulls = true
	for range rounds {
		live, merge := g.object(3), g.merge(3)
		check := frozen(t, live, merge)
		whole, left := ApplyMerge(live, merge), Shrink(live, merge)
		if !Equal(ApplyMerge(live, left), whole) {
			t.Fatalf("live %s\nmerge %s\nshrunk %s\ngot %s\nwant %s", text(t, live), text(t, merge), text(t, left),
				text(t, ApplyMerge(live, left)), text(t, whole))
		}
		if (left == nil) != Equal(live, whole) {
			t.Fatalf("live %s\nmerge %s: shrunk to %s but the result is %s", text(t, live), text(t, merge), orNull(t, left), text(t, whole))
		}
		if again := Shrink(whole, merge); again != nil {
			t.Fatalf("live %s\nmerge %s does not settle: %s", text(t, live), text(t, merge), text(t, again))
		}
		check()
	}
}

// Every single member that Shrink leaves is needed: without it, the result differs.
func TestShrinkLeavesNothingSuperfluous(t *testing.T) {
	g := newGenerator(2)
	for range rounds / 10 {
		live, merge := g.object(3), g.merge(3)
		left := Shrink(live, merge)
		whole := ApplyMerge(live, left)
		forEachLeaf(left, func(without map[string]any) {
			if Equal(ApplyMerge(live, without), whole) {
				t.Fatalf("live %s\nmerge %s\nshrunk %s\nsuffices %s", text(t, live), text(t, merge), text(t, left), text(t, without))
			}
		}, left)
	}
}

func forEachLeaf(m map[string]any, visit func(map[string]any), root map[string]any) {
	for key, v := range m {
		if sub, ok := v.(map[string]any); ok && len(sub) > 0 {
			forEachLeaf(sub, visit, root)
			continue
		}
		delete(m, key)
		visit(clone(root).(map[string]any))
		m[key] = v
	}
}
