package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// Lookups answers what rules look up beside the object. Implementations read
// caches: an answer never costs a request.
type Lookups interface {
	// Find returns the objects that a query selects, sorted by namespace and
	// name; they are read-only. An error means that it is not known which
	// there are: the rule then makes no decision.
	Find(q Query) ([]map[string]any, error)
}

// Lookup is what a rule looks up, as far as it is known before evaluation.
type Lookup struct {
	Name     string
	Resource schema.GroupVersionResource
	// Namespaced says that only objects of one namespace, which the rule
	// computes, are looked up.
	Namespaced bool
	// Where are the paths whose values the rule compares, sorted.
	Where []string
	// Optional says that the resource need not be served by the cluster.
	Optional bool

	namespace template // nil: all
	where     []template
	selector  template // of a LabelSelector; nil: all
	reads     *fieldset.Set
}

// Query is a Lookup for one object.
type Query struct {
	*Lookup
	Namespace string
	Values    [][]string      // for each of Lookup.Where, the values that it may have
	Selector  labels.Selector // nil: all
}

// Key is where an object stands in an index that serves the lookup: two
// objects that no query can tell apart have the same key. Any of them may be
// built from another Lookup with the same Resource, Namespaced and Where.
func (l *Lookup) Key(object map[string]any) string {
	var b strings.Builder
	if l.Namespaced {
		meta, _ := object["metadata"].(map[string]any)
		namespace, _ := meta["namespace"].(string)
		b.WriteString(namespace)
	}
	for _, path := range l.Where {
		b.WriteString(keyPart(scalarText(fieldAt(object, strings.Split(path, ".")))))
	}
	return b.String()
}

// keyPart is a value as it stands in a key: no two lists of values give the
// same key, whatever is in them.
func keyPart(value string) string { return "\x00" + withoutNUL.Replace(value) }

var withoutNUL = strings.NewReplacer("\x00", "\x01\x02", "\x01", "\x01\x01")

// Index names the index that Key fills.
func (l *Lookup) Index() string {
	name := strings.Join(l.Where, ",")
	if l.Namespaced {
		name = "namespace," + name
	}
	return name
}

// Keys are the keys in the index that a query covers: one for each combination
// of values, without duplicates.
func (q *Query) Keys() []string {
	keys := []string{""}
	if q.Namespaced {
		keys[0] = q.Namespace
	}
	for _, values := range q.Values {
		next := make([]string, 0, len(keys)*len(values))
		for _, k := range keys {
			for _, v := range values {
				next = append(next, k+keyPart(v))
			}
		}
		keys = next
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Selects reports whether labels fit the query's selector.
func (q *Query) Selects(object map[string]any) bool {
	if q.Selector == nil {
		return true
	}
	meta, _ := object["metadata"].(map[string]any)
	return q.Selector.Matches(labelsOf(meta))
}

// query computes the query for one object. No query (nil) and no error means
// that nothing can be found: a value is absent.
func (l *Lookup) query(names expression.Resolver) (*Query, error) {
	q := &Query{Lookup: l, Values: make([][]string, len(l.where))}
	if l.namespace != nil {
		v, err := l.namespace.eval(names)
		if errors.Is(err, expression.ErrAbsent) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("namespace: %w", err)
		}
		s, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("namespace: must be a string, not %s", kindOf(v))
		}
		q.Namespace = strings.Clone(s) // queries outlive the object that they were computed from
	}
	for i, t := range l.where {
		v, err := t.eval(names)
		if errors.Is(err, expression.ErrAbsent) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("where %s: %w", l.Where[i], err)
		}
		if q.Values[i], err = texts(v); err != nil {
			return nil, fmt.Errorf("where %s: %w", l.Where[i], err)
		}
	}
	if l.selector == nil {
		return q, nil
	}
	v, err := l.selector.eval(names)
	if errors.Is(err, expression.ErrAbsent) || errors.Is(err, errAllAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	if q.Selector, err = selectorOf(v); err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	return q, nil
}

// texts are the values that a where clause allows: one, or any of a list.
func texts(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]string, 0, len(list))
	for _, item := range list {
		switch item.(type) {
		case string, bool, int64, float64:
			out = append(out, strings.Clone(scalarText(item)))
		default:
			return nil, fmt.Errorf("must be a string, number or bool, or a list of them, not %s", kindOf(item))
		}
	}
	return out, nil
}

// selectorOf reads a LabelSelector that was computed. As everywhere in
// Kubernetes, an empty one selects all, and null nothing.
func selectorOf(v any) (labels.Selector, error) {
	if v == nil {
		return labels.Nothing(), nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be a mapping, not %s", kindOf(v))
	}
	s := &metav1.LabelSelector{}
	for _, key := range slices.Sorted(maps.Keys(m)) { // so that of several errors always the same is told
		part := m[key]
		switch key {
		case "matchLabels":
			values, ok := part.(map[string]any)
			if !ok && part != nil {
				return nil, fmt.Errorf("matchLabels must be a mapping, not %s", kindOf(part))
			}
			s.MatchLabels = make(map[string]string, len(values))
			for _, k := range slices.Sorted(maps.Keys(values)) {
				text, ok := values[k].(string)
				if !ok {
					return nil, fmt.Errorf("matchLabels.%s must be a string, not %s", k, kindOf(values[k]))
				}
				s.MatchLabels[strings.Clone(k)] = strings.Clone(text)
			}
		case "matchExpressions":
			expressions, err := requirements(part)
			if err != nil {
				return nil, err
			}
			s.MatchExpressions = expressions
		default:
			return nil, fmt.Errorf("unknown field %q", key)
		}
	}
	return metav1.LabelSelectorAsSelector(s)
}

func requirements(v any) ([]metav1.LabelSelectorRequirement, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("matchExpressions must be a list, not %s", kindOf(v))
	}
	out := make([]metav1.LabelSelectorRequirement, 0, len(list))
	for _, item := range list {
		m, _ := item.(map[string]any)
		key, _ := m["key"].(string)
		operator, _ := m["operator"].(string)
		r := metav1.LabelSelectorRequirement{Key: strings.Clone(key), Operator: metav1.LabelSelectorOperator(strings.Clone(operator))}
		values, _ := m["values"].([]any)
		for _, v := range values {
			text, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("a value of matchExpressions must be a string, not %s", kindOf(v))
			}
			r.Values = append(r.Values, strings.Clone(text))
		}
		out = append(out, r)
	}
	return out, nil
}

// lookupsOf merges the lookups of rules by resource and index.
func lookupsOf(rules []*Rule) []*Lookup {
	found := map[string]*Lookup{}
	for _, r := range rules {
		for _, l := range r.Lookups {
			name := ResourceName(l.Resource) + " " + l.Index()
			shared := *l
			if other := found[name]; other != nil {
				shared.reads = other.reads.Union(l.reads)
				shared.Optional = shared.Optional && other.Optional
			}
			found[name] = &shared
		}
	}
	var out []*Lookup
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// SameFor reports whether two states of one object look the same to all that
// look it up: nothing that depends on it has to be evaluated again. It counts
// what their expressions read, so a heartbeat in its status is no change.
func (l *Lookup) SameFor(old, object map[string]any) bool {
	return l.Key(old) == l.Key(object) &&
		labelSet.Digest(old) == labelSet.Digest(object) && // selectors read them
		l.reads.Digest(old) == l.reads.Digest(object)
}

var labelSet = fieldset.Of("metadata", "labels")
