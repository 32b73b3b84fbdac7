package patch

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ops parses a JSON patch that the test knows to be good.
func ops(t testing.TB, s string) []Op {
	t.Helper()
	out, err := ParseOps(decode(t, s))
	if err != nil {
		t.Fatalf("bad patch in the test: %v: %s", err, s)
	}
	return out
}

func TestParseOps(t *testing.T) {
	got := ops(t, `[{"op":"add","path":"/a","value":3.0},{"op":"test","path":"/b~1c","value":null},
		{"op":"move","from":"/x","path":"/y"},{"op":"copy","from":"/x","path":"/y"},{"op":"remove","path":"/z"},{"op":"replace","path":"/z","value":{}}]`)
	want := []Op{
		{Op: "add", Path: Pointer{"a"}, Value: int64(3), HasValue: true},
		{Op: "test", Path: Pointer{"b/c"}, HasValue: true},
		{Op: "move", Path: Pointer{"y"}, From: Pointer{"x"}},
		{Op: "copy", Path: Pointer{"y"}, From: Pointer{"x"}},
		{Op: "remove", Path: Pointer{"z"}},
		{Op: "replace", Path: Pointer{"z"}, Value: map[string]any{}, HasValue: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := ParseOps([]any{}); err != nil || len(got) != 0 {
		t.Errorf("an empty patch: %v, %v", got, err)
	}
}

func TestParseOpsRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		patch, member string
	}{
		"an unknown operation":     {`{"op":"merge","path":"/a","value":1}`, "op"},
		"an operation in capitals": {`{"op":"Add","path":"/a","value":1}`, "op"},
		"no operation":             {`{"path":"/a","value":1}`, "op"},
		"no path":                  {`{"op":"remove"}`, "path"},
		"a path that is no string": {`{"op":"remove","path":1}`, "path"},
		"the whole document":       {`{"op":"replace","path":"","value":{}}`, "path"},
		"a bad path":               {`{"op":"remove","path":"/a~2"}`, "path"},
		"a bad from":               {`{"op":"move","path":"/a","from":"b"}`, "from"},
		"a from of everything":     {`{"op":"copy","path":"/a","from":""}`, "from"},
		"no from":                  {`{"op":"move","path":"/a"}`, "from"},
		"no value":                 {`{"op":"test","path":"/a"}`, "value"},
		"a value for a remove":     {`{"op":"remove","path":"/a","value":1}`, "value"},
		"a from for an add":        {`{"op":"add","path":"/a","from":"/b","value":1}`, "from"},
		"a misspelt member":        {`{"op":"add","path":"/a","vaule":1}`, "vaule"},
		"a move into itself":       {`{"op":"move","from":"/a","path":"/a/b"}`, "path"},
		"something else":           {`"remove"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			good := `{"op":"remove","path":"/a"}`
			_, err := ParseOps(decode(t, "["+good+","+tc.patch+"]"))
			var oe *OpError
			if !errors.As(err, &oe) || oe.Index != 1 || oe.Member != tc.member {
				t.Errorf("got %v, want an OpError for [1].%s", err, tc.member)
			}
		})
	}
	if _, err := ParseOps(map[string]any{}); err == nil {
		t.Error("a map was taken for a patch")
	}
	if _, err := ParseOps([]any{map[string]any{"op": "add", "path": "/a", "value": 3}}); err == nil {
		t.Error("a Go int was taken for a value")
	}
	if _, err := ParseOps(make([]any, MaxOps+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d operations: %v", MaxOps+1, err)
	}
}

func TestOpErrorsHaveAWholeDocumentCause(t *testing.T) {
	_, err := ParseOps(decode(t, `[{"op":"replace","path":"","value":{}}]`))
	if !errors.Is(err, ErrWholeDocument) {
		t.Errorf("got %v", err)
	}
}

func TestMarshalKeepsNullValues(t *testing.T) { // PAT-07
	got, err := json.Marshal(ops(t, `[{"op":"test","path":"/metadata/x","value":null},{"op":"move","path":"/a~1b","from":"/c~0d"},{"op":"remove","path":"/<"}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"test","path":"/metadata/x","value":null},{"op":"move","path":"/a~1b","from":"/c~0d"},{"op":"remove","path":"/\u003c"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMarshalRefusesAnInvalidOp(t *testing.T) {
	for _, op := range []Op{{Op: "add", Path: Pointer{"a"}}, {Op: "remove"}, {}, {Op: "add", Path: Pointer{"a"}, Value: 3, HasValue: true}} {
		if b, err := json.Marshal(op); err == nil {
			t.Errorf("%+v was written: %s", op, b)
		}
	}
}

func TestMergeToOps(t *testing.T) {
	for name, tc := range map[string]struct{ live, merge, want string }{
		"replace, add and remove": {
			`{"a":1,"b":2}`, `{"c":3,"b":null,"a":0}`,
			`[{"op":"replace","path":"/a","value":0},{"op":"remove","path":"/b"},{"op":"add","path":"/c","value":3}]`},
		"the smallest path":           {`{"s":{"t":{"x":1,"y":1}}}`, `{"s":{"t":{"x":2,"y":1}}}`, `[{"op":"replace","path":"/s/t/x","value":2}]`},
		"an absent parent, with null": {`{}`, `{"m":{"a":{"k":"1","gone":null}}}`, `[{"op":"add","path":"/m","value":{"a":{"k":"1"}}}]`},
		"a null parent":               {`{"m":null}`, `{"m":{"k":"1"}}`, `[{"op":"replace","path":"/m","value":{"k":"1"}}]`},
		"a slash in a key":            {`{"m":{}}`, `{"m":{"e.io/x~y":"1"}}`, `[{"op":"add","path":"/m/e.io~1x~0y","value":"1"}]`},
		"a list is replaced whole":    {`{"l":[1,2]}`, `{"l":[1,3]}`, `[{"op":"replace","path":"/l","value":[1,3]}]`},
		"nothing":                     {`{"a":1}`, `{"a":1,"b":null}`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			live, merge := object(t, tc.live), object(t, tc.merge)
			check := frozen(t, live, merge)
			got, err := json.Marshal(MergeToOps(live, merge))
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tc.want)
			}
			check()
		})
	}
}

func TestMergeToOpsDoesWhatTheMergeDoes(t *testing.T) {
	g := newGenerator(4)
	g.nulls = true
	for range rounds {
		live, merge := g.object(3), g.merge(3)
		if g.IntN(2) == 0 {
			merge = ComposeMerge(merge, g.merge(3))
		}
		check := frozen(t, live)
		want := ApplyMerge(live, merge)
		list := MergeToOps(live, merge)
		got, err := ApplyOps(live, list)
		if err != nil || !Equal(got, want) {
			b, _ := json.Marshal(list)
			t.Fatalf("live %s\nshrunk %s\nops %s\ngot %v %v\nwant %s", text(t, live), orNull(t, Shrink(live, merge)), b, got, err, text(t, want))
		}
		check()
	}
}

func TestErrorsDoNotTellValues(t *testing.T) {
	doc := object(t, `{"data":{"password":"hunter2","list":["hunter2"]}}`)
	for _, s := range []string{
		`[{"op":"test","path":"/data/password","value":"hunter2x"}]`,
		`[{"op":"add","path":"/data/password/x","value":"hunter2"}]`,
		`[{"op":"add","path":"/data/list/7","value":"hunter2"}]`,
		`[{"op":"add","path":"/nowhere/x","value":"hunter2"}]`,
	} {
		_, err := ApplyOps(doc, ops(t, s))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", s, err)
		}
	}
}
