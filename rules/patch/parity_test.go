package patch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"
)

// This file holds ApplyMerge, ApplyOps and the bytes that are sent to what
// kube-apiserver does with them: its library, on bytes, as it calls it.

var errPanic = errors.New("the library panicked")

// serverOps applies operations as the API server does.
func serverOps(t testing.TB, doc map[string]any, list []Op) (result any, err error) {
	t.Helper()
	body := opsText(t, list)
	p, err := jsonpatch.DecodePatch([]byte(body))
	if err != nil {
		t.Fatalf("the library does not read %s: %v", body, err)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	out, err := p.Apply([]byte(text(t, doc)))
	if err != nil {
		return nil, err
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(out, &result)
	return result, err
}

// opsText writes operations, those that MarshalJSON refuses included.
func opsText(t testing.TB, list []Op) string {
	t.Helper()
	parts := make([]string, len(list))
	for i, op := range list {
		e := encoder{limit: 1 << 30}
		if err := e.op(op); err != nil {
			t.Fatalf("write %+v: %v", op, err)
		}
		parts[i] = string(e.buf)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// serverMerge applies a merge patch as the API server does.
func serverMerge(t testing.TB, doc, merge map[string]any) any {
	t.Helper()
	if merge == nil {
		return doc
	}
	out, err := jsonpatch.MergePatch([]byte(text(t, doc)), []byte(text(t, merge)))
	if err != nil {
		t.Fatalf("the library does not merge %s: %v", text(t, merge), err)
	}
	return decode(t, string(out))
}

func TestTheServerMakesOfAShrunkMergeWhatApplyMergeMakes(t *testing.T) {
	g := newGenerator(6)
	g.nulls = true
	for range rounds {
		live, merge := g.object(3), g.merge(3)
		if g.IntN(2) == 0 {
			merge = ComposeMerge(merge, g.merge(3))
		}
		want := ApplyMerge(live, merge)
		left := Shrink(live, merge)
		if got := serverMerge(t, live, left); !Equal(got, want) {
			t.Fatalf("live %s\nshrunk %s\nserver %s\nours   %s", text(t, live), text(t, left), text(t, got), text(t, want))
		}
	}
}

// Without Shrink, the server and ApplyMerge may differ only in what the package
// comment says: empty maps that nobody asked for. (The server's library drops null
// members in lists, but not where a list takes the place of a map; we always do.)
func TestTheServerMakesOfARawMergeWhatApplyMergeMakes(t *testing.T) {
	g := newGenerator(7)
	for range rounds {
		live, merge := g.object(3), g.merge(3)
		want, got := ApplyMerge(live, merge), dropNulls(serverMerge(t, live, merge))
		if !Equal(dropEmpty(got), dropEmpty(want)) && !mergesRemovalsIntoScalars(live, merge) {
			t.Fatalf("live %s\nmerge  %s\nserver %s\nours   %s", text(t, live), text(t, merge), text(t, got), text(t, want))
		}
	}
}

// dropEmpty removes empty maps and metadata lists from maps, deeply.
func dropEmpty(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for key, e := range m {
		e = dropEmpty(e)
		if sub, ok := e.(map[string]any); ok && len(sub) == 0 || emptyMeansAbsent("metadata", key, e) {
			continue
		}
		out[key] = e
	}
	return out
}

// mergesRemovalsIntoScalars finds {a: {b: null}} for a value a that is no map: the
// RFC makes an empty map of it, ApplyMerge leaves it alone.
func mergesRemovalsIntoScalars(live, merge map[string]any) bool {
	for key, want := range merge {
		wantMap, ok := want.(map[string]any)
		if !ok {
			continue
		}
		have, exists := live[key]
		haveMap, isMap := have.(map[string]any)
		if exists && !isMap && shrinkMap(nil, wantMap, key) == nil || mergesRemovalsIntoScalars(haveMap, wantMap) {
			return true
		}
	}
	return false
}

func TestApplyOpsDoesWhatTheServerDoes(t *testing.T) {
	g := newGenerator(8)
	applied := 0
	for i := range rounds * 2 {
		g.nulls = i%4 == 0
		doc := g.object(3)
		list := g.ops(doc)
		check := frozen(t, doc, list)
		if compareWithServer(t, doc, list) {
			applied++
		}
		check()
	}
	if applied < rounds/4 {
		t.Errorf("only %d patches applied: the generator makes too few that fit", applied)
	}
}

// compareWithServer reports whether the patch applied.
func compareWithServer(t testing.TB, doc map[string]any, list []Op) bool {
	t.Helper()
	ours, err := ApplyOps(doc, list)
	theirs, serverErr := serverOps(t, doc, list)
	where := fmt.Sprintf("doc    %s\npatch  %s", text(t, doc), opsText(t, list))
	switch {
	case err == nil && serverErr == nil:
		if !Equal(ours, theirs) {
			t.Fatalf("%s\nserver %s\nours   %s", where, text(t, theirs), text(t, ours))
		}
	case err == nil && !weTakeMore(doc, list, serverErr):
		t.Fatalf("%s\nours   %s\nserver refuses: %v", where, text(t, ours), serverErr)
	case serverErr == nil && !weTakeLess(err):
		t.Fatalf("%s\nserver %s\nwe refuse: %v", where, text(t, theirs), err)
	}
	return err == nil
}

// weTakeLess lists what the server's library accepts and ApplyOps refuses.
func weTakeLess(err error) bool {
	var op *OpError
	var index *IndexError
	switch {
	case errors.As(err, &index): // "-1", "01", "+1"
		token := index.Path[len(index.Path)-1]
		return strings.HasPrefix(token, "-") && token != "-" || strings.HasPrefix(token, "0") || strings.HasPrefix(token, "+")
	case errors.Is(err, ErrNotApplicable) && errors.As(err, &op):
		return op.Member == "from" // a copy of what is absent writes null there
	case errors.As(err, &op):
		return strings.Contains(op.Err.Error(), "into itself") // /l/0 to /l/0/x: into the next element there
	}
	return false
}

// weTakeMore lists what makes the server's library fail and not ApplyOps: it cannot
// compare values that hold null (and panics on some), nor go on below a null that
// the patch itself has put there.
func weTakeMore(doc map[string]any, list []Op, serverErr error) bool {
	hasNull := holdsNull(doc)
	for _, op := range list {
		hasNull = hasNull || op.HasValue && holdsNull(op.Value)
	}
	return hasNull && (errors.Is(serverErr, errPanic) || errors.Is(serverErr, jsonpatch.ErrTestFailed))
}

func holdsNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, e := range v {
			if holdsNull(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if holdsNull(e) {
				return true
			}
		}
	}
	return false
}

// The table is what the random comparison might miss, and what the docs promise.
func TestApplyOpsAgreesWithTheServerOn(t *testing.T) {
	for name, tc := range map[string]struct{ doc, patch string }{
		"replace of an absent key":  {`{"metadata":{}}`, `[{"op":"replace","path":"/metadata/x","value":"v"}]`},
		"test for absence":          {`{"metadata":{}}`, `[{"op":"test","path":"/metadata/x","value":null},{"op":"add","path":"/metadata/x","value":1}]`},
		"test for absence, present": {`{"metadata":{"x":5}}`, `[{"op":"test","path":"/metadata/x","value":null},{"op":"add","path":"/metadata/x","value":1}]`},
		"test for absence, null":    {`{"metadata":{"x":null}}`, `[{"op":"test","path":"/metadata/x","value":null}]`},
		"escapes":                   {`{"m":{"a~1b":1,"a/b":2}}`, `[{"op":"replace","path":"/m/a~01b","value":3},{"op":"remove","path":"/m/a~1b"}]`},
		"a missing parent":          {`{"metadata":{"name":"a"}}`, `[{"op":"add","path":"/metadata/annotations/team","value":"x"}]`},
		"a null parent":             {`{"metadata":{"annotations":null}}`, `[{"op":"add","path":"/metadata/annotations/team","value":"x"}]`},
		"the first of two ops":      {`{"a":1}`, `[{"op":"replace","path":"/a","value":2},{"op":"add","path":"/b/c","value":1}]`},
		"a huge index":              {`{"a":[]}`, `[{"op":"add","path":"/a/60000/b","value":1}]`},
		"a number for a key":        {`{"metadata":{"annotations":{}}}`, `[{"op":"add","path":"/metadata/annotations/0","value":"x"}]`},
		"test of a string with <":   {`{"a":"<x>&"}`, `[{"op":"test","path":"/a","value":"<x>&"}]`},
		"test of a whole double":    {`{"a":2}`, `[{"op":"test","path":"/a","value":2.0}]`},
		"test of a big integer":     {`{"a":9007199254740993}`, `[{"op":"test","path":"/a","value":9007199254740993}]`},
		"test of a near integer":    {`{"a":9007199254740993}`, `[{"op":"test","path":"/a","value":9007199254740992}]`},
		"test of a fraction":        {`{"a":1e-7}`, `[{"op":"test","path":"/a","value":0.0000001}]`},
		"an empty patch":            {`{"a":1}`, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			doc, list := object(t, tc.doc), ops(t, tc.patch)
			_, err := ApplyOps(doc, list)
			_, serverErr := serverOps(t, doc, list)
			if (err == nil) != (serverErr == nil) {
				t.Fatalf("ours: %v, server: %v", err, serverErr)
			}
			compareWithServer(t, doc, list)
		})
	}
}

// The copy limit is measured in the same bytes.
func TestCopiesAreMeasuredAsTheServerDoes(t *testing.T) {
	defer func(old int64) { jsonpatch.AccumulatedCopySizeLimit = old }(jsonpatch.AccumulatedCopySizeLimit)
	jsonpatch.AccumulatedCopySizeLimit = MaxCopyBytes
	for _, size := range []int{MaxCopyBytes - 2, MaxCopyBytes - 1} { // with its quotes: the limit, and one more
		doc := map[string]any{"a": strings.Repeat("x", size)}
		list := ops(t, `[{"op":"copy","from":"/a","path":"/b"}]`)
		_, err := ApplyOps(doc, list)
		_, serverErr := serverOps(t, doc, list)
		if (err == nil) != (serverErr == nil) || (err == nil) != (size == MaxCopyBytes-2) {
			t.Errorf("%d bytes: ours %v, server %v", size, err, serverErr)
		}
	}
}

// The bytes that are sent do at the server what was decided here.
func TestBodiesDoWhatWasDecided(t *testing.T) {
	g := newGenerator(9)
	sent := 0
	for range rounds / 4 {
		live, merge := g.object(3), g.merge(3)
		delete(merge, "metadata")
		live["metadata"] = map[string]any{"uid": "u", "resourceVersion": "7"}
		left := Shrink(live, merge)
		body, err := MergeBody(left, "u", "7")
		if err != nil {
			t.Fatal(err)
		}
		want := ApplyMerge(live, merge)
		if got := serverMerge(t, live, object(t, string(body))); !Equal(got, want) {
			t.Fatalf("live %s\nbody %s\nserver %s\nours %s", text(t, live), body, text(t, got), text(t, want))
		}
		body, err = OpsBody(MergeToOps(live, merge), "u", "7")
		if err != nil {
			t.Fatal(err)
		}
		p, err := jsonpatch.DecodePatch(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		out, err := p.Apply([]byte(text(t, live)))
		if err != nil || !Equal(decode(t, string(out)), want) {
			t.Fatalf("live %s\nbody %s\nserver %s %v\nours %s", text(t, live), body, out, err, text(t, want))
		}
		sent++
	}
	if sent == 0 {
		t.Error("nothing was sent")
	}
}
