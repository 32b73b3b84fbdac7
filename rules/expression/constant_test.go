package expression

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConstant(t *testing.T) {
	for source, want := range map[string]any{
		"3": int64(3), "-3": int64(-3), "3u": uint64(3), "0.5": 0.5, "'x'": "x", "true": true,
		"1000 + 37": int64(1037), "int('3') * 2": int64(6), "'a' + 'b'": "ab", "[1, 2].size()": int64(2), "{'a': {'b': 7}}.a.b": int64(7),
		"has({'a': 1}.a)": true, "1 < 2 ? 'x' : 'y'": "x", "dyn(5)": int64(5), "'a b'.split(' ')[1]": "b", "double('1e3')": 1000.0, "uint(2) + 1u": uint64(3),
		// What is no constant, or not of these kinds, or an error.
		"object": nil, "1 + int(object.a)": nil, "[1].exists(i, i == 1)": nil, "null": nil, "[1]": nil, "b'x'": nil, "1 / 0": nil, "duration('1s')": nil,
		"type(1) == int": nil, "[1].map(i, i)[0]": nil, "9223372036854775807 + 1": nil,
	} {
		if got, ok := syntax(t, source).Constant(); !cmp.Equal(got, want) || ok != (want != nil) {
			t.Errorf("%s is %#v, %v, want %#v", source, got, ok, want)
		}
	}
	if got, ok := syntax(t, "object.a > 1 + 2").Args[1].Constant(); got != int64(3) || !ok {
		t.Errorf("a part is %#v, %v", got, ok)
	}
}
