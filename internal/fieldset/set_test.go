package fieldset

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var compareSets = cmp.AllowUnexported(Set{})

func TestStringIsReadableAndSorted(t *testing.T) {
	for _, tc := range []struct {
		set  *Set
		want string
	}{
		{nil, ""},
		{Empty(), ""},
		{Whole(), "."},
		{Of(), "."},
		{Of("spec", "replicas").Union(Of("metadata", "annotations", "example.io/n")), `.metadata.annotations["example.io/n"] .spec.replicas`},
		{Presence("spec", "paused"), ".spec.paused?"},
		{Keys("metadata", "labels"), ".metadata.labels{keys}"},
		{WholeIfList("spec", "args"), ".spec.args{if list}"},
		{Of("spec", "containers", Elem, "image"), ".spec.containers.*.image"},
		{Of("a", Elem), ".a"}, // nothing is left that would not be needed
		{Presence("a").Union(Of("a", "b")), ".a.b"},
		{Of("a", "b").Union(Of("a")), ".a"},
		{Of("a", Elem, "x").Union(Of("a", "b", "x")), ".a.*.x"},
		{Of("a", Elem, "x").Union(Of("a", "b", "y")), ".a.b.x .a.b.y .a.*.x"},
		{items("l", (*Builder).Whole), ".l{keys} .l{if list}"},
		{items("l", func(*Builder) {}), ".l[*]?"},
	} {
		if got := tc.set.String(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

func items(name string, f func(*Builder)) *Set {
	b := NewBuilder()
	f(b.Field(name).Items())
	return b.Set()
}

func TestProjectKeepsWhatTheTableSays(t *testing.T) {
	object := map[string]any{
		"s": "text", "i": int64(3), "f": 2.5, "b": true, "n": nil,
		"l": []any{"x", map[string]any{"p": int64(1), "q": int64(2)}},
		"m": map[string]any{"p": "1", "q": map[string]any{"r": "2"}},
	}
	all := func(f func(...string) *Set) *Set {
		s := Empty()
		for _, k := range []string{"s", "i", "f", "b", "n", "l", "m", "absent"} {
			s = s.Union(f(k))
		}
		return s
	}
	for _, tc := range []struct {
		name string
		set  *Set
		want map[string]any
	}{
		{"nothing", nil, map[string]any{}},
		{"everything", Whole(), object},
		{"presence and kind", all(Presence), map[string]any{
			"s": "", "i": int64(0), "f": 0.0, "b": false, "n": nil, "l": []any{}, "m": map[string]any{},
		}},
		{"keys", all(Keys), map[string]any{
			"s": "text", "i": int64(3), "f": 2.5, "b": true, "n": nil, "l": []any{nil, nil}, "m": map[string]any{"p": nil, "q": nil},
		}},
		{"whole lists", all(WholeIfList), map[string]any{
			"s": "", "i": int64(0), "f": 0.0, "b": false, "n": nil, "l": object["l"], "m": map[string]any{},
		}},
		{"elements", Of("l", Elem, "p").Union(Of("m", Elem, "r")), map[string]any{
			"l": []any{"", map[string]any{"p": int64(1)}},
			"m": map[string]any{"p": "", "q": map[string]any{"r": "2"}},
		}},
		{"a name beside the elements", Of("m", Elem, "r").Union(Of("m", "p")), map[string]any{
			"m": map[string]any{"p": "1", "q": map[string]any{"r": "2"}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.set.Project(object)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDigestTellsApartWhatAnExpressionCan(t *testing.T) {
	values := []any{nil, "", "0", "false", false, true, int64(0), int64(1), 0.0, 1.0, 0.5, []any{}, map[string]any{}, []any{nil}, []any{""}, []any{[]any{}}, map[string]any{"k": nil}, map[string]any{"k": ""}}
	objects := []map[string]any{{}}
	for _, v := range values {
		objects = append(objects, map[string]any{"x": v})
	}
	seen := map[uint64]map[string]any{}
	for _, o := range objects {
		d := Of("x").Digest(o)
		if other, ok := seen[d]; ok {
			t.Errorf("%v and %v have one digest", o, other)
		}
		seen[d] = o
	}
	seen = map[uint64]map[string]any{}
	for _, o := range objects {
		d := Presence("x").Digest(o)
		if other, ok := seen[d]; ok && reflect.TypeOf(o["x"]) != reflect.TypeOf(other["x"]) {
			t.Errorf("%v and %v have one digest of presence and kind", o, other)
		}
		seen[d] = o
	}
	if a, b := Of("x").Digest(map[string]any{"x": "a", "y": "b"}), Of("x").Digest(map[string]any{"x": "a"}); a != b {
		t.Error("a field outside the set changes the digest")
	}
	two := Of("x").Union(Of("y"))
	if a, b := two.Digest(map[string]any{"x": "a", "y": "b"}), two.Digest(map[string]any{"x": "b", "y": "a"}); a == b {
		t.Error("exchanged values have one digest")
	}
}

func TestValuesThatAreNotJSONAreKeptAndDigested(t *testing.T) {
	type odd struct{ N int }
	a, b := map[string]any{"x": odd{1}}, map[string]any{"x": odd{2}}
	if Of("x").Digest(a) == Of("x").Digest(b) {
		t.Error("the digest does not see the value")
	}
	if got := Presence("x").Project(a)["x"]; got != (odd{1}) {
		t.Errorf("projected to %v", got)
	}
}

var names = []string{"a", "b", "c", "d/e"}

func randomValue(r *rand.Rand, depth int) any {
	scalars := []any{nil, "", "x", "y", true, false, int64(0), int64(3), 0.0, 2.5, []any{}, map[string]any{}}
	if depth <= 0 || r.Intn(4) == 0 {
		return scalars[r.Intn(len(scalars))]
	}
	if r.Intn(3) == 0 {
		l := make([]any, r.Intn(4))
		for i := range l {
			l[i] = randomValue(r, depth-1)
		}
		return l
	}
	return randomObject(r, depth-1)
}

func randomObject(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for _, n := range names {
		if r.Intn(4) > 0 {
			m[n] = randomValue(r, depth)
		}
	}
	return m
}

// changed returns a copy of an object that differs in a few places.
func changed(r *rand.Rand, o map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range o {
		if r.Intn(10) > 0 {
			out[k] = change(r, v, 3)
		}
	}
	return out
}

func change(r *rand.Rand, v any, depth int) any {
	if r.Intn(8) == 0 {
		return randomValue(r, depth)
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = change(r, x, depth-1)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = change(r, x, depth-1)
		}
		return out
	}
	return v
}

// randomMark returns what marks a random place of a Builder.
func randomMark(r *rand.Rand) func(*Builder) {
	var steps []func(*Builder) *Builder
	for range 1 + r.Intn(4) {
		switch r.Intn(6) {
		case 0:
			steps = append(steps, (*Builder).Items)
		case 1:
			steps = append(steps, (*Builder).Values)
		default:
			name := names[r.Intn(len(names))]
			steps = append(steps, func(b *Builder) *Builder { return b.Field(name) })
		}
	}
	set := []func(*Builder){(*Builder).Whole, (*Builder).Whole, (*Builder).Keys, (*Builder).Lists, func(*Builder) {}}[r.Intn(5)]
	return func(b *Builder) {
		for _, step := range steps {
			b = step(b)
		}
		set(b)
	}
}

func randomSet(r *rand.Rand) *Set {
	b := NewBuilder()
	for range r.Intn(5) {
		randomMark(r)(b)
	}
	return b.Set()
}

func TestABuilderMakesTheUnionOfItsMarks(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for range 4000 {
		together, union := NewBuilder(), Empty()
		for range r.Intn(6) {
			mark, alone := randomMark(r), NewBuilder()
			mark(together)
			mark(alone)
			union = union.Union(alone.Set())
		}
		if diff := cmp.Diff(union, together.Set(), compareSets); diff != "" {
			t.Fatalf("%s and %s (-union +together):\n%s", union, together.Set(), diff)
		}
	}
}

func object(r *rand.Rand) map[string]any { return randomObject(r, 4) }

func TestLawsOfProjectionAndDigest(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	same := 0
	for range 4000 {
		s, o := randomSet(r), object(r)
		before := fmt.Sprint(o)
		p := s.Project(o)
		if diff := cmp.Diff(p, s.Project(p)); diff != "" {
			t.Fatalf("%s: projecting again changes\n%s", s, diff)
		}
		if s.Digest(o) != s.Digest(p) {
			t.Fatalf("%s: the digest of %v is not that of its projection %v", s, o, p)
		}
		if fmt.Sprint(o) != before {
			t.Fatalf("%s: the object was modified", s)
		}
		other := changed(r, o)
		// Digest and projection know the same of an object.
		if equal := cmp.Equal(p, s.Project(other)); equal != (s.Digest(o) == s.Digest(other)) {
			t.Fatalf("%s: projections equal %v, digests not so\n%v\n%v", s, equal, o, other)
		} else if equal {
			same++
		}
	}
	if same < 200 || same > 3800 {
		t.Errorf("%d of 4000 changed objects are equal in the set: the test tests little", same)
	}
}

func TestLawsOfUnionAndCovers(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	covered := 0
	for range 4000 {
		s, u, o := randomSet(r), randomSet(r), object(r)
		both := s.Union(u)
		if diff := cmp.Diff(both, u.Union(s), compareSets); diff != "" {
			t.Fatalf("%s ∪ %s depends on the order:\n%s", s, u, diff)
		}
		if diff := cmp.Diff(both, both.Union(s, u, nil, both), compareSets); diff != "" {
			t.Fatalf("%s ∪ %s is not idempotent:\n%s", s, u, diff)
		}
		if !both.Covers(s) || !both.Covers(u) || !Whole().Covers(s) || !s.Covers(nil) || !s.Covers(s) {
			t.Fatalf("%s does not cover %s and %s", both, s, u)
		}
		// Covering is: a union that adds nothing.
		if s.Covers(u) != cmp.Equal(both, s, compareSets) {
			t.Fatalf("%s covers %s: %v, but their union is %s", s, u, s.Covers(u), both)
		}
		checkCovers(t, r, both, s, o)
		if s.Covers(u) {
			covered++
			checkCovers(t, r, s, u, o)
		}
	}
	if covered < 150 {
		t.Errorf("only %d of 4000 sets cover another", covered)
	}
}

func TestTheUnionOfManyIsThatOfOneAfterTheOther(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for range 2000 {
		all, one := make([]*Set, r.Intn(9)), randomSet(r)
		want := one
		for i := range all {
			if r.Intn(8) > 0 {
				all[i] = randomSet(r)
			}
			want = want.Union(all[i])
		}
		if diff := cmp.Diff(want, one.Union(all...), compareSets); diff != "" {
			t.Fatalf("%s and %v (-one by one +together):\n%s", one, all, diff)
		}
	}
}

// checkCovers holds what s.Covers(u) promises.
func checkCovers(t *testing.T, r *rand.Rand, s, u *Set, o map[string]any) {
	t.Helper()
	if diff := cmp.Diff(u.Project(o), u.Project(s.Project(o))); diff != "" {
		t.Fatalf("%s covers %s, but loses\n%s", s, u, diff)
	}
	other := changed(r, o)
	if s.Digest(o) == s.Digest(other) && u.Digest(o) != u.Digest(other) {
		t.Fatalf("%s covers %s, but does not see a change\n%v\n%v", s, u, o, other)
	}
}

// TestWalkingASetIsProjecting holds what a projecting decoder relies on.
func TestWalkingASetIsProjecting(t *testing.T) {
	var walk func(s *Set, v any) any
	walk = func(s *Set, v any) any {
		if s == nil {
			return nil
		}
		switch v := v.(type) {
		case map[string]any:
			out := map[string]any{}
			for k, x := range v {
				if f := s.Field(k); f != nil || s.HasKeys() {
					out[k] = walk(f, x)
				}
			}
			return out
		case []any:
			out := []any{}
			for _, x := range v {
				if s.HasKeys() || s.WholeLists() {
					out = append(out, walk(s.Items(), x))
				}
			}
			return out
		case string:
			if !s.HasKeys() {
				return ""
			}
		case bool:
			return v && s.HasKeys()
		case int64:
			if !s.HasKeys() {
				return int64(0)
			}
		case float64:
			if !s.HasKeys() {
				return 0.0
			}
		}
		return v
	}
	r := rand.New(rand.NewSource(3))
	for range 4000 {
		s, o := randomSet(r), object(r)
		if diff := cmp.Diff(s.Project(o), walk(s, o)); diff != "" {
			t.Fatalf("%s (-project +walk):\n%s", s, diff)
		}
		for _, n := range s.Names() {
			if !slices.IsSorted(s.Names()) || s.Field(n) == nil {
				t.Fatalf("%s: bad name %q", s, n)
			}
		}
	}
}
