package rules_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rectifier-dev/rectifier/rules"
)

// checkIndex holds an index to the evaluation of all rules.
func checkIndex(t testing.TB, x *rules.Index, in rules.Input) (same bool) {
	t.Helper()
	in.Explain = false
	all := x.Rules()
	want, got := rules.Evaluate(all, in), x.Evaluate(in)
	if late(want) || late(got) {
		return true
	}
	failed := t.Failed()
	if a, b := told(t, want), told(t, got); !slices.Equal(a, b) {
		t.Errorf("all rules:\n%q\nthe index:\n%q", a, b)
	}
	rules.CheckCounts(t, x, want, got)
	return failed || !t.Failed()
}

// guardMaker makes conditions of what an index files rules by, in all ways that the
// language has of asking for it, and of what looks nearly like it.
type guardMaker struct{ *chooser }

// place is a path of the object as CEL; optional says that it is one of CEL's
// optional values.
func (g guardMaker) place() (cel string, optional bool) {
	cel = "object"
	path := pick(g.chooser, []string{"metadata", "labels"}, []string{"metadata", "annotations"}, []string{"spec", "m"}, []string{"spec", "l"}, []string{"spec"}, []string{"spec", "a", "b"})
	if g.chance(10) {
		cel, path = pick(g.chooser, "variables.labels", "variables.some"), nil
		optional = cel == "variables.some"
	}
	for _, key := range path {
		cel, optional = g.below(cel, key, optional)
	}
	return cel, optional
}

func (g guardMaker) below(cel, key string, optional bool) (string, bool) {
	opt := ""
	if g.chance(40) {
		opt, optional = "?", true
	}
	if strings.Contains(key, "/") || g.chance(20) {
		return fmt.Sprintf("%s[%s'%s']", cel, opt, key), optional
	}
	return cel + "." + opt + key, optional
}

func (g guardMaker) container() string {
	cel, optional := g.place()
	if optional && g.chance(90) {
		cel += pick(g.chooser, ".orValue({})", ".orValue({})", ".orValue([])", ".orValue({'a': 'x'})", ".orValue(null)")
	}
	return cel
}

func (g guardMaker) value() string {
	cel, optional := g.below2(g.place())
	if optional && g.chance(90) {
		cel += ".orValue(" + g.literal() + ")"
	}
	return cel
}

func (g guardMaker) below2(cel string, optional bool) (string, bool) {
	return g.below(cel, pick(g.chooser, metaKeys...), optional)
}

func (g guardMaker) literal() string {
	return pick(g.chooser, "'x'", "'y'", "'x'", "''", "1", "3", "true", "false", "0.5", "variables.x", "null", "1u", "1 + 2", "'x' + ''")
}

// bound is what values are compared with, those around 2^53 and 2^63 among them,
// where doubles are no whole numbers of their own.
func (g guardMaker) bound() string {
	if g.chance(20) {
		return g.literal()
	}
	return pick(g.chooser, "0", "1", "2", "3", "3.0", "0.5", "2u", "-1", "1000 + 37", "int('3')", "'w'", "'x'", "'y'", "variables.x",
		"9007199254740992", "9007199254740993", "9007199254740992.0", "9223372036854775807", "9223372036854775808.0", "18446744073709551615u",
		"-9007199254740993", "-1e30", "double('NaN')", "1 / 0", "object.spec.a")
}

// compared is a comparison of a place with a bound.
func (g guardMaker) compared() string {
	a, b, operator := g.value(), g.bound(), pick(g.chooser, "<", "<=", ">", ">=", "!=")
	if g.chance(30) {
		a, b = b, a
	}
	if g.chance(20) {
		return fmt.Sprintf("!(%s %s %s)", a, operator, b)
	}
	return fmt.Sprintf("%s %s %s", a, operator, b)
}

func (g guardMaker) related() string {
	not := pick(g.chooser, "", "", "!")
	return fmt.Sprintf("%s%s.%s(%s)", not, g.value(), pick(g.chooser, "startsWith", "endsWith", "contains"), pick(g.chooser, "'x'", "'y'", "''", "'we' + 'b'", "variables.x"))
}

// denied is a conjunct that is false where what it asks for is there.
func (g guardMaker) denied() string {
	if g.chance(20) {
		return fmt.Sprintf("!(%s || %s)", g.wanted(), g.wanted())
	}
	return "!(" + g.wanted() + ")"
}

func (g guardMaker) conjunct() string {
	switch g.IntN(7) {
	case 0, 1:
		return g.compared()
	case 2:
		return g.related()
	case 3:
		return g.denied()
	}
	return g.wanted()
}

func (g guardMaker) wanted() string {
	key := pick(g.chooser, metaKeys...)
	switch g.IntN(12) {
	case 0, 1:
		return fmt.Sprintf("'%s' in %s", key, g.container())
	case 2, 3:
		cel, _ := g.place()
		return fmt.Sprintf("has(%s.%s)", cel, pick(g.chooser, "a", "b", "labels", "m"))
	case 4:
		return "has(object.metadata." + pick(g.chooser, "labels", "annotations") + ")"
	case 5, 6:
		return g.value() + " == " + g.literal()
	case 7:
		return g.literal() + " == " + g.value()
	case 8:
		return fmt.Sprintf("%s in [%s, %s]", g.value(), g.literal(), g.literal())
	case 9:
		cel, _ := g.below2(g.place())
		return cel + ".hasValue()"
	case 10:
		return pick(g.chooser, g.value(), "variables.is", "!has(object.spec.a)", "object.spec.paused")
	}
	return celMaker{chooser: g.chooser, names: []string{"lookups.found.size()"}}.bool(1)
}

func (g guardMaker) condition() string {
	out := []string{g.conjunct()}
	for range g.IntN(3) {
		out = append(out, g.conjunct())
	}
	if g.chance(10) {
		out[0] = "(" + out[0] + " || " + g.conjunct() + ")"
	}
	if g.chance(10) {
		out = append(out, "namespaceObject.metadata.name == 'shop'")
	}
	return strings.Join(out, " && ")
}

func (g guardMaker) match() map[string]any {
	labels := map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{pick(g.chooser, metaKeys...): pick(g.chooser, "x", "y")}}}
	switch g.IntN(8) {
	case 0:
		return map[string]any{"names": []any{pick(g.chooser, "web", "other"), fmt.Sprint("n", g.IntN(100))}}
	case 1:
		return map[string]any{"namespaces": []any{pick(g.chooser, "shop", "s*p", "elsewhere"), fmt.Sprint("n", g.IntN(100))}}
	case 2:
		return map[string]any{"labelSelector": map[string]any{"matchExpressions": []any{map[string]any{
			"key": pick(g.chooser, metaKeys...), "operator": pick(g.chooser, "In", "NotIn"), "values": []any{"x", fmt.Sprint("v", g.IntN(100))}}}}}
	case 3:
		return map[string]any{"labelSelector": map[string]any{"matchExpressions": []any{map[string]any{
			"key": pick(g.chooser, metaKeys...), "operator": pick(g.chooser, "Exists", "DoesNotExist")}}}}
	case 4, 5:
		return labels
	}
	return ruleMaker(g).match()
}

// file has up to most rules with guards. Nearly all change nothing on most objects.
func (g guardMaker) file(most int) string {
	var docs []string
	for i := range 1 + g.IntN(most) {
		spec := map[string]any{
			"resource":  map[string]any{"group": "apps", "version": "v1", "resource": "deployments"},
			"condition": g.condition(),
			"mode":      "Audit",
			"patch":     map[string]any{"merge": map[string]any{"spec": map[string]any{"seen": true}}},
			"variables": []any{
				map[string]any{"name": "x", "expression": "'x'"},
				map[string]any{"name": "labels", "expression": "object.metadata.labels"},
				map[string]any{"name": "some", "expression": "object.metadata.?labels"},
				map[string]any{"name": "is", "expression": "'a' in variables.labels && object.spec.?paused.orValue(false)"},
			},
			"lookups": []any{map[string]any{
				"name": "found", "resource": map[string]any{"version": "v1", "resource": "configmaps"}, "namespace": "shop",
				"where": map[string]any{"metadata.name": "a"},
			}},
		}
		if g.chance(10) {
			spec["mode"] = "Enforce"
		}
		if g.chance(50) {
			spec["match"] = g.match()
		}
		if g.chance(10) {
			spec["recheckAfter"] = "1h"
		}
		if g.chance(10) {
			spec["optOut"] = "Forbidden"
		}
		data, err := json.Marshal(map[string]any{
			"apiVersion": "rectifier.dev/v1alpha1", "kind": "Rule", "metadata": map[string]any{"name": fmt.Sprintf("r%03d", i)}, "spec": spec,
		})
		if err != nil {
			panic(err)
		}
		docs = append(docs, string(data))
	}
	return strings.Join(docs, "\n---\n")
}

// mutate takes maps away that are on the way to somewhere, and puts other things in
// their place: what is an error in CEL.
func mutate(c *chooser, v map[string]any, depth int) {
	for _, key := range []string{"metadata", "spec", "labels", "annotations", "a", "b", "l", "m", "template", "example.io/c", "paused"} {
		old, there := v[key]
		if below, isMap := old.(map[string]any); isMap && depth > 0 && c.chance(80) {
			mutate(c, below, depth-1)
		}
		if !there && !c.chance(10) || !c.chance(12) {
			continue
		}
		switch c.IntN(8) {
		case 0, 1, 2:
			delete(v, key)
		case 3:
			v[key] = nil
		case 4:
			v[key] = []any{"a", "x", int64(1), nil, map[string]any{"a": "x"}}
		case 5:
			v[key] = map[string]any{"a": pick[any](c, "x", true, int64(3), 3.0, nil), "b": "y"}
		default:
			v[key] = pick[any](c, "x", "a", int64(1), int64(3), 1.0, 3.0, 0.5, true, false, "w", "yx", "", int64(2), int64(0), int64(1038), -2.5,
				int64(9007199254740992), int64(9007199254740993), int64(-9007199254740993), int64(math.MaxInt64), int64(math.MinInt64),
				9007199254740992.0, 9007199254740994.0, 9223372036854775808.0, 1e30, -1e30)
		}
	}
}

func mutatedInput(t testing.TB, c *chooser) rules.Input {
	in := inventInput(t, c)
	if c.chance(70) {
		mutate(c, in.Object, 3)
	}
	if c.chance(10) {
		in.NamespaceObject = nil
	}
	return in
}

// What an index makes of an object is what all rules make of it, counts included:
// for rules of what it files them by, and for rules of the whole language.
func TestUnracedIndexEvaluatesAsAllRules(t *testing.T) {
	sets, objects := 100, 40
	if testing.Short() {
		sets = 40
	}
	evaluated, of := 0, 0
	for seed := range uint64(sets) {
		c := seeded(seed)
		text := ruleMaker{c}.file()
		switch seed % 5 {
		case 1, 2:
			text = guardMaker{c}.file(8)
		case 3:
			text = guardMaker{c}.file(40)
		case 4:
			text = guardMaker{c}.file(300)
		}
		set, _ := loadText(text)
		x := rules.NewIndex(set.For(deployments))
		for range objects {
			in := mutatedInput(t, c)
			before := runtime.DeepCopyJSON(in.Object)
			if !checkIndex(t, x, in) {
				data, _ := json.Marshal(before)
				t.Fatalf("seed %d: the object was\n%s\nthe rules are\n%s", seed, data, text)
			}
			if seed%5 > 0 {
				evaluated, of = evaluated+x.Candidates(in), of+len(x.Rules())
			}
		}
	}
	t.Logf("%d of %d rules were evaluated", evaluated, of)
	if evaluated > of*2/3 || of < 500*sets {
		t.Error("this tests too little")
	}
}

// The same for the rules of the repository, all of which are taken to be about one
// resource, on objects made up of what they read, write and compare with.
func TestUnracedIndexEvaluatesAsAllRulesOfTheRepository(t *testing.T) {
	var about []*rules.Rule
	for _, r := range collect(t).rules {
		about = append(about, r.About(deployments))
	}
	slices.SortStableFunc(about, func(a, b *rules.Rule) int { return strings.Compare(a.Name, b.Name) })
	c := seeded(7)
	evaluated, of := 0, 0
	for len(about) > 0 {
		n := min(len(about), 1+c.IntN(30))
		for _, r := range about[:n] {
			if c.chance(90) {
				r.Mode = rules.Audit // few rules that change anything are enough: they fight
			}
		}
		set := rules.Together(about[:n]...)
		about = about[n:]
		x := rules.NewIndex(set.All())
		trial := rules.Trial{Resource: deployments, Kind: "Deployment", Namespaced: true, Schema: deploymentType(t), ReplicasPath: []string{"spec", "replicas"}}
		invention := rules.NewInvention(set.All(), uint64(of))
		for range 8 {
			in := invention.Input(trial)
			in.Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			if c.chance(50) {
				mutate(c, in.Object, 3)
			}
			if !checkIndex(t, x, in) {
				data, _ := json.Marshal(in.Object)
				t.Fatalf("the object is %s", data)
			}
			evaluated, of = evaluated+x.Candidates(in), of+len(x.Rules())
		}
	}
	t.Logf("%d of %d rules were evaluated", evaluated, of)
}
