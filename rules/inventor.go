package rules

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
)

// inventor makes up objects for rules.
type inventor struct {
	*rand.Rand
	rules  []*Rule
	fields *fieldset.Set    // what the rules read and write
	around *fieldset.Set    // and what they read of the Namespace
	lists  [][]string       // where the rules want a list
	absent [][]string       // what the rules want not to be there
	values []any            // that the rules name somewhere
	hints  map[string][]any // and those that they compare a field of this name with
}

func newInventor(rs []*Rule) *inventor {
	g := &inventor{
		Rand: rand.New(rand.NewPCG(1, 2)), rules: rs, fields: fieldset.Empty(), around: namespaceReads(rs), hints: map[string][]any{},
		values: []any{"probe", "probe", int64(1), int64(0), int64(3), true, false, "1", "true"},
	}
	for _, r := range rs {
		g.fields = g.fields.Union(r.objectReads)
		for _, w := range r.writes {
			switch {
			case w.Subresource == scale:
			case w.Kind == KindJSON && !w.Exact && w.Within == nil && len(w.Path) > 0:
				g.lists = append(g.lists, w.Path)
			case w.Within != nil:
				g.fields = g.fields.Union(fieldset.Presence(slices.Concat(w.Path, w.Within)...))
			default:
				g.fields = g.fields.Union(fieldset.Presence(w.Path...))
			}
			if w.Constant && len(w.Path) > 0 && !w.Removes {
				g.hint([]string{w.Path[len(w.Path)-1]}, w.Value)
			}
		}
		g.learn(r)
	}
	return g
}

// input makes up an object that the rules' match blocks select, as far as that
// can be arranged, and what is around it.
func (g *inventor) input(t Trial) Input {
	object, namespace := g.object(), g.namespace()
	meta := metadataOf(object)
	meta["name"] = "probe"
	delete(meta, "deletionTimestamp")
	delete(meta, "namespace")
	if t.Namespaced {
		meta["namespace"] = "probe"
	}
	for _, r := range g.rules {
		g.fit(&r.match, object, meta, namespace, t.Namespaced)
	}
	for _, m := range []map[string]any{meta, metadataOf(namespace)} {
		if annotations, ok := m["annotations"].(map[string]any); ok {
			delete(annotations, SkipAnnotation)
			delete(annotations, SkipUntilAnnotation)
		}
	}
	if t.Kind != "" {
		object["apiVersion"], object["kind"] = t.Resource.GroupVersion().String(), t.Kind
	}
	in := Input{Resource: t.Resource, Object: object, Schema: t.Schema, ReplicasPath: t.ReplicasPath, Now: moment}
	if t.Namespaced {
		in.NamespaceObject = namespace
	}
	in.Lookups = g.world(in)
	return in
}

// object has fields that the rules read or write, and metadata.
func (g *inventor) object() map[string]any {
	object, _ := g.value("", g.fields).(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	for _, path := range g.lists {
		if _, ok := fieldAt(object, path).([]any); !ok && g.IntN(4) > 0 {
			setField(object, path, []any{g.leaf("")})
		}
	}
	for _, path := range g.absent {
		if parent, ok := fieldAt(object, path[:len(path)-1]).(map[string]any); ok && g.IntN(4) > 0 {
			delete(parent, path[len(path)-1])
		}
	}
	if metadataOf(object) == nil {
		object["metadata"] = map[string]any{}
	}
	return object
}

func (g *inventor) namespace() map[string]any {
	namespace, _ := g.value("", g.around).(map[string]any)
	if namespace == nil {
		namespace = map[string]any{}
	}
	if metadataOf(namespace) == nil {
		namespace["metadata"] = map[string]any{"labels": map[string]any{}}
	}
	metadataOf(namespace)["name"] = "probe"
	return namespace
}

// moment is when the trials take place.
var moment = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fit changes an object so that a match block selects it.
func (g *inventor) fit(m *matcher, object, meta, namespace map[string]any, namespaced bool) {
	if m.names != nil {
		meta["name"] = instance(m.names[g.IntN(len(m.names))])
	}
	if m.namespaces != nil && namespaced {
		meta["namespace"] = instance(m.namespaces[g.IntN(len(m.namespaces))])
		metadataOf(namespace)["name"] = meta["namespace"]
	}
	if m.deleting && g.IntN(4) > 0 {
		meta["deletionTimestamp"] = moment.AddDate(0, 0, -1).Format(time.RFC3339)
	}
	g.label(m.labels, meta)
	g.label(m.namespaceLabels, metadataOf(namespace))
	for _, f := range m.fields {
		if f.equal && f.value != "" && f.path[0] != "metadata" {
			setField(object, f.path, f.value)
		}
	}
}

// label gives an object labels that a selector wants.
func (g *inventor) label(s labels.Selector, meta map[string]any) {
	if s == nil {
		return
	}
	all, _ := meta["labels"].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		switch values := r.ValuesUnsorted(); r.Operator() {
		case selection.Exists:
			all[r.Key()] = "probe"
		case selection.DoesNotExist, selection.NotIn, selection.NotEquals:
			delete(all, r.Key())
		default:
			slices.Sort(values)
			all[r.Key()] = values[g.IntN(len(values))]
		}
	}
	meta["labels"] = all
}

// setField sets a value below maps, which are made where there are none.
func setField(object map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next, ok := object[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[key] = next
		}
		object = next
	}
	object[path[len(path)-1]] = value
}

// instance is a name that fits a pattern: as a rule, for most.
func instance(pattern glob) string {
	return strings.NewReplacer("*", "x", "?", "x").Replace(string(pattern))
}

// value makes up a value that has fields of a set; name is the key that it
// stands at.
func (g *inventor) value(name string, s *fieldset.Set) any {
	names := s.Names()
	switch {
	case s.IsWhole(), len(names) == 0 && s.Items().IsEmpty() && !s.HasKeys():
		return g.leaf(name)
	case len(names) == 0 && (s.WholeLists() || !s.Items().IsEmpty()):
		list := make([]any, g.IntN(3))
		for i := range list {
			list[i] = g.value(name, s.Items())
		}
		return list
	case len(names) == 0:
		if g.IntN(3) == 0 {
			return g.leaf(name)
		}
		return map[string]any{"probe": g.leaf("probe")}
	}
	out := make(map[string]any, len(names))
	for _, key := range names {
		if g.IntN(5) > 0 {
			out[key] = g.value(key, s.Field(key))
		}
	}
	return out
}

func (g *inventor) leaf(name string) any {
	if hints := g.hints[name]; len(hints) > 0 && g.IntN(4) > 0 {
		return hints[g.IntN(len(hints))]
	}
	if lower := strings.ToLower(name); (strings.HasSuffix(lower, "time") || strings.HasSuffix(lower, "timestamp")) && g.IntN(4) > 0 {
		return moment.AddDate(0, -g.IntN(4), 0).Format(time.RFC3339)
	}
	switch g.IntN(10) {
	case 0:
		return map[string]any{"probe": "probe"}
	case 1:
		return []any{"probe"}
	}
	return g.values[g.IntN(len(g.values))]
}
