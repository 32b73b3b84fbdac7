package expression

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// names is a Resolver over a map; a value of type error is the name's error.
type names map[string]any

func (n names) Resolve(name string) (any, error) {
	if err, ok := n[name].(error); ok {
		return nil, err
	}
	return n[name], nil
}

func env(t *testing.T, declared ...string) *Env {
	t.Helper()
	e := NewEnv()
	for _, name := range declared {
		var err error
		if e, err = e.Declare(name, Dyn); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

func eval(t *testing.T, source string, in names) (any, error) {
	t.Helper()
	declared := make([]string, 0, len(in))
	for name := range in {
		declared = append(declared, name)
	}
	p, issues := env(t, declared...).Compile(source)
	if issues != nil {
		t.Fatalf("compile %s: %v", source, issues[0])
	}
	v, err := p.Eval(in)
	if err != nil {
		return nil, err
	}
	return v.Native()
}

// The results of the language on untyped objects that rules rely on: they must
// not change with an upgrade of a library. Names are the cases' own.
func TestSemanticsOnUntypedObjects(t *testing.T) {
	obj := func(kv ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i].(string)] = kv[i+1]
		}
		return m
	}
	containers := func(cs ...any) map[string]any { return obj("spec", obj("containers", cs)) }
	latest := `object.spec.containers.exists(c, c.image.endsWith(":latest"))`
	for _, tc := range []struct {
		name, source string
		object       map[string]any
		want         any
		wantErr      string
	}{
		{name: "CEL-04 optional chaining over null", source: `object.spec.?a.?b.orValue("none")`, object: obj("spec", obj("a", nil)), want: "none"},
		{name: "CEL-04 null is present for has", source: `has(object.spec.a)`, object: obj("spec", obj("a", nil)), want: true},
		{name: "CEL-04 has does not protect from null", source: `has(object.metadata.labels) && "a" in object.metadata.labels`, object: obj("metadata", obj("labels", nil)), wantErr: "no such overload"},
		{name: "CEL-05 a match absorbs the other element's error", source: latest, object: containers(obj("name", "a"), obj("image", "x:latest")), want: true},
		{name: "CEL-05 without a match the error stays", source: latest, object: containers(obj("name", "a"), obj("image", "x:1")), wantErr: "no such key: image"},
		{name: "CEL-05 empty list", source: latest, object: containers(), want: false},
		{name: "CEL-05 all over an empty list", source: `object.spec.containers.all(c, has(c.image))`, object: containers(), want: true},
		{name: "CEL-07 missing label", source: `object.metadata.labels.tier == "web"`, object: obj("metadata", obj("labels", obj("owner", "ops"))), wantErr: "no such key: tier"},
		{name: "CEL-12 strings are compared as strings", source: `object.m > "1Gi"`, object: obj("m", "900Mi"), want: true},
		{name: "CEL-12 quantities as quantities", source: `quantity(object.m).isGreaterThan(quantity("1Gi"))`, object: obj("m", "900Mi"), want: false},
		{name: "CEL-12 equal quantities", source: `quantity(object.c).compareTo(quantity("1"))`, object: obj("c", "1000m"), want: int64(0)},
		{name: "CEL-13 quantity of a number", source: `quantity(object.c).compareTo(quantity("1"))`, object: obj("c", int64(1)), wantErr: "no such overload"},
		{name: "CEL-13 quantity of a number's string", source: `quantity(string(object.c)).compareTo(quantity("1"))`, object: obj("c", int64(1)), want: int64(0)},
		{name: "CEL-13 not a quantity", source: `quantity(object.c).compareTo(quantity("1"))`, object: obj("c", "1GB"), wantErr: "quantities must match"},
		{name: "NUM-01 double times double", source: `object.r * 2.0 > 1.5`, object: obj("r", 0.5), want: false},
		{name: "NUM-01 int times double", source: `object.r * 2.0 > 1.5`, object: obj("r", int64(1)), wantErr: "no such overload"},
		{name: "NUM-01 the portable form", source: `double(object.r) * 2.0 > 1.5`, object: obj("r", int64(1)), want: true},
		{name: "NUM-02 comparison across number types", source: `object.r > 0.4`, object: obj("r", int64(1)), want: true},
		{name: "NUM-09 equality across types is false", source: `object.p == "80"`, object: obj("p", int64(80)), want: false},
		{name: "NUM-09 order across types is an error", source: `object.p < 90`, object: obj("p", "metrics"), wantErr: "no such overload"},
		{name: "NUM-09 the portable form", source: `string(object.p) == "80"`, object: obj("p", int64(80)), want: true},
		{name: "conversions of dynamic values find their overload", source: `int(object.a) + int(string(object.b)) `, object: obj("a", "4", "b", int64(3)), want: int64(7)},
		{name: "timestamps are strings in the object", source: `timestamp(object.t) > timestamp("2026-01-01T00:00:00Z")`, object: obj("t", "2026-05-01T00:00:00Z"), want: true},
		{name: "int64 stays exact", source: `object.n`, object: obj("n", int64(9223372036854775807)), want: int64(9223372036854775807)},
		{name: "NUM-10 whole doubles become integers", source: `double(object.n)`, object: obj("n", "3"), want: int64(3)},
		{name: "fractions stay doubles", source: `double(object.n)`, object: obj("n", "2.5"), want: 2.5},
		{name: "mixed map literals are allowed", source: `{'op': 'replace', 'value': 3, 'list': [1, 'a', null]}`, object: obj(), want: map[string]any{"op": "replace", "value": int64(3), "list": []any{int64(1), "a", nil}}},
		{name: "optional entries drop out", source: `{'a': 1, ?'b': object.?b}`, object: obj(), want: map[string]any{"a": int64(1)}},
		{name: "optional values drop their key", source: `{'a': 1, 'b': object.?b}`, object: obj(), want: map[string]any{"a": int64(1)}},
		{name: "optional elements drop out", source: `[object.?b, object.?a]`, object: obj("a", "x"), want: []any{"x"}},
		{name: "null stays null in a literal", source: `{'a': null, 'l': [{'m': {'k': null}}]}`, object: obj(), want: map[string]any{"a": nil, "l": []any{map[string]any{"m": map[string]any{"k": nil}}}}},
		{name: "lists that are put together", source: `[dyn({'a': [{'b': 1}]})] + object.l + [dyn([{'c': 1.0}] + [])]`, object: obj("l", []any{map[string]any{"d": "x"}}), want: []any{map[string]any{"a": []any{map[string]any{"b": int64(1)}}}, map[string]any{"d": "x"}, []any{map[string]any{"c": int64(1)}}}},
		{name: "a quantity is not a JSON value", source: `quantity("1")`, object: obj(), wantErr: "cannot be put into a patch"},
		{name: "durations are text", source: `duration("90s")`, object: obj(), want: "90s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := eval(t, tc.source, names{"object": tc.object})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %v, error %v; want an error with %q", got, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompileIssues(t *testing.T) {
	for _, tc := range []struct {
		name, source string
		offset       int
		want         string
	}{
		{"CEL-01 has on an index", `!has(object.metadata.labels["app.kubernetes.io/name"])`, 27, "'key' in object.metadata.labels"},
		{"CEL-09 now as a function", `now() - timestamp(object.t) > duration("48h")`, 0, "now is a variable, not a function"},
		{"an unknown name", "object.x ==\n  foo", 14, "undeclared reference to 'foo'"},
		{"offsets are in bytes behind wide runes", `'ä' == foo`, 8, "undeclared reference to 'foo'"},
		{"admission's variables", `request.operation == 'CREATE'`, 0, "admission only"},
		{"nothing", "  ", 0, "is empty"},
		{"too deep", `[1].all(a, [2].all(b, [3].all(c, a+b+c > 0)))`, 0, "nested 3 deep"},
		{"a syntax error", `object.spec.replicas == `, 24, "Syntax error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, issues := env(t, "object").Compile(tc.source)
			if p != nil || len(issues) == 0 {
				t.Fatal("no issue")
			}
			if issues[0].Offset != tc.offset || !strings.Contains(issues[0].Msg, tc.want) {
				t.Errorf("offset %d, %q; want offset %d and %q", issues[0].Offset, issues[0].Msg, tc.offset, tc.want)
			}
		})
	}
}

func TestNestingCountsLoopsInsideLoopsOnly(t *testing.T) {
	for source, want := range map[string]int{
		`object.a.b`:                                          0,
		`object.?a.optMap(x, x + 1).orValue(2)`:               0,
		`object.a.map(x, x).filter(x, x > 1).exists(x, x==2)`: 1,
		`object.a.map(x, x.b.filter(y, y > 1))`:               2,
		`object.a.exists(x, object.b.all(y, y == x))`:         2,
		`{'k': [object.a.map(x, {'z': x.b.map(y, y)})]}`:      2,
		`object.a.transformMap(k, v, v)`:                      1,
	} {
		e := env(t, "object")
		checked, iss := e.cel.Compile(source)
		if iss.Err() != nil {
			t.Fatal(iss.Err())
		}
		if got := nesting(checked.NativeRep().Expr()); got != want {
			t.Errorf("%s: nesting %d, want %d", source, got, want)
		}
	}
}

func TestProgramNamesWhatItReads(t *testing.T) {
	p, issues := env(t, "object", "variables.a", "variables.b").Compile(`object.l.exists(x, x == variables.a)`)
	if issues != nil {
		t.Fatal(issues[0])
	}
	if diff := cmp.Diff([]string{"object", "variables.a"}, p.Reads()); diff != "" {
		t.Error(diff)
	}
}

func TestErrorOfANameIsAbsorbedLikeAnyOther(t *testing.T) {
	boom := errors.New("boom")
	got, err := eval(t, `variables.a > 1 || object.yes`, names{"variables.a": boom, "object": map[string]any{"yes": true}})
	if err != nil || got != true {
		t.Errorf("got %v, %v; want true", got, err)
	}
	if _, err = eval(t, `variables.a > 1`, names{"variables.a": boom}); !errors.Is(err, boom) {
		t.Errorf("got %v, want the name's own error", err)
	}
}

func TestEndlessWorkMeetsTheDeadline(t *testing.T) {
	_, err := eval(t, `lists.range(30000).all(a, lists.range(30000).all(b, a + b >= 0))`, names{})
	if !errors.Is(err, ErrDeadline) {
		t.Errorf("got %v, want ErrDeadline", err)
	}
}

// slow takes longer than an evaluation may, as a process does that gets no processor.
type slow struct{ names }

func (s slow) Resolve(name string) (any, error) {
	time.Sleep(Deadline + Deadline/2)
	return s.names.Resolve(name)
}

func TestWhatFailsLateSaysWhy(t *testing.T) {
	p, issues := env(t, "object").Compile(`[1].all(a, object.absent == a)`)
	if issues != nil {
		t.Fatal(issues[0])
	}
	_, err := p.Eval(slow{names{"object": map[string]any{}}})
	if err == nil || errors.Is(err, ErrDeadline) || !strings.Contains(err.Error(), "absent") {
		t.Errorf("got %v, want that there is no such key", err)
	}
}

func TestValuesOfTheObjectAreSharedNotCopied(t *testing.T) {
	inner := map[string]any{"k": "v"}
	got, err := eval(t, `object.inner`, names{"object": map[string]any{"inner": inner}})
	if err != nil {
		t.Fatal(err)
	}
	got.(map[string]any)["probe"] = true
	if inner["probe"] != true {
		t.Error("Native copied a part of the object")
	}
}

func TestTextRefusesWhatIsNotAScalar(t *testing.T) {
	p, _ := env(t).Compile(`[1]`)
	v, err := p.Eval(names{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := v.Text(); err == nil {
		t.Errorf("a list became %q", s)
	}
}

func BenchmarkEval(b *testing.B) {
	e, _ := NewEnv().Declare("object", Dyn)
	p, _ := e.Compile(`'example.io/expected-replicas' in object.metadata.?annotations.orValue({}) && object.spec.?replicas.orValue(1) != int(object.metadata.annotations['example.io/expected-replicas'])`)
	in := names{"object": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"example.io/expected-replicas": "3"}},
		"spec":     map[string]any{"replicas": int64(3)},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Eval(in); err != nil {
			b.Fatal(err)
		}
	}
}
