package expression

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was likely meant is told once, at the name; what only follows from it is
// not told.
func TestHints(t *testing.T) {
	env := NewEnv()
	for _, name := range []string{"object", "namespaceObject", "lookups.pods", "variables.a"} {
		var err error
		if env, err = env.Declare(name, Dyn); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		source string
		want   []string
	}{
		{"self.x", []string{"0: undeclared reference to 'self': the object is called object"}},
		{"has(objekt.x)", []string{"4: undeclared reference to 'objekt' (did you mean 'object'?)"}},
		{"lookup.pods", []string{"0: undeclared reference to 'lookup' (did you mean 'lookups'?)"}},
		{"frobnicate.x", []string{"0: undeclared reference to 'frobnicate'"}},
		{"request.x", []string{"0: undeclared reference to 'request': it exists in admission only; a rule sees the stored object"}},
		{"object.a.exist(c, c.b == 'x' && d)", []string{
			"9: undeclared reference to 'exist' (did you mean 'exists'?)", "32: undeclared reference to 'd'"}},
		{"object.a.exist (c, c.b) && c", []string{
			"9: undeclared reference to 'exist' (did you mean 'exists'?)", "27: undeclared reference to 'c'"}},
		{"object.a.exists(c)", []string{"9: undeclared reference to 'exists': it takes a name and an expression, such as exists(x, …)"}},
		{"object.a.map(cont, conti.x)", []string{"19: undeclared reference to 'conti' (did you mean 'cont'?)"}},
		{"object.?a.orvalue(1)", []string{"10: undeclared reference to 'orvalue' (did you mean 'orValue'?)"}},
		{"object.a.startWith('x')", []string{"9: undeclared reference to 'startWith' (did you mean 'startsWith'?)"}},
		{"'ä'.startWith('x')", []string{"5: undeclared reference to 'startWith' (did you mean 'startsWith'?)"}},
		{"sizee(object.a)", []string{"0: undeclared reference to 'sizee' (did you mean 'size'?)"}},
		{"now()", []string{"0: undeclared reference to 'now': now is a variable, not a function"}},
		{"object.a and object.b", []string{"9: Syntax error: CEL has no and: write &&"}},
		{"object.a OR object.b", []string{"9: Syntax error: CEL has no OR: write ||"}},
		{"not object.a", []string{"0: Syntax error: CEL has no not: write !"}},
		{"not(object.a)", []string{"0: undeclared reference to 'not': CEL has no not: write !"}},
		{"object.a.all(x, y && not x)", []string{"21: Syntax error: CEL has no not: write !"}},
		{"object.orders == ", nil},
	} {
		_, issues := env.Compile(tc.source)
		var got []string
		for _, i := range issues {
			got = append(got, fmt.Sprintf("%d: %s", i.Offset, i.Msg))
		}
		if tc.want == nil { // what CEL says is enough
			if len(got) == 0 {
				t.Errorf("%s compiles", tc.source)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.source, diff)
		}
	}
}

// Hints never make an issue of nothing, nor panic.
func FuzzHints(f *testing.F) {
	for _, s := range []string{"not(", "a.exist(c", "ä.b(c, d)", "x and", "(", "'", "a.b ( c ) and not d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		_, issues := NewEnv().Compile(source)
		for _, i := range issues {
			if i.Offset < 0 || i.Offset > len(source) || i.Msg == "" {
				t.Errorf("%q: %d %q", source, i.Offset, i.Msg)
			}
		}
	})
}
