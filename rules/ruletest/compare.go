package ruletest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// path leads to a part of a value: keys are strings, indices of lists ints.
type path []any

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// String spells a path as in spec.containers[0].image, with keys that are no
// words as in metadata.labels['example.io/team'].
func (p path) String() string {
	var s strings.Builder
	for i, step := range p {
		key, isKey := step.(string)
		switch {
		case !isKey:
			fmt.Fprintf(&s, "[%d]", step)
		case !plainKey.MatchString(key):
			fmt.Fprintf(&s, "['%s']", key)
		case i > 0:
			s.WriteString("." + key)
		default:
			s.WriteString(key)
		}
	}
	return s.String()
}

func (p path) child(step any) path { return append(p[:len(p):len(p)], step) }

// absent stands for what is not there; in an object, null is that too.
type absent struct{}

// difference is a place where two values are not the same. Either side may be
// absent{}.
type difference struct {
	at        path
	want, got any
}

// missing lists where an object does not hold what is wanted: mappings may hold
// more, lists must have the same length, null wants the absence.
func missing(want, got any, at path) []difference {
	switch want := want.(type) {
	case nil, absent:
		if !isAbsent(got) {
			return []difference{{at, absent{}, got}}
		}
		return nil
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			break
		}
		var out []difference
		for _, key := range slices.Sorted(maps.Keys(want)) {
			out = append(out, missing(want[key], member(have, key), at.child(key))...)
		}
		return out
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			break
		}
		var out []difference
		for i := range want {
			out = append(out, missing(want[i], have[i], at.child(i))...)
		}
		return out
	}
	if patch.Equal(want, got) {
		return nil
	}
	return []difference{{at, want, got}}
}

// differences lists where two values are not the same, each as deep as it can
// be told.
func differences(want, got any, at path) []difference {
	if isAbsent(want) && isAbsent(got) {
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(want)
		maps.Copy(keys, have)
		var out []difference
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			out = append(out, differences(member(want, key), member(have, key), at.child(key))...)
		}
		return out
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			break
		}
		var out []difference
		for i := range want {
			out = append(out, differences(want[i], have[i], at.child(i))...)
		}
		return out
	}
	if patch.Equal(want, got) {
		return nil
	}
	return []difference{{at, want, got}}
}

func isAbsent(v any) bool {
	_, ok := v.(absent)
	return ok || v == nil
}

func member(m map[string]any, key string) any {
	if v, ok := m[key]; ok && v != nil {
		return v
	}
	return absent{}
}

// nodeAt finds the node that a path leads to, as far as it goes.
func nodeAt(n *yaml.Node, p path) *yaml.Node {
	n = yamldoc.Resolve(n)
	for _, step := range p {
		var next *yaml.Node
		switch step := step.(type) {
		case string:
			_, next = yamldoc.Field(n, step)
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = yamldoc.Resolve(n.Content[step])
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
