package patch

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

// decode reads JSON as the API machinery does: whole numbers become int64.
func decode(t testing.TB, s string) any {
	t.Helper()
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(s), &v); err != nil {
		t.Fatalf("bad JSON in the test: %v: %s", err, s)
	}
	return v
}

func object(t testing.TB, s string) map[string]any {
	t.Helper()
	return decode(t, s).(map[string]any)
}

// text writes a value as this package does.
func text(t testing.TB, v any) string {
	t.Helper()
	e := encoder{limit: 1 << 30}
	if err := e.value(v, 0); err != nil {
		t.Fatalf("write %#v: %v", v, err)
	}
	return string(e.buf)
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = clone(e)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	case []Op:
		out := make([]Op, len(v))
		for i, op := range v {
			op.Value = clone(op.Value)
			out[i] = op
		}
		return out
	}
	return v
}

// frozen remembers values and fails the test if one of them has changed at its end.
func frozen(t testing.TB, values ...any) (check func()) {
	t.Helper()
	before := make([]any, len(values))
	for i, v := range values {
		before[i] = clone(v)
	}
	return func() {
		t.Helper()
		for i, v := range values {
			if !reflect.DeepEqual(before[i], v) {
				t.Fatalf("value %d was modified (-before +after):\n%s", i, cmp.Diff(before[i], v))
			}
		}
	}
}

// generator makes small JSON values over few keys, so that patches meet objects.
type generator struct {
	*rand.Rand
	nulls  bool // nulls at any place of values (patches have them anyway)
	floats bool // fractions and whole doubles
}

func newGenerator(seed uint64) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 7)), floats: true}
}

var genKeys = []string{"a", "b", "c", "metadata", "annotations", "finalizers", "x/y~z"}

func (g *generator) key() string { return genKeys[g.IntN(len(genKeys))] }

func (g *generator) scalar() any {
	switch g.IntN(8) {
	case 0:
		return g.IntN(2) == 0
	case 1:
		return ""
	case 2:
		return "<&> \u00e9 \u2028 \"q\""
	case 3:
		if g.floats {
			return float64(g.IntN(3)) / 2
		}
	case 4:
		return int64(9007199254740993)
	case 5:
		if g.nulls {
			return nil
		}
	}
	return int64(g.IntN(3))
}

func (g *generator) value(depth int) any {
	switch n := g.IntN(10); {
	case depth > 0 && n < 4:
		return g.object(depth - 1)
	case depth > 0 && n < 6:
		return g.list(depth - 1)
	}
	return g.scalar()
}

func (g *generator) object(depth int) map[string]any {
	m := map[string]any{}
	for range g.IntN(4) {
		m[g.key()] = g.value(depth)
	}
	return m
}

func (g *generator) list(depth int) []any {
	l := []any{}
	for range g.IntN(4) {
		l = append(l, g.value(depth))
	}
	return l
}

// merge makes a merge patch: removals are frequent, and lists hold nulls too.
func (g *generator) merge(depth int) map[string]any {
	m := map[string]any{}
	for range g.IntN(4) {
		switch n := g.IntN(10); {
		case n < 3:
			m[g.key()] = nil
		case n < 7 && depth > 0:
			m[g.key()] = g.merge(depth - 1)
		default:
			old := g.nulls
			g.nulls = true
			v := g.value(depth)
			g.nulls = old
			m[g.key()] = v
		}
	}
	return m
}

// path makes a pointer that often leads somewhere in doc.
func (g *generator) path(doc any) Pointer {
	var p Pointer
	for len(p) == 0 || g.IntN(3) > 0 && len(p) < 5 {
		switch node := doc.(type) {
		case map[string]any:
			key := g.key()
			p, doc = append(p, key), node[key]
		case []any:
			token := g.index(len(node))
			p, doc = append(p, token), nil
			if i, ok := index(token); ok && i < len(node) {
				doc = node[i]
			}
		default:
			if len(p) > 0 && g.IntN(4) > 0 {
				return p
			}
			p = append(p, g.key())
		}
	}
	return p
}

func (g *generator) index(length int) string {
	switch g.IntN(10) {
	case 0:
		return "-"
	case 1:
		return []string{"-1", "01", "+0", "00", "1e0", "a", "99999999999999999999"}[g.IntN(7)]
	}
	return fmt.Sprint(g.IntN(length + 2))
}

func (g *generator) ops(doc map[string]any) []Op {
	var ops []Op
	for range 1 + g.IntN(4) {
		op := Op{Op: []string{"add", "add", "replace", "remove", "move", "copy", "test"}[g.IntN(7)], Path: g.path(doc)}
		takes := opMembers[op.Op]
		if takes.from {
			op.From = g.path(doc)
		}
		if takes.value {
			op.HasValue, op.Value = true, g.value(2)
			if have, err := lookup(doc, op.Path); err == nil && op.Op == "test" && g.IntN(3) > 0 {
				op.Value = have
			}
		}
		ops = append(ops, op)
	}
	return ops
}
