package rules_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rectifier-dev/rectifier/rules"
)

// odd are values that nobody expects where they are.
var odd = []any{
	nil, "", "x", "3", "a b", int64(0), int64(1), int64(7), 0.5, 3.0, true, false, map[string]any{}, []any{}, []any{nil}, []any{"x"},
	map[string]any{"a": "x"}, map[string]any{"name": "c"}, []any{map[string]any{"name": "c", "image": "i"}}, map[string]any{"0": "x", "a": nil},
}

// mutated is a copy of a value in which something is wrong: keys gone or new, values
// of another kind, null or from elsewhere, lists shorter or in another order. One of
// so many places is.
func (p *projecting) mutated(v any, one int, elsewhere []any) any {
	if p.IntN(one) == 0 {
		if len(elsewhere) > 0 && p.IntN(3) == 0 {
			return pick(p.chooser, elsewhere...)
		}
		return pick(p.chooser, odd...)
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if p.IntN(one) > 0 {
				out[key] = p.mutated(v[key], one, elsewhere)
			}
		}
		if p.IntN(one) == 0 {
			out[pick(p.chooser, "a", "b", "spec", "labels", "annotations", "deletionTimestamp", "probe")] = pick(p.chooser, odd...)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			out = append(out, p.mutated(x, one, elsewhere))
		}
		switch p.IntN(one) {
		case 0:
			return []any{}
		case 1:
			slices.Reverse(out)
		case 2:
			return out[:len(out)/2]
		case 3:
			return append(out, pick(p.chooser, odd...))
		}
		return out
	}
	return v
}

func (p *projecting) mutatedObject(o map[string]any) map[string]any {
	elsewhere := slices.Collect(maps.Values(o))
	slices.SortFunc(elsewhere, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	if m, ok := p.mutated(o, 8+p.IntN(60), elsewhere).(map[string]any); ok {
		return m
	}
	return map[string]any{"metadata": map[string]any{"name": "x"}}
}

// disturb changes an input, and what is around the object, a little or not at all.
func (p *projecting) disturb(in rules.Input) rules.Input {
	in.Explain, in.HasStatus = p.chance(60), p.chance(50)
	if p.chance(60) {
		in.Object = p.mutatedObject(in.Object)
	}
	if p.chance(15) { // opt-outs
		if meta, ok := in.Object["metadata"].(map[string]any); ok {
			meta = maps.Clone(meta)
			in.Object = maps.Clone(in.Object)
			in.Object["metadata"], meta["annotations"] = meta, p.optOut(meta["annotations"])
		}
	}
	switch {
	case in.NamespaceObject == nil:
	case p.chance(10):
		in.NamespaceObject = nil
	case p.chance(10):
		in.NamespaceObject = map[string]any{"metadata": map[string]any{"name": "n", "annotations": p.optOut(nil)}}
	case p.chance(40):
		in.NamespaceObject = p.mutatedObject(in.NamespaceObject)
	}
	world, _ := in.Lookups.(rules.World)
	a := aside{rules.World{}, p.chance(5)}
	for resource, objects := range world {
		for _, o := range objects {
			if p.chance(30) {
				o = p.mutatedObject(o)
			}
			a.World[resource] = append(a.World[resource], o)
		}
	}
	in.Lookups = a
	if p.chance(3) {
		in.Lookups = nil
	}
	return in
}

func (p *projecting) optOut(annotations any) map[string]any {
	out := map[string]any{"probe": "x"}
	if m, ok := annotations.(map[string]any); ok {
		out = maps.Clone(m)
	}
	if p.chance(70) {
		out["rectifier.dev/skip"] = pick[any](p.chooser, "*", "r0", "short", "true", "", nil, int64(1))
	}
	if p.chance(40) {
		out["rectifier.dev/skip-until"] = pick[any](p.chooser, "2026-06-01T00:00:00Z", "2025-06-01T00:00:00Z", "soon", nil)
	}
	return out
}
