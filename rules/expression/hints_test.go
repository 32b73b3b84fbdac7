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

		{"object.metadata.labels.app.kubernetes.io/name == 'x'", []string{"23: undeclared reference to 'name': a key that is no name is an index: write object.metadata.labels['app.kubernetes.io/name']"}},
		{"object.metadata.?annotations.?example.io/my-thing.orValue('') == 'x'", []string{"30: undeclared reference to 'my': a key that is no name is an index: write object.metadata.?annotations[?'example.io/my-thing']"}},
		{"object.data.my-key == 'x'", []string{"12: undeclared reference to 'key': a key that is no name is an index: write object.data['my-key']"}},
		{"object.metadata.labels.kubernetes.io/namespace == 'x'", []string{"23: reserved identifier: namespace: a key that is no name is an index: write object.metadata.labels['kubernetes.io/namespace']"}},
		{"object.data.a - other", []string{"16: undeclared reference to 'other'"}},
		{"object.spec.count/other", []string{"18: undeclared reference to 'other'"}},
		{"namespace == 'a'", []string{"0: reserved identifier: namespace: write object.metadata.namespace"}},
		{"namespace.metadata.name == 'a'", []string{"0: reserved identifier: namespace: the Namespace is called namespaceObject, its name is object.metadata.namespace"}},
		{"name == 'a' && spec.x == 1", []string{"0: undeclared reference to 'name': write object.metadata.name", "15: undeclared reference to 'spec': write object.spec"}},
		{"object.a == nil || object.b == True", []string{"12: undeclared reference to 'nil': write null", "31: undeclared reference to 'True': write true"}},
		{"if (object.a) true else false", []string{"0: reserved identifier: if: CEL has no if: write condition ? a : b"}},
		{"object.a = 1", []string{"9: Syntax error: CEL has no =: write =="}},
		{"object.a = 'ä' && object.b = 2", []string{"9: Syntax error: CEL has no =: write ==", "28: Syntax error: CEL has no =: write =="}},
		{"object.a => 1", []string{"9: Syntax error: CEL has no =>: write >="}},
		{"object.a =! 1", []string{"9: Syntax error: CEL has no =!: write !="}},
		{"object.a === 1", []string{"9: Syntax error: CEL has no ===: write =="}},
		{"object.a !== 1", []string{"9: Syntax error: CEL has no !==: write !="}},
		{"object.a <> 1", []string{"9: Syntax error: CEL has no <>: write !="}},
		{"object.a & object.b", []string{"9: Syntax error: CEL has no &: write &&"}},
		{"object.a | object.b", []string{"9: Syntax error: CEL has no |: write ||"}},
		{"object.a | object.b && (1", nil},
		{"duration('1d') < duration(\"2w\")", []string{"9: invalid duration argument: the largest unit is the hour: write 24h", "26: invalid duration argument: the largest unit is the hour: write 336h"}},
		{"duration('soon')", []string{"9: invalid duration argument: write it such as 90s, 10m or 24h"}},
		{"object.?a != 'y'", []string{"10: found no matching overload for '_!=_' applied to '(optional_type(dyn), string)'" + absent("''")}},
		{"3 < object.?a", []string{"2: found no matching overload for '_<_' applied to '(int, optional_type(dyn))'" + absent("0")}},
		{"object.?a == true", []string{"10: found no matching overload for '_==_' applied to '(optional_type(dyn), bool)'" + absent("false")}},
		{"object.?a == []", []string{"10: found no matching overload for '_==_' applied to '(optional_type(dyn), list(dyn))'" + absent("[]")}},
		{"'a' in object.?a", []string{"4: found no matching overload for '@in' applied to '(string, optional_type(dyn))'" + absent("{}")}},
		{"object.?a.startsWith('x')", []string{"20: found no matching overload for 'startsWith' applied to 'optional_type(dyn).(string)'" + absent("''")}},
		{"size(object.?a) > 1", []string{"4: found no matching overload for 'size' applied to '(optional_type(dyn))'" + absent("…")}},
		{"object.?a || object.b", []string{"6: expected type 'bool' but found 'optional_type(dyn)'" + absent("false")}},
		{"1 == 'a'", []string{"2: found no matching overload for '_==_' applied to '(int, string)'"}},
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

// absent is what is said of an optional value where one is needed that is there.
func absent(otherwise string) string {
	return ": what .? and [? give may be absent: say with .orValue(" + otherwise + ") what counts then"
}

// Hints never make an issue of nothing, nor panic.
func FuzzHints(f *testing.F) {
	for _, s := range []string{"not(", "a.exist(c", "ä.b(c, d)", "x and", "(", "'", "a.b ( c ) and not d", "a.labels.b/c-d", "a = b <> c", "ä.data.x-", "a.?b == 'ü'", "duration('9d')", "a.data.b-c.d("} {
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
