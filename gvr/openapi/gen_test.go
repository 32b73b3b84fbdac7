package openapi

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// builtinKinds lists all kinds of the embedded schemas, sorted.
func builtinKinds(t testing.TB) []schema.GroupVersionKind {
	t.Helper()
	doc, err := builtinDocument()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := decodeDefinitions(doc.definitions)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []schema.GroupVersionKind
	for _, definition := range definitions {
		list, _ := definition.Extensions[gvkExtension].([]any)
		for _, item := range list {
			m := item.(map[string]any)
			kinds = append(kinds, schema.GroupVersionKind{
				Group: m["group"].(string), Version: m["version"].(string), Kind: m["kind"].(string),
			})
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

func mustBuiltin(t testing.TB, gvk schema.GroupVersionKind) *Type {
	t.Helper()
	typ, err := Builtin().Type(t.Context(), gvk)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// generator makes random values of a type.
type generator struct {
	*rand.Rand
	schema *smd.Schema
	// partial makes values like those of a configuration: few fields, unique keys, no atomic values.
	partial bool
	// atomics puts values into a configuration that must not be there.
	atomics bool
	// members puts such values into a configuration below members of maps only.
	members bool
	// wrong, in percent, is how often a value is not what the schema wants.
	wrong int
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) object(typ *Type) map[string]any {
	v, _ := g.mapOf(g.resolve(typ.root).Map, 0, !g.partial || g.atomics).(map[string]any)
	apiVersion, kind := typ.GVK().ToAPIVersionAndKind()
	v["apiVersion"], v["kind"] = apiVersion, kind
	return v
}

func (g *generator) resolve(ref smd.TypeRef) smd.Atom {
	atom, ok := g.schema.Resolve(ref)
	if !ok {
		panic(fmt.Sprintf("unresolved %v", ref))
	}
	return atom
}

// value makes a value; skip says that none should be there. atomics permits lists and maps that a configuration must not have.
func (g *generator) value(ref smd.TypeRef, depth int, atomics bool) (v any, skip bool) {
	if g.chance(g.wrong) {
		return []any{"x", int64(1), true, 1.5, map[string]any{"x": "y"}, []any{"z"}}[g.IntN(6)], false
	}
	if g.chance(3) {
		return nil, false
	}
	atom := g.resolve(ref)
	var forms []func() any
	if atom.Scalar != nil {
		forms = append(forms, func() any { return g.scalar(*atom.Scalar) })
	}
	if atom.Map != nil && (atom.Map.ElementRelationship != smd.Atomic || atomics) {
		forms = append(forms, func() any { return g.mapOf(atom.Map, depth, atomics) })
	}
	if atom.List != nil && (atom.List.ElementRelationship != smd.Atomic || atomics || isDeduced(ref)) {
		forms = append(forms, func() any { return g.listOf(atom.List, depth, atomics || isDeduced(ref)) })
	}
	if len(forms) == 0 {
		return nil, true
	}
	return forms[g.IntN(len(forms))](), false
}

func (g *generator) scalar(s smd.Scalar) any {
	values := map[smd.Scalar][]any{
		smd.String:  {"", "a", "b", "c", "TCP"},
		smd.Boolean: {true, false},
		smd.Numeric: {int64(0), int64(1), int64(2), 2.0, 2.5, int64(9007199254740993)},
	}
	values[smd.Untyped] = slices.Concat(values[smd.String], values[smd.Boolean], values[smd.Numeric])
	return values[s][g.IntN(len(values[s]))]
}

func (g *generator) mapOf(t *smd.Map, depth int, atomics bool) any {
	out := map[string]any{}
	percent := 70
	if g.partial {
		percent = 55
	}
	if depth > 6 {
		percent /= 3
	}
	if depth > 14 {
		return out
	}
	// The schema has its fields in the order of a map: another one in each run.
	byName := func(a, b smd.StructField) int { return strings.Compare(a.Name, b.Name) }
	for _, field := range slices.SortedFunc(slices.Values(t.Fields), byName) {
		if !g.chance(percent) {
			continue
		}
		if v, skip := g.value(field.Type, depth+1, atomics && (!g.partial || g.chance(80))); !skip {
			out[field.Name] = v
		}
	}
	if t.ElementType != (smd.TypeRef{}) {
		for range g.IntN(3) {
			if v, skip := g.value(t.ElementType, depth+1, !g.partial || g.members); !skip {
				out[[]string{"k1", "k2", "k.3/x", "k4"}[g.IntN(4)]] = v
			}
		}
	}
	if g.chance(g.wrong) {
		out["noSuchField"] = "x"
	}
	return out
}

func (g *generator) listOf(t *smd.List, depth int, atomics bool) any {
	out := []any{}
	seen := map[string]bool{}
	for range g.IntN(5) {
		item, skip := g.value(t.ElementType, depth+1, atomics)
		if skip || t.ElementRelationship == smd.Associative && item == nil && g.wrong == 0 {
			continue
		}
		if m, ok := item.(map[string]any); ok && len(t.Keys) > 0 && !g.chance(g.wrong) {
			g.setKeys(t, m, depth)
		}
		if t.ElementRelationship == smd.Associative && !g.chance(g.wrong) {
			key, err := elementKey(g.schema, t, item)
			// Objects may have elements of the same key, configurations must not.
			if err != nil || seen[key] && (g.partial || !g.chance(5)) {
				continue
			}
			seen[key] = true
		}
		out = append(out, item)
	}
	return out
}

func (g *generator) setKeys(t *smd.List, item map[string]any, depth int) {
	fields := g.resolve(t.ElementType).Map
	for _, name := range t.Keys {
		if ref, ok := fieldType(fields, name); ok && g.chance(85) {
			if v, skip := g.value(ref, depth+1, true); !skip && v != nil {
				item[name] = v
			}
		}
	}
}

// clone copies a value deeply, types and all.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		for key := range out {
			out[key] = clone(out[key])
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = clone(out[i])
		}
		return out
	}
	return v
}
