package patch

import (
	"errors"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

func FuzzParsePointer(f *testing.F) {
	for _, s := range []string{"", "/", "/a", "/a~1b~0c", "/a~", "/~2", "//", "a", "/\xff", "/a/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePointer(s)
		if err != nil {
			var pe *PointerError
			if !errors.As(err, &pe) || pe.Offset < 0 || pe.Offset > len(s) || errors.Is(err, ErrWholeDocument) != (s == "") {
				t.Fatalf("%q: %#v", s, err)
			}
			return
		}
		if p.String() != s || len(p) != strings.Count(s, "/") {
			t.Fatalf("%q was read as %q", s, p)
		}
		_ = CheckIndexes(p)
		if right, ok := SuspectRawSlash(p); ok {
			q, err := ParsePointer(right)
			if err != nil || len(q) >= len(p) {
				t.Fatalf("%q: suggested %q, %v", s, right, err)
			}
			if again, ok := SuspectRawSlash(q); ok {
				t.Fatalf("%q: suggested %q, then %q", s, right, again)
			}
		}
	})
}

func FuzzParseOps(f *testing.F) {
	for _, s := range []string{
		`[{"op":"add","path":"/a","value":1}]`, `[{"op":"move","path":"/a","from":"/b"}]`, `[{"op":"test","path":"/a~1","value":null}]`,
		`[{"op":"add"}]`, `[{"path":"/a"}]`, `[null]`, `{}`, `[{"op":"remove","path":"","x":1}]`, `[{"op":"add","path":"/a","value":{"b":[1.0,2.5,"\u2028"]}}]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var v any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(s), &v) != nil {
			return
		}
		check := frozen(t, v)
		list, err := ParseOps(v)
		check()
		if err != nil {
			return
		}
		again, err := ParseOps(decode(t, opsText(t, list)))
		if err != nil || opsText(t, again) != opsText(t, list) {
			t.Fatalf("%s was written as %s and read as %v, %v", s, opsText(t, list), again, err)
		}
	})
}

func FuzzApplyOps(f *testing.F) {
	for _, s := range [][2]string{
		{`{"a":[1,2,{"b":null}]}`, `[{"op":"move","path":"/a/0","from":"/a/2"}]`},
		{`{"a":{"b":{}}}`, `[{"op":"copy","path":"/a/b/c","from":"/a"},{"op":"add","path":"/a/b/d","value":[]}]`},
		{`{"a":"<"}`, `[{"op":"test","path":"/a","value":"<"},{"op":"replace","path":"/x","value":3.0}]`},
		{`{"l":[]}`, `[{"op":"add","path":"/l/-","value":{}},{"op":"add","path":"/l/0/x","value":1},{"op":"remove","path":"/l/0/x"}]`},
		{`{"l":[1]}`, `[{"op":"add","path":"/l/-1","value":0}]`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, docText, patchText string) {
		var docValue, patchValue any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(docText), &docValue) != nil ||
			kjson.UnmarshalCaseSensitivePreserveInts([]byte(patchText), &patchValue) != nil {
			return
		}
		doc, ok := docValue.(map[string]any)
		list, err := ParseOps(patchValue)
		if !ok || doc == nil || err != nil {
			return
		}
		check := frozen(t, doc, list)
		compareWithServer(t, doc, list)
		check()
	})
}

func FuzzMerge(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"b":null}}`, `{"a":{"c":{}}}`)
	f.Add(`{"metadata":{"annotations":{"x":"1"}}}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations":{"y":"2"}}}`)
	f.Add(`{"l":[{"a":null}]}`, `{"l":[{"a":null,"b":1}]}`, `{"l":{}}`)
	f.Fuzz(func(t *testing.T, liveText, firstText, secondText string) {
		var v [3]map[string]any
		for i, s := range []string{liveText, firstText, secondText} {
			if kjson.UnmarshalCaseSensitivePreserveInts([]byte(s), &v[i]) != nil {
				return
			}
		}
		live, first, second := v[0], v[1], v[2]
		check := frozen(t, live, first, second)
		composed := ComposeMerge(first, second)
		want := ApplyMerge(live, composed)
		mustAgree(t, live, first, second, ApplyMerge(ApplyMerge(live, first), second), want)
		got, err := ApplyOps(live, MergeToOps(live, composed))
		if live == nil {
			live = map[string]any{}
		}
		if server := serverMerge(t, live, Shrink(live, composed)); err == nil && !Equal(server, want) {
			t.Fatalf("live %s\nshrunk %s\nserver %s\nours %s", text(t, live), text(t, Shrink(live, composed)), text(t, server), text(t, want))
		}
		if err == nil && !Equal(got, want) {
			t.Fatalf("ops: got %s, want %s", text(t, got), text(t, want))
		}
		check()
	})
}
