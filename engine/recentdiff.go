package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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

// lastApplied repeats a whole object in one of its annotations.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

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
func (d *decision) changesOf(s *shield, request *rules.Request, verdicts []rules.Verdict) (c changes) {
	before, ops, old, changed := d.effect(request)
	hide := newCover(s.writes[d.resource.GroupResource()], d.replicasPath, before)
	room := &trimmer{left: maxChangeBytes}
	for _, op := range ops {
		if len(verdicts) < len(request.Rules) && !madeBy(verdicts, op.Path) {
			continue // the change of a rule that has failed
		}
		if field := hide.covering(op); field != "" {
			c.names([]string{field})
			continue
		}
		f := fieldChange{name: fieldName(before, op.Path), has: op.Op != "remove"}
		if len(c.fields) < maxChanges {
			var was any
			was, f.had = lookUp(before, op.Path, op.Op)
			f.before, f.after = room.copy(masked(old, op.Path, was)), room.copy(masked(changed, op.Path, op.Value))
		}
		c.add(f)
	}
	return c
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
		replicas, _ := lookUp(before, d.replicasPath, "")
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
	values       map[string]bool
}

func newCover(writes []*rules.Write, replicasPath []string, object map[string]any) *cover {
	c := &cover{writes: writes, replicasPath: replicasPath, values: map[string]bool{}}
	for _, w := range writes {
		if v, ok := lookUp(object, w.Path, ""); ok {
			c.collect(v)
		}
	}
	return c
}

func (c *cover) collect(v any) {
	switch v := v.(type) {
	case string:
		c.values[v] = v != ""
	case map[string]any:
		for _, item := range v {
			c.collect(item)
		}
	case []any:
		for _, item := range v {
			c.collect(item)
		}
	}
}

// covering returns the name of what must not be shown of an operation; empty: it
// may be shown.
func (c *cover) covering(op patch.Op) string {
	for _, w := range c.writes {
		if w.Subresource != "scale" && meet(w.Path, op.Path) || w.Subresource == "scale" && meet(c.replicasPath, op.Path) {
			return w.Field()
		}
	}
	if op.Path[len(op.Path)-1] == lastApplied || c.copies(op.Value) {
		return (&rules.Write{Path: op.Path}).Field()
	}
	return ""
}

func (c *cover) copies(v any) bool {
	switch v := v.(type) {
	case string:
		return c.values[v]
	case map[string]any:
		for _, item := range v {
			if c.copies(item) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, c.copies)
	}
	return false
}

// lookUp returns the value at a path, which an operation to add has only if it
// is a key of a map: in a list, it makes room.
func lookUp(object map[string]any, path []string, op string) (any, bool) {
	var v any = object
	for i, key := range path {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n < 0 || n >= len(in) || op == "add" && i == len(path)-1 {
				return nil, false
			}
			v = in[n]
		default:
			return nil, false
		}
	}
	return v, len(path) > 0
}

// fieldName spells a path, with the indices of lists in brackets.
func fieldName(object map[string]any, path patch.Pointer) string {
	var b strings.Builder
	for i, key := range path {
		in, _ := lookUp(object, path[:i], "")
		_, isList := in.([]any)
		switch {
		case isList:
			b.WriteString("[" + key + "]")
		case strings.ContainsAny(key, "./ '\""):
			b.WriteString("['" + key + "']")
		case i > 0:
			b.WriteString("." + key)
		default:
			b.WriteString(key)
		}
	}
	return truncate(b.String(), maxChangeString)
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
		if key == lastApplied {
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
