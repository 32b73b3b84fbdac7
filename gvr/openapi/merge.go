package openapi

import (
	"maps"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// merger merges a configuration that checker has passed into an object that nobody has checked. It goes where the configuration
// goes, and copies on the way back what has changed.
type merger struct {
	schema *smd.Schema
	err    error // the first
}

func (m *merger) fail(at *path, detail string) {
	if m.err == nil {
		m.err = &FieldError{Path: at.String(), Detail: "in the object: " + detail, Err: ErrElement}
	}
}

// value returns live with config merged into it; live itself where that is the same. An absent live is nil.
func (m *merger) value(at *path, ref smd.TypeRef, live, config any) any {
	atom, _ := m.schema.Resolve(ref) // resolved: checker was here
	switch c := config.(type) {
	case nil:
		return mergeNull(atom, live)
	case map[string]any:
		l, ok := live.(map[string]any)
		switch {
		case !ok || len(l) == 0 && len(c) > 0:
			return config
		case len(c) == 0:
			return live
		}
		return m.mapItems(at, atom.Map, l, c)
	case []any:
		l, ok := live.([]any)
		switch {
		case isDeduced(ref) || !ok || len(l) == 0 && len(c) > 0:
			return unlessEqual(live, config)
		case len(c) == 0:
			return live
		}
		return m.listItems(at, ref, atom.List, l, c)
	}
	return unlessEqual(live, config)
}

// mergeNull is what structured-merge-diff does with null. It takes anything; where it stands for a map or a list it is one
// without members, and adds none.
func mergeNull(atom smd.Atom, live any) any {
	switch l := live.(type) {
	case map[string]any:
		if atom.Map != nil && atom.Map.ElementRelationship != smd.Atomic && len(l) > 0 {
			return live
		}
	case []any:
		isList := atom.List != nil && atom.Map == nil && atom.Scalar == nil
		if isList && atom.List.ElementRelationship == smd.Associative && len(l) > 0 {
			return live
		}
	}
	return nil
}

func (m *merger) mapItems(at *path, t *smd.Map, live, config map[string]any) map[string]any {
	out, copied := live, false
	for key, c := range config {
		ref, _ := fieldType(t, key)
		l, exists := live[key]
		merged := m.value(&path{parent: at, key: key, isKey: true}, ref, l, c)
		if exists && same(l, merged) {
			continue
		}
		if !copied {
			out, copied = maps.Clone(live), true
		}
		out[key] = merged
	}
	return out
}

// listItems merges associative lists. Which element comes where is structured-merge-diff's rule, and must be: the order of
// containers is the order in which they start.
func (m *merger) listItems(at *path, ref smd.TypeRef, t *smd.List, live, config []any) []any {
	positions := make(map[string]int, len(live)) // of the elements of live
	for i, item := range live {
		key, err := elementKey(m.schema, t, item)
		if err != nil {
			m.fail(&path{parent: at, index: i}, err.Error())
			return live
		}
		if _, ok := positions[key]; ok {
			return m.duplicates(at, ref, live, config)
		}
		positions[key] = i
	}
	toConfig, toLive := make([]int, len(live)), make([]int, len(config)) // the same element on the other side, or -1
	for i := range toConfig {
		toConfig[i] = -1
	}
	for j, item := range config {
		key, _ := elementKey(m.schema, t, item) // it has one: checker was here
		toLive[j] = -1
		if i, ok := positions[key]; ok {
			toConfig[i], toLive[j] = j, i
		}
	}
	out := make([]any, 0, len(live)+len(config))
	interleave(toConfig, toLive, func(i, j int) {
		switch {
		case j < 0:
			out = append(out, live[i])
		case i < 0:
			out = append(out, config[j])
		default:
			out = append(out, m.value(&path{parent: at, index: i}, t.ElementType, live[i], config[j]))
		}
	})
	if sameItems(live, out) {
		return live
	}
	return out
}

// interleave decides the order of a merged list. toConfig and toLive give, for the elements of one list, the position of the
// same element in the other one, or -1. emit is called for each element of the result with its two positions.
//
// Elements of live alone come where they stand in live, before the first element of config that is in the way; elements that
// both have come in the order of config.
func interleave(toConfig, toLive []int, emit func(i, j int)) {
	var shared []int // positions in config, still to come
	for j, i := range toLive {
		if i >= 0 {
			shared = append(shared, j)
		}
	}
	emitted := make([]bool, len(toLive))
	take := func(i, j int) {
		emit(i, j)
		emitted[j] = true
		if len(shared) > 0 && shared[0] == j {
			shared = shared[1:]
		}
	}
	for i, j := 0, 0; i < len(toConfig) || j < len(toLive); {
		if i < len(toConfig) && j < len(toLive) {
			if toConfig[i] == j {
				take(i, j)
				i, j = i+1, j+1
				continue
			}
			if toConfig[i] >= 0 && len(shared) > 0 && shared[0] != toConfig[i] {
				i++ // it comes later, where config has it
				continue
			}
		}
		if i < len(toConfig) {
			if toConfig[i] < 0 {
				emit(i, -1)
				i++
				continue
			}
			if emitted[toConfig[i]] {
				i++
			}
		}
		if j < len(toLive) {
			take(toLive[j], j)
			j++
		}
	}
}

// duplicates merges into a list in which two elements have the same key; for env the API server admits that. It is rare, and
// what becomes of it is subtle, so the library itself does it.
func (m *merger) duplicates(at *path, ref smd.TypeRef, live, config []any) []any {
	var merged *typed.TypedValue
	l, err := typed.AsTyped(value.NewValueInterface(live), m.schema, ref, typed.AllowDuplicates)
	if err == nil {
		var c *typed.TypedValue
		if c, err = typed.AsTyped(value.NewValueInterface(config), m.schema, ref); err == nil {
			merged, err = l.Merge(c)
		}
	}
	if err == nil {
		if out, ok := merged.AsValue().Unstructured().([]any); ok {
			return unlessEqual(live, out).([]any)
		}
	}
	m.fail(at, "elements have the same key, and the list is not as the schema wants it") // err holds values
	return live
}
