package rules_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// chooser makes the choices of a generator: at random, from a seed, or one
// after the other from the bytes of a fuzzer, which then learns what a byte
// does. When those are used up, every choice is 0: the plainest.
type chooser struct {
	random *rand.Rand // nil: bytes
	bytes  []byte
}

func seeded(seed uint64) *chooser { return &chooser{random: rand.New(rand.NewPCG(seed, 2026))} }

func (c *chooser) IntN(n int) int {
	switch {
	case c.random != nil:
		return c.random.IntN(n)
	case len(c.bytes) == 0:
		return 0
	}
	b := c.bytes[0]
	c.bytes = c.bytes[1:]
	return int(b) % n
}

func (c *chooser) chance(percent int) bool { return c.IntN(100) >= 100-percent }

func pick[T any](c *chooser, from ...T) T { return from[c.IntN(len(from))] }

// Names that rules and objects share, so that they meet; few, so that rules
// meet each other.
var (
	specFields = []string{"a", "b", "l", "m", "replicas", "paused"}
	metaKeys   = []string{"a", "b", "example.io/c"}
)

// ruleMaker makes rules by a grammar: of the language, as far as values go, and
// of patches that touch few fields.
type ruleMaker struct{ *chooser }

// file is a rule file with some rules in it.
func (g ruleMaker) file() string {
	var docs []string
	for i := range 1 + g.IntN(4) {
		docs = append(docs, g.document(fmt.Sprintf("r%d", i)))
	}
	return strings.Join(docs, "\n---\n")
}

func (g ruleMaker) document(name string) string {
	spec := map[string]any{"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"}}
	if g.chance(25) {
		spec["match"] = g.match()
	}
	e := celMaker{chooser: g.chooser, names: []string{"object.spec.?a.orValue(1)"}}
	if g.chance(20) {
		spec["lookups"] = []any{map[string]any{
			"name": "found", "namespace": "${object.metadata.namespace}",
			"resource": map[string]any{"version": "v1", "resource": "configmaps"},
			"where":    map[string]any{"metadata.name": "${object.metadata.?labels.?a.orValue('a')}"},
		}}
		e.names = append(e.names, "lookups.found.size()", "lookups.found")
	}
	if g.chance(35) {
		var variables []any
		for i := range 1 + g.IntN(2) {
			variables = append(variables, map[string]any{"name": fmt.Sprintf("v%d", i), "expression": e.any(2)})
			e.names = append(e.names, fmt.Sprintf("variables.v%d", i))
		}
		spec["variables"] = variables
	}
	if g.chance(10) {
		spec["recheckAfter"] = "1h"
		e.names = append(e.names, "now", "string(now)")
	}
	if g.chance(60) {
		spec["condition"] = e.bool(2)
	}
	if g.chance(10) {
		spec["mode"] = "Audit"
	}
	if g.chance(20) {
		spec["event"] = map[string]any{"reason": "Changed", "message": "it was ${" + e.text(1) + "}, $${so} it is"}
	}
	if patches := g.patches(e); len(patches) == 1 {
		spec["patch"] = patches[0]
	} else {
		spec["patches"] = patches
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "rectifier.dev/v1alpha1", "kind": "Rule", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (g ruleMaker) match() map[string]any {
	switch g.IntN(6) {
	case 0:
		return map[string]any{"names": []any{"w*", "n?ne"}}
	case 1:
		return map[string]any{"excludeNamespaces": []any{"kube-*"}, "deleting": g.chance(50)}
	case 2:
		return map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"a": pick(g.chooser, "x", "y")}}}
	case 3:
		return map[string]any{"labelSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "b", "operator": "NotIn", "values": []any{"x"}}}}}
	case 4:
		return map[string]any{"fieldSelector": pick(g.chooser, "spec.paused=true", "spec.a!=x", "metadata.name=web,spec.b=3", "spec.l=")}
	}
	return map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"env": pick(g.chooser, "prod", "test")}}}
}

func (g ruleMaker) patches(e celMaker) []any {
	var out []any
	for range 1 + g.IntN(2)*g.IntN(2) {
		switch g.IntN(10) {
		case 0:
			out = append(out, map[string]any{"subresource": "scale", "merge": map[string]any{"spec": map[string]any{"replicas": g.value(e, 0, "int")}}})
		case 1:
			out = append(out, map[string]any{"subresource": "status", "merge": map[string]any{"status": g.fields(e, 1)}})
		case 2, 3, 4:
			out = append(out, map[string]any{"json": g.operations(e)})
		case 5:
			out = append(out, map[string]any{"json": "${[{'op': 'add', 'path': '/spec/' + jsonpatch.escapeKey(" + e.text(1) + "), 'value': " + e.any(1) + "}]}"})
		case 6:
			out = append(out, map[string]any{"applyConfiguration": g.configuration(e)})
		default:
			out = append(out, map[string]any{"merge": g.merge(e)})
		}
	}
	return out
}

func (g ruleMaker) merge(e celMaker) map[string]any {
	out := map[string]any{}
	if g.chance(70) {
		out["spec"] = g.fields(e, 2)
	}
	if g.chance(40) {
		out["metadata"] = map[string]any{pick(g.chooser, "labels", "annotations"): g.texts(e)}
	}
	return out
}

// fields are members of spec or status.
func (g ruleMaker) fields(e celMaker, depth int) map[string]any {
	out := map[string]any{}
	for range 1 + g.IntN(2) {
		key := pick(g.chooser, specFields...)
		if g.chance(5) {
			key = "${" + e.text(1) + "}"
		}
		out[key] = g.value(e, depth, "any")
	}
	return out
}

func (g ruleMaker) texts(e celMaker) any {
	if g.chance(10) {
		return nil
	}
	out := map[string]any{}
	for range g.IntN(3) {
		switch key := pick(g.chooser, metaKeys...); g.IntN(5) {
		case 0:
			out[key] = nil
		case 1:
			out[key] = "${" + e.text(1) + "}"
		case 2:
			out[key] = "a-${" + e.text(1) + "}-$${"
		default:
			out[key] = pick(g.chooser, "x", "y", "")
		}
	}
	return out
}

// value is one of a patch.
func (g ruleMaker) value(e celMaker, depth int, want string) any {
	n := g.IntN(10)
	switch {
	case want == "int" && n < 5:
		return g.IntN(4)
	case want == "int":
		return "${" + e.number(1) + "}"
	case n < 3:
		return "${" + e.any(1) + "}"
	case n == 3:
		return nil
	case n == 4:
		return pick(g.chooser, "x", "$${a}", "${'a'}${'b'}", "")
	case n == 5 && depth > 0:
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.value(e, depth-1, "any"))
		}
		return list
	case n <= 7 && depth > 0:
		return g.fields(e, depth-1)
	}
	return pick[any](g.chooser, 1, 2, 3, true, "x", 0.5, 3.0)
}

func (g ruleMaker) operations(e celMaker) []any {
	var out []any
	for range 1 + g.IntN(3) {
		op := map[string]any{"op": pick(g.chooser, "add", "add", "replace", "remove", "test", "move", "copy"), "path": g.pointer()}
		switch op["op"] {
		case "add", "replace", "test":
			op["value"] = g.value(e, 1, "any")
		case "move", "copy":
			op["from"] = g.pointer()
		}
		out = append(out, op)
	}
	return out
}

func (g ruleMaker) pointer() string {
	switch g.IntN(8) {
	case 0:
		return "/metadata/labels/" + pick(g.chooser, "a", "example.io~1c")
	case 1:
		return "/spec/l/" + pick(g.chooser, "0", "1", "-")
	case 2:
		return "/spec/template/spec/containers/0/" + pick(g.chooser, "image", "args")
	}
	return "/spec/" + pick(g.chooser, specFields...) + pick(g.chooser, "", "", "", "/a")
}

func (g ruleMaker) configuration(e celMaker) any {
	container := map[string]any{"name": pick(g.chooser, "c", "d"), "image": g.value(e, 0, "any")}
	spec := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}
	switch g.IntN(4) {
	case 0:
		return "${Object{spec: Object.spec{replicas: " + e.number(1) + ", paused: " + e.bool(1) + "}}}"
	case 1:
		return map[string]any{"metadata": map[string]any{"labels": g.texts(e)}}
	case 2:
		spec["paused"] = nil
	}
	return map[string]any{"spec": spec}
}

// Most of what the grammar makes has to load, or nothing is tested.
func TestUnracedInventedRulesLoad(t *testing.T) {
	total, loaded := 0, 0
	refused := map[string]int{}
	for seed := range uint64(200) {
		text := ruleMaker{seeded(seed)}.file()
		set, problems := loadText(text)
		total, loaded = total+strings.Count(text, "\n---\n")+1, loaded+len(set.All())
		for _, p := range problems {
			refused[p.Msg]++
		}
	}
	t.Logf("%d of %d rules load", loaded, total)
	if loaded < total/2 {
		for msg, n := range refused {
			t.Logf("%d: %s", n, msg)
		}
		t.Errorf("too few")
	}
}
