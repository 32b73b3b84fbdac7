package rules

import (
	"slices"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// Change is what one rule changes on one object by itself, not what it sends
// together with others. It is immutable.
type Change struct {
	rule         *Rule
	parts        []*change
	replicasPath []string // of the object, for parts that go through scale
	secret       bool     // the keys in parts may come from a Secret
}

// Digest is equal for equal changes: the same values put to the same places,
// whether something stood there before or not. Digests can be compared within
// one process.
func (c *Change) Digest() uint64 {
	parts := make([]any, len(c.parts))
	for i, p := range c.parts {
		parts[i] = []any{p.subresource, p.merge, effects(p.ops)}
	}
	return fieldset.Whole().Digest(map[string]any{"": parts})
}

// effects are operations in the shape of JSON, as far as they say what is to be
// where: a replace is an add, and a test changes nothing.
func effects(ops []patch.Op) []any {
	var out []any
	for _, op := range ops {
		switch op.Op {
		case "test":
			continue
		case "replace":
			op.Op = "add"
		}
		out = append(out, []any{op.Op, op.Path.String(), op.From.String(), op.Value})
	}
	return out
}

// Paths are the places that change: keys of maps and indices of lists, from the
// top of the object.
func (c *Change) Paths() [][]string {
	var out [][]string
	for _, p := range c.parts {
		if p.subresource == scale {
			out = append(out, c.replicasPath)
			continue
		}
		out = appendLeaves(out, nil, p.merge)
		for _, op := range p.ops {
			switch op.Op {
			case "test":
				continue
			case "move":
				out = append(out, op.From)
			}
			out = append(out, op.Path)
		}
	}
	return out
}

// appendLeaves adds the paths of a merge patch at which a value is put or
// removed.
func appendLeaves(out [][]string, at []string, m map[string]any) [][]string {
	for k, v := range m {
		path := extend(at, k)
		if inner, ok := v.(map[string]any); ok && len(inner) > 0 {
			out = appendLeaves(out, path, inner)
		} else {
			out = append(out, path)
		}
	}
	return out
}

// Fields names the places that change as people write them, sorted. Where keys
// may come from a Secret, the places are those that the rule's text names.
func (c *Change) Fields() []string {
	if c.secret {
		return c.rule.writtenFields()
	}
	var out []string
	for _, path := range c.Paths() {
		out = append(out, FieldName(path, nil))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// writtenFields names the places that the rule's text names, sorted.
func (r *Rule) writtenFields() []string {
	var out []string
	for _, w := range r.writes {
		out = append(out, w.Field())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
