package expression

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// variableSources are the variables that pathExpressions read.
var variableSources = map[string]string{
	"variables.a": `object.spec`,
	"variables.b": `object.metadata.?annotations[?'example.io/owner'].orValue('none')`,
	"variables.c": `variables.a.containers.filter(c, c.image != variables.b)`,
}

// inputs are the values of a rule's names, as whole or as projected objects.
type inputs struct {
	object    m
	namespace m // nil: null
	pods      []m
}

// scope resolves names as rules does, variables lazily.
type scope struct {
	inputs
	variables map[string]*Program
}

func (s scope) Resolve(name string) (any, error) {
	switch name {
	case "object":
		return s.object, nil
	case "namespaceObject":
		if s.namespace == nil {
			return nil, nil
		}
		return s.namespace, nil
	case "lookups.pods":
		pods := l{}
		for _, p := range s.pods {
			pods = append(pods, p)
		}
		return pods, nil
	case "now":
		return sampleNow, nil
	}
	return s.variables[name].Eval(s)
}

// needs are the sets of one expression with its variables.
type needs struct{ object, namespace, pods *fieldset.Set }

func (n needs) project(in inputs) inputs {
	out := inputs{object: n.object.Project(in.object)}
	if in.namespace != nil {
		out.namespace = n.namespace.Project(in.namespace)
	}
	for _, p := range in.pods {
		out.pods = append(out.pods, n.pods.Project(p))
	}
	return out
}

func (n needs) digests(in inputs) []uint64 {
	out := []uint64{n.object.Digest(in.object), 0}
	if in.namespace != nil {
		out[1] = n.namespace.Digest(in.namespace)
	}
	for _, p := range in.pods {
		out = append(out, n.pods.Digest(p))
	}
	return out
}

// outcome is a result in a form that can be compared: a value, or that there
// is none. Elements are in any order, since those made from maps are.
func outcome(v Value, err error) string {
	if err != nil {
		return "error"
	}
	if _, err := v.Native(); err != nil {
		return "not JSON: " + canonical(v.val)
	}
	return canonical(v.val)
}

func canonical(v ref.Val) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch v := v.(type) {
	case *types.Optional:
		if v.HasValue() {
			add("%s", canonical(v.GetValue()))
		}
	case *patchValue:
		for name, f := range v.fields {
			add("%s: %s", name, canonical(f))
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			add("%s: %s", canonical(k), canonical(v.Get(k)))
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			add("%s", canonical(it.Next()))
		}
	default:
		add("%#v", v.Value())
	}
	slices.Sort(parts)
	return fmt.Sprintf("%s(%s)", v.Type().TypeName(), strings.Join(parts, ", "))
}

func show(o m) string { return canonical(types.DefaultTypeAdapter.NativeToValue(o)) }

// mutate returns a copy with random changes: keys gone and added, values of
// other types, null, empty, or taken from elsewhere in the object.
func mutate(r *rand.Rand, v any, chance int, elsewhere l) any {
	if r.Intn(chance) == 0 {
		pool := l{nil, "", "x", "team-7", "3", "1Gi", int64(0), int64(1), int64(3), 0.5, 3.0, true, false, m{}, l{}, l{"foo"}, l{nil}, m{"team": "team-7"}, m{"replicas": int64(1)}, l{m{"name": "app-0"}}}
		if len(elsewhere) > 0 && r.Intn(3) == 0 {
			return elsewhere[r.Intn(len(elsewhere))]
		}
		return pool[r.Intn(len(pool))]
	}
	switch v := v.(type) {
	case map[string]any:
		out := m{}
		for _, k := range slices.Sorted(keysOf(v)) {
			if r.Intn(chance) > 0 {
				out[k] = mutate(r, v[k], chance, elsewhere)
			}
		}
		if r.Intn(chance) == 0 {
			out[[]string{"paused", "foo", "x", "labels", "a"}[r.Intn(5)]] = mutate(r, "n", 2, elsewhere)
		}
		return out
	case []any:
		out := l{}
		for _, x := range v {
			out = append(out, mutate(r, x, chance, elsewhere))
		}
		switch r.Intn(chance * 2) {
		case 0:
			out = out[:len(out)/2]
		case 1:
			out = append(out, mutate(r, "n", 2, elsewhere))
		}
		return out
	}
	return v
}

func keysOf(v m) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range v {
			if !yield(k) {
				return
			}
		}
	}
}

func mutateObject(r *rand.Rand, o m, chance int) m {
	elsewhere := l{o["spec"], o["metadata"], o["status"], o["l"], o["q"], o["a"]}
	for {
		if out, ok := mutate(r, o, chance, elsewhere).(m); ok {
			return out
		}
	}
}

func mutateInputs(r *rand.Rand, in inputs, chance int) inputs {
	out := inputs{object: mutateObject(r, in.object, chance)}
	if r.Intn(5) > 0 {
		out.namespace = mutateObject(r, sampleObject(), chance)
	}
	for range r.Intn(3) {
		out.pods = append(out.pods, mutateObject(r, sampleObject(), chance))
	}
	return out
}

// comparison evaluates expressions on whole and on projected objects.
type comparison struct {
	*testing.T
	r         *rand.Rand
	env       *Env
	variables map[string]*Program

	values, failures, unseen int
}

func newComparison(t *testing.T, seed int64) *comparison {
	c := &comparison{T: t, r: rand.New(rand.NewSource(seed)), env: ruleEnv(t), variables: map[string]*Program{}}
	for name, source := range variableSources {
		c.variables[name] = compile(t, c.env, source)
	}
	return c
}

// run compares a program on the sample and on changed objects; it reports
// whether there ever was a value.
func (c *comparison) run(source string, p *Program, rounds int) bool {
	c.Helper()
	a := NewAnalysis()
	for name, v := range c.variables {
		a.Bind(name, v)
	}
	a.Read(p)
	n := needs{a.Paths("object"), a.Paths("namespaceObject"), a.Paths("lookups.pods")}
	evaluate := func(in inputs) string { return outcome(p.Eval(scope{in, c.variables})) }
	// The first element of a list made from a map is any.
	unstable := func(in inputs) bool {
		seen := map[string]bool{}
		for range 50 {
			seen[evaluate(in)] = true
		}
		return len(seen) > 1
	}
	start := inputs{object: sampleObject(), namespace: sampleObject(), pods: []m{sampleObject()}}
	worked := false
	for i := range rounds {
		in := start
		if i > 0 {
			in = mutateInputs(c.r, start, 6+c.r.Intn(60))
		}
		full, reduced := evaluate(in), evaluate(n.project(in))
		if full != reduced && !unstable(in) {
			c.Fatalf("%s\nwhole     %s\nprojected %s\npaths %s | %s | %s\nobject    %s\nprojected %s", source, full, reduced,
				n.object, n.namespace, n.pods, show(in.object), show(n.object.Project(in.object)))
		}
		if full == "error" {
			c.failures++
		} else {
			c.values++
			worked = true
		}
		other := in
		other.object = mutateObject(c.r, in.object, 20)
		if slices.Equal(n.digests(in), n.digests(other)) {
			c.unseen++
			if got := evaluate(other); got != full && !unstable(in) && !unstable(other) {
				c.Fatalf("%s\nequal digests, but %s and %s\npaths %s\nobject %s\nother  %s", source, full, got, n.object, show(in.object), show(other.object))
			}
		}
	}
	return worked
}

// alwaysFail are those of pathExpressions that have no value on any object.
var alwaysFail = []string{`object.a.b.c`, `object.metadata.name.reverse()`, `object.spec[0]`, `object.spec.containers['0']`}

// TestUnracedProjectionEvaluatesAsTheObject is what the cache relies on: evaluated on
// objects reduced to its paths, an expression gives what it gives on the whole
// ones; and where the digests are equal, so are the results.
func TestUnracedProjectionEvaluatesAsTheObject(t *testing.T) {
	c := newComparison(t, 7)
	for _, source := range pathExpressions {
		worked := c.run(source, compile(t, c.env, source), 100)
		if worked == slices.Contains(alwaysFail, source) {
			t.Errorf("has a value: %v: %s", worked, source)
		}
	}
	t.Logf("%d expressions, %d values and %d failures compared, %d changes not seen by the digest", len(pathExpressions), c.values, c.failures, c.unseen)
	if c.values < 10000 || c.failures < 2000 || c.unseen < 2000 {
		t.Error("the test compares too little")
	}
}

// TestUnracedProjectionEvaluatesAsTheObjectForGeneratedExpressions is the same for
// expressions that nobody would write.
func TestUnracedProjectionEvaluatesAsTheObjectForGeneratedExpressions(t *testing.T) {
	c := newComparison(t, 8)
	compiled := 0
	for compiled < 1500 {
		source := generate(c.r, 4, "object")
		p, issues := c.env.Compile(source)
		if issues != nil {
			continue // types that cannot match, or too deep a nesting
		}
		compiled++
		c.run(source, p, 12)
	}
	t.Logf("%d values and %d failures compared, %d changes not seen by the digest", c.values, c.failures, c.unseen)
	if c.values < 3000 || c.failures < 3000 || c.unseen < 3000 {
		t.Error("the test compares too little")
	}
}

// productions are what generate chooses from: E is any expression, X one in
// which the variable x is known, K a key and V a name.
var productions = strings.Split(strings.TrimSpace(`
V.K
V.spec.K
V.spec.containers
V.metadata.labels
V.?K
V[?"K"]
E.K
E.?K
E[?"K"]
E["K"]
E[0]
E[E]
E[?E]
has(E.K)
"K" in E
E in E
E == E
E == null
E == {}
E != []
type(E) == type(E)
size(E)
E.size() > 0
E.hasValue()
E.orValue(E)
E.or(E)
E.value()
optional.of(E)
optional.ofNonZeroValue(E)
E.optMap(x, X)
E.optFlatMap(x, optional.of(X))
dyn(E)
E ? E : E
E.K ? E : E
E && E
E || E
!E
E + E
E > E
string(E)
int(E)
[E, E]
[?optional.of(E), E]
{"K": E}
{"K": E, "spec": E}
{"K": E, ?"name": optional.ofNonZeroValue(E)}
Object{K: E, spec: Object.spec{K: E}}
E.map(x, X)
E.filter(x, dyn(X))
E.filter(x, X == E)
E.exists(x, dyn(X))
E.exists(x, X == E)
E.all(x, has(x.K))
E.exists_one(x, X == E)
E.map(x, X == E, X)
E.transformList(x, y, X)
E.transformList(y, x, X == E, X)
E.transformMap(y, x, X)
E.transformMapEntry(y, x, {y: X})
E.all(y, x, X == E)
E.exists(x, y, X == E)
E.sortBy(x, string(X))
E.reverse()
E.slice(0, 1)
E.first()
E.last()
[optional.of(E), E.?K].unwrapOpt()
E.distinct()
sets.intersects([E], [E])
"%s".format([E])
`), "\n")

// generate makes an expression; names are those that it can read.
func generate(r *rand.Rand, depth int, names ...string) string {
	pick := func(from ...string) string { return from[r.Intn(len(from))] }
	if depth == 0 {
		return pick(slices.Concat([]string{`"team"`, `0`, `1`, `null`, `true`, `[]`, `{}`, `variables.a`, `variables.c`, `lookups.pods`}, names, names)...)
	}
	var out strings.Builder
	for _, c := range pick(productions...) {
		switch c {
		case 'K':
			out.WriteString(pick("spec", "metadata", "labels", "team", "containers", "name", "image", "replicas", "paused", "l", "q", "a", "b", "ports"))
		case 'V':
			out.WriteString(pick(names...))
		case 'E':
			out.WriteString("(" + generate(r, r.Intn(depth), names...) + ")")
		case 'X':
			out.WriteString("(" + generate(r, r.Intn(depth), slices.Concat(names, []string{"x", "x"})...) + ")")
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}
