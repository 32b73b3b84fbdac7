package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestMergeBodyAddsTheGuards(t *testing.T) {
	for merge, want := range map[string]string{
		`{"spec":{"replicas":5}}`:                           `{"metadata":{"resourceVersion":"7","uid":"u-1"},"spec":{"replicas":5}}`,
		`{"metadata":{"labels":{"b":"2","a":null},"zz":1}}`: `{"metadata":{"labels":{"a":null,"b":"2"},"resourceVersion":"7","uid":"u-1","zz":1}}`,
	} {
		m := object(t, merge)
		check := frozen(t, m)
		got, err := MergeBody(m, "u-1", "7")
		if err != nil || string(got) != want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, want)
		}
		check()
	}
}

func TestOpsBodyPutsTheGuardsFirst(t *testing.T) {
	list := ops(t, `[{"op":"replace","path":"/spec/x","value":null}]`)
	got, err := OpsBody(list, "u-1", "7")
	want := `[{"op":"add","path":"/metadata/uid","value":"u-1"},{"op":"add","path":"/metadata/resourceVersion","value":"7"},` +
		`{"op":"replace","path":"/spec/x","value":null}]`
	if err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

func TestBodiesWriteNumbersAsKubernetesReadsThem(t *testing.T) { // NUM-10
	for _, tc := range []struct {
		in   any
		want string
	}{
		{3.0, "3"}, {math.Copysign(0, -1), "0"}, {2.5, "2.5"}, {1e18, "1000000000000000000"},
		{int64(math.MaxInt64), "9223372036854775807"}, {int64(9007199254740993), "9007199254740993"}, {1e-7, "1e-7"}, {1e300, "1e+300"},
	} {
		got, err := MergeBody(map[string]any{"n": tc.in}, "u", "7")
		want := `{"metadata":{"resourceVersion":"7","uid":"u"},"n":` + tc.want + `}`
		if err != nil || string(got) != want {
			t.Errorf("%v: got %s (%v), want %s", tc.in, got, err, want)
		}
		got, err = OpsBody([]Op{{Op: "add", Path: Pointer{"n"}, Value: tc.in, HasValue: true}}, "u", "7")
		if err != nil || !strings.Contains(string(got), `"value":`+tc.want+`}]`) {
			t.Errorf("%v: got %s (%v)", tc.in, got, err)
		}
	}
}

func TestBodiesAreAsEncodingJSONWritesThem(t *testing.T) {
	g := newGenerator(10)
	g.nulls = true
	for range rounds / 4 {
		v := g.object(4)
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, v); got != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	for r := range rune(0x2100) {
		s := "a" + string(r)
		want, _ := json.Marshal(s)
		if got := text(t, s); got != string(want) {
			t.Fatalf("%q is written as %s, not as %s", s, got, want)
		}
	}
}

func TestBodiesAreRefused(t *testing.T) {
	big := strings.Repeat("x", MaxBodyBytes)
	composed := ComposeMerge(object(t, `{"a":null}`), object(t, `{"a":{"b":1}}`))
	for name, tc := range map[string]struct {
		merge   map[string]any
		uid, rv string
		want    func(error) bool
	}{
		"without uid":               {map[string]any{"a": "x"}, "", "7", is(ErrUnguarded)},
		"without resourceVersion":   {map[string]any{"a": "x"}, "u", "", is(ErrUnguarded)},
		"over the size":             {map[string]any{"a": big}, "u", "7", is(ErrTooLarge)},
		"over the size early":       {map[string]any{"a": big, "b": []any{big, int64(1)}}, "u", "7", is(ErrTooLarge)},
		"with a Go int":             {map[string]any{"a": []any{1}}, "u", "7", valueErrorAt("/a/0")},
		"with NaN":                  {map[string]any{"a": math.NaN()}, "u", "7", valueErrorAt("/a")},
		"composed and not shrunk":   {composed, "u", "7", valueErrorAt("/a")},
		"composed metadata":         {map[string]any{"metadata": ensuredMap{}}, "u", "7", valueErrorAt("/metadata")},
		"with an identity":          {object(t, `{"metadata":{"uid":"other"}}`), "u", "7", protects("/metadata/uid")},
		"with metadata of a string": {object(t, `{"metadata":"x"}`), "u", "7", protects("/metadata")},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := MergeBody(tc.merge, tc.uid, tc.rv); got != nil || !tc.want(err) {
				t.Errorf("got %.60s, %v", got, err)
			}
		})
	}
	add := func(path string, v any) Op {
		return Op{Op: "add", Path: Pointer{path}, Value: v, HasValue: true}
	}
	for name, tc := range map[string]struct {
		list    []Op
		uid, rv string
		want    func(error) bool
	}{
		"without uid":             {[]Op{add("a", nil)}, "", "7", is(ErrUnguarded)},
		"without resourceVersion": {[]Op{add("a", nil)}, "u", "", is(ErrUnguarded)},
		"over the size":           {[]Op{add("a", big)}, "u", "7", is(ErrTooLarge)},
		"over the size early":     {[]Op{add("a", []any{big, int64(1)})}, "u", "7", is(ErrTooLarge)},
		"over the count":          {make([]Op, MaxOps+1), "u", "7", is(ErrTooLarge)},
		"with a Go int":           {[]Op{add("a", 1)}, "u", "7", func(err error) bool { var ve *ValueError; return errors.As(err, &ve) }},
		"with an identity":        {[]Op{add("kind", "x")}, "u", "7", protects("/kind")},
		"with an invalid op":      {[]Op{{Op: "add", Path: Pointer{"a"}}}, "u", "7", func(err error) bool { var oe *OpError; return errors.As(err, &oe) && oe.Member == "value" }},
	} {
		t.Run("ops "+name, func(t *testing.T) {
			if got, err := OpsBody(tc.list, tc.uid, tc.rv); got != nil || !tc.want(err) {
				t.Errorf("got %.60s, %v", got, err)
			}
		})
	}
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func valueErrorAt(path string) func(error) bool {
	return func(err error) bool {
		var ve *ValueError
		return errors.As(err, &ve) && ve.Path.String() == path
	}
}

func protects(path string) func(error) bool {
	return func(err error) bool {
		var pe *ProtectedError
		return errors.As(err, &pe) && pe.Path.String() == path
	}
}

// One value that many operations share is small in memory and huge when written:
// that must end at the limit.
func TestOpsBodyDoesNotWriteBeyondTheLimit(t *testing.T) {
	v := strings.Repeat("x", 1<<20)
	list := make([]Op, MaxOps)
	for i := range list {
		list[i] = Op{Op: "add", Path: Pointer{fmt.Sprint("k", i)}, Value: v, HasValue: true}
	}
	if _, err := OpsBody(list, "u", "7"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}
