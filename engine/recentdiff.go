package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/objectdiff"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// FieldChange is one field of an object that changes.
type FieldChange struct {
	// Field is its path, as people write it: spec.containers[0].image.
	Field string `json:"field"`
	// Before and After are its values as YAML, cut where they are long; empty
	// where there is none. With Hidden both are empty.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Hidden says that the values are not shown: they may come from a Secret.
	// With an audit, none was computed.
	Hidden bool `json:"hidden,omitempty"`
}

const (
	maxChanges      = 20   // fields of one activity
	maxChangeBytes  = 4096 // of all their values together
	maxChangeString = 512  // of one string
	cut             = "…"  // stands for what was cut off
)

// changes are what an activity keeps of what it changed.
type changes struct {
	fields []fieldChange
	more   int
}

type fieldChange struct {
	name          string
	had, has      bool
	before, after any // copies, cut to a size
	hidden        bool
}

// names adds fields whose values are not kept.
func (c *changes) names(fields []string) {
	for _, name := range fields {
		c.add(fieldChange{name: name, hidden: true})
	}
}

func (c *changes) add(f fieldChange) {
	switch {
	case f.hidden && slices.ContainsFunc(c.fields, func(g fieldChange) bool { return g.hidden && g.name == f.name }):
	case len(c.fields) == maxChanges:
		c.more++
	default:
		c.fields = append(c.fields, f)
	}
}

// changesOf finds what a request changes for some of its rules. What a merge patch
// changes costs as much time as there is of it, whatever the size of the object.
func (d *decision) changesOf(request *rules.Request, verdicts []rules.Verdict) (c changes) {
	before, ops, old, changed := d.effect(request)
	hide := d.cover(request, ops)
	room := &trimmer{left: maxChangeBytes}
	for _, op := range ops {
		at := d.place(request, op)
		if len(verdicts) < len(request.Rules) && !madeBy(verdicts, at) {
			continue // the change of a rule that has failed
		}
		was, had := stoodAt(before, op)
		if field := hide.covering(at, was, op.Value); field != "" {
			c.names([]string{field})
			continue
		}
		f := fieldChange{name: fieldName(d.object.Object, at), had: had, has: op.Op != "remove"}
		if len(c.fields) < maxChanges {
			f.before, f.after = room.copy(masked(old, op.Path, was)), room.copy(masked(changed, op.Path, op.Value))
		}
		c.add(f)
	}
	return c
}

// place is where in the object an operation of a request changes something.
func (d *decision) place(request *rules.Request, op patch.Op) patch.Pointer {
	if request.Subresource == "scale" {
		return d.replicasPath // what the Scale calls spec.replicas
	}
	return op.Path
}

// masked is a value that stands at a path, without what is secret.
func masked(m *objectdiff.Mask, path patch.Pointer, v any) any {
	return m.Ops([]patch.Op{{Op: "add", Path: path, Value: v}})[0].Value
}

// effect returns an object, for scale one that has nothing but its replicas, what a
// request changes in it, and the masks for its values before and after.
func (d *decision) effect(request *rules.Request) (before map[string]any, ops []patch.Op, old, changed *objectdiff.Mask) {
	before = d.object.Object
	if request.Subresource == "scale" {
		replicas, _ := patch.Find(before, d.replicasPath)
		before = map[string]any{"spec": map[string]any{"replicas": replicas}}
	}
	ops = request.Operations(before)
	secret := d.resource.GroupResource() == secretsResource
	if request.Type() == types.MergePatchType && !secret {
		return before, ops, nil, nil
	}
	after, err := patch.ApplyOps(before, ops)
	if err != nil {
		return before, nil, nil, nil // an operation that needs what another request brings
	}
	if secret {
		named := maps.Clone(before)
		named["kind"] = "Secret" // what masks go by, whatever the cache has
		old, changed = objectdiff.Masks(named, after, false)
	}
	return before, patch.Diff(before, after), old, changed
}

var secretsResource = schema.GroupResource{Resource: "secrets"}

// madeBy reports whether one of the rules has changed what is at a path.
func madeBy(verdicts []rules.Verdict, path patch.Pointer) bool {
	return slices.ContainsFunc(verdicts, func(v rules.Verdict) bool {
		return slices.ContainsFunc(v.Change.Paths(), func(p []string) bool { return meet(p, path) })
	})
}

// meet reports whether one path leads to the other.
func meet(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// cover says which changes of an object are not shown, whoever makes them: what
// is or was where shielded rules write, and copies of that.
type cover struct {
	writes       []*rules.Write
	replicasPath []string
	values       objectdiff.Values
}

// cover is that of an object for the operations of a request.
func (d *decision) cover(request *rules.Request, ops []patch.Op) *cover {
	c := &cover{writes: d.shield().Writes(d.resource.GroupResource()), replicasPath: d.replicasPath}
	for _, w := range c.writes {
		if len(c.pathOf(w)) == 0 {
			continue // it covers everything
		}
		if v, ok := patch.Find(d.object.Object, c.pathOf(w)); ok {
			c.values.Add(v)
		}
	}
	for _, op := range ops {
		if c.written(d.place(request, op)) != nil {
			c.values.Add(op.Value)
		}
	}
	return c
}

// pathOf is where a rule writes in the object.
func (c *cover) pathOf(w *rules.Write) []string {
	if w.Subresource == "scale" {
		return c.replicasPath
	}
	return w.Path
}

// written returns the write of a shielded rule that is about a path; nil: none is.
func (c *cover) written(path patch.Pointer) *rules.Write {
	for _, w := range c.writes {
		if meet(c.pathOf(w), path) {
			return w
		}
	}
	return nil
}

// covering returns the name of what must not be shown of a change at a path of the
// object; empty: it may be shown.
func (c *cover) covering(path patch.Pointer, was, is any) string {
	if w := c.written(path); w != nil {
		return w.Field()
	}
	if path[len(path)-1] == corev1.LastAppliedConfigAnnotation || c.values.Within(was) || c.values.Within(is) {
		return rules.FieldName(path, nil)
	}
	return ""
}

// stoodAt returns what an operation puts its value in the place of. To add to a
// list makes room instead.
func stoodAt(object map[string]any, op patch.Op) (any, bool) {
	if op.Op == "add" {
		if parent, _ := patch.Find(object, op.Path[:len(op.Path)-1]); isList(parent) {
			return nil, false
		}
	}
	return patch.Find(object, op.Path)
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// fieldName spells a path, with the indices of lists in brackets.
func fieldName(object map[string]any, path patch.Pointer) string {
	return truncate(rules.FieldName(path, func(i int) bool {
		in, _ := patch.Find(object, path[:i])
		return isList(in)
	}), maxChangeString)
}

// trimmer copies values as long as there is room.
type trimmer struct{ left int }

func (t *trimmer) copy(v any) any {
	if t.left <= 0 {
		return cut
	}
	t.left -= 8
	switch v := v.(type) {
	case string:
		v = strings.Clone(truncate(v, min(max(t.left, len(cut)), maxChangeString)))
		t.left -= len(v)
		return v
	case map[string]any:
		return t.copyMap(v)
	case []any:
		out := make([]any, 0, min(len(v), maxChanges))
		for _, item := range v {
			if t.left <= 0 {
				return append(out, cut)
			}
			out = append(out, t.copy(item))
		}
		return out
	}
	return v
}

func (t *trimmer) copyMap(m map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if t.left <= 0 {
			out[cut] = cut
			break
		}
		t.left -= len(key)
		name := strings.Clone(truncate(key, maxChangeString))
		if key == corev1.LastAppliedConfigAnnotation {
			out[name] = "***"
			continue
		}
		out[name] = t.copy(m[key])
	}
	return out
}

// render puts changes into words.
func (c *changes) render() (out []FieldChange, more int) {
	for _, f := range c.fields {
		change := FieldChange{Field: f.name, Hidden: f.hidden}
		if f.had && !f.hidden {
			change.Before = inYAML(f.before)
		}
		if f.has && !f.hidden {
			change.After = inYAML(f.after)
		}
		out = append(out, change)
	}
	return out, c.more
}

func inYAML(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Sprintf("(%T)", v)
	}
	return strings.TrimSuffix(string(text), "\n")
}
