package objectdiff

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Mask says which values of one state of an object are not shown. The zero
// Mask, and a nil one, shows everything.
type Mask struct {
	secret bool     // the object is a Secret
	hidden pathTree // what is hidden beside that
	data   Values   // of the Secret before and after: hidden where it stands elsewhere, too
	// other is the state that this one is compared with: where it has another
	// value, the text that stands for a value says that it has changed.
	other map[string]any
}

// Masks returns the masks for the two states of an object. With computed, the
// change may have been computed from Secrets: then all that differs is hidden as
// well. Nil masks mean that nothing is.
func Masks(before, after map[string]any, computed bool) (old, changed *Mask) {
	secret := before["kind"] == "Secret" || after["kind"] == "Secret"
	if !secret && !computed {
		return nil, nil
	}
	var data Values
	if secret {
		data.addSecret(before)
		data.addSecret(after)
	}
	old, changed = &Mask{secret: secret, data: data}, &Mask{secret: secret, data: data, other: before}
	for _, op := range patch.Diff(before, after) {
		// What a patch puts there together with a copy of data is hidden as a whole.
		if !computed && !data.Within(op.Value) {
			continue
		}
		if op.Op != "add" {
			old.hidden.add(op.Path)
		}
		if op.Op != "remove" {
			changed.hidden.add(op.Path)
		}
	}
	return old, changed
}

// named are the paths of what says which object it is. Who is shown a diff of it
// has been told.
var named = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}

// hides reports whether the value at a path is hidden.
func (m *Mask) hides(path []string, v any) bool {
	switch {
	case m == nil || len(path) == 0:
		return false
	case m.secret && (path[0] == "data" || path[0] == "stringData"):
		return true
	case m.secret && len(path) == 3 && path[0] == "metadata" && path[1] == "annotations" && path[2] == corev1.LastAppliedConfigAnnotation:
		return true
	case m.hidden.covers(path):
		return true
	}
	return m.data.Within(v) && !(len(path) < 3 && slices.Contains(named, strings.Join(path, ".")))
}

// Object returns an object with its hidden values replaced; the object itself
// stays as it is.
func (m *Mask) Object(object map[string]any) map[string]any {
	if m == nil {
		return object
	}
	out, _ := m.value(object, nil).(map[string]any)
	return out
}

func (m *Mask) value(v any, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = m.value(item, append(path[:len(path):len(path)], k))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = m.value(item, append(path[:len(path):len(path)], strconv.Itoa(i)))
		}
		return out
	}
	if m.hides(path, v) {
		return m.text(v, path)
	}
	return v
}

// Ops returns operations that lead to the masked state, with hidden values
// replaced.
func (m *Mask) Ops(ops []patch.Op) []patch.Op {
	if m == nil {
		return ops
	}
	out := make([]patch.Op, len(ops))
	for i, op := range ops {
		op.Value = m.value(op.Value, op.Path)
		out[i] = op
	}
	return out
}

// text stands for a hidden value.
func (m *Mask) text(v any, path []string) string {
	var about []string
	if s, ok := v.(string); ok {
		about = append(about, m.size(s, path))
	}
	if was, had := patch.Find(m.other, path); had && !jsonvalue.Equal(was, v) {
		about = append(about, "changed")
	}
	if about == nil {
		return "***"
	}
	return "*** (" + strings.Join(about, ", ") + ")"
}

// size tells how long a value is: in data of Secrets, when it is decoded.
func (m *Mask) size(s string, path []string) string {
	n := len(s)
	if m.secret && path[0] == "data" {
		if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s)); err == nil {
			n = len(raw)
		}
	}
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// pathTree is a set of paths.
type pathTree struct {
	end   bool
	below map[string]*pathTree
}

func (t *pathTree) add(path []string) {
	for _, key := range path {
		next := t.below[key]
		if next == nil {
			next = &pathTree{}
			if t.below == nil {
				t.below = map[string]*pathTree{}
			}
			t.below[key] = next
		}
		t = next
	}
	t.end = true
}

// covers reports whether a path, or one that it is below, is in the set.
func (t *pathTree) covers(path []string) bool {
	for _, key := range path {
		if t.end {
			return true
		}
		if t = t.below[key]; t == nil {
			return false
		}
	}
	return t.end
}
