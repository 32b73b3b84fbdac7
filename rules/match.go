package rules

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// matcher is a compiled match block. All parts that are given must hold; the
// zero value matches every object that is not being deleted.
type matcher struct {
	namespaces, excludeNamespaces []glob
	names, excludeNames           []glob
	labels                        labels.Selector // nil: all
	namespaceLabels               labels.Selector // nil: all
	fields                        []fieldRequirement
	deleting                      bool
}

// reason says why an object is left alone; empty: it matches. namespaceObject is
// the object's Namespace, the object itself if it is one, and nil for all other
// cluster-scoped objects: as in admission, namespaceSelector does not exclude
// those.
func (m *matcher) reason(object, namespaceObject map[string]any, namespace, name string) string {
	meta, _ := object["metadata"].(map[string]any)
	switch {
	case !m.deleting && meta["deletionTimestamp"] != nil:
		return "the object is being deleted"
	case m.namespaces != nil && !anyGlob(m.namespaces, namespace):
		return "its namespace is not among match.namespaces"
	case anyGlob(m.excludeNamespaces, namespace):
		return "its namespace is among match.excludeNamespaces"
	case m.names != nil && !anyGlob(m.names, name):
		return "its name is not among match.names"
	case anyGlob(m.excludeNames, name):
		return "its name is among match.excludeNames"
	case m.labels != nil && !m.labels.Matches(labelsOf(meta)):
		return "its labels do not fit match.labelSelector"
	case m.namespaceLabels != nil && namespaceObject != nil && !m.namespaceLabels.Matches(labelsOf(metadataOf(namespaceObject))):
		return "the labels of its namespace do not fit match.namespaceSelector"
	}
	for _, f := range m.fields {
		if !f.holds(object) {
			return "its fields do not fit match.fieldSelector"
		}
	}
	return ""
}

// labelsOf reads labels where they stand, without copying the map.
type objectLabels map[string]any

func labelsOf(meta map[string]any) objectLabels {
	m, _ := meta["labels"].(map[string]any)
	return m
}

func (l objectLabels) Has(key string) bool   { _, ok := l[key].(string); return ok }
func (l objectLabels) Get(key string) string { s, _ := l[key].(string); return s }
func (l objectLabels) Lookup(key string) (string, bool) {
	s, ok := l[key].(string)
	return s, ok
}

// glob is a pattern of path.Match over a whole name.
type glob string

func (g glob) matches(s string) bool {
	if !strings.ContainsAny(string(g), `*?[\`) {
		return string(g) == s
	}
	ok, _ := path.Match(string(g), s) // checked at load
	return ok
}

func anyGlob(globs []glob, s string) bool {
	for _, g := range globs {
		if g.matches(s) {
			return true
		}
	}
	return false
}

// MayMatchIn reports whether the rule can match an object in a namespace, by the
// namespace's name.
func (r *Rule) MayMatchIn(namespace string) bool {
	return (r.match.namespaces == nil || anyGlob(r.match.namespaces, namespace)) && !anyGlob(r.match.excludeNamespaces, namespace)
}

// fieldRequirement compares the value at a path with a text; what is absent,
// and what is not a scalar, is the empty text.
type fieldRequirement struct {
	path  []string
	value string
	equal bool
}

func (f fieldRequirement) holds(object map[string]any) bool {
	return (scalarText(fieldAt(object, f.path)) == f.value) == f.equal
}

// fieldAt is the value that a path of keys leads to, nil if there is none.
func fieldAt(object map[string]any, path []string) any {
	var v any = object
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// scalarText is a value as selectors compare it: what is absent, and what is
// no scalar, is the empty text.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64) // never 1e+06
	case bool, int64:
		return fmt.Sprint(v)
	}
	return ""
}

func metadataOf(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	return meta
}

// compileMatch checks and compiles a match block.
func (d *decoder) compileMatch(m match) matcher {
	return matcher{
		namespaces:        d.globs(m.Namespaces),
		excludeNamespaces: d.globs(m.ExcludeNamespaces),
		names:             d.globs(m.Names),
		excludeNames:      d.globs(m.ExcludeNames),
		labels:            d.labelSelector(m.LabelSelector),
		namespaceLabels:   d.labelSelector(m.NamespaceSelector),
		fields:            d.fieldSelector(m.FieldSelector),
		deleting:          m.Deleting,
	}
}

func (d *decoder) globs(patterns []text) []glob {
	var out []glob
	for _, p := range patterns {
		if err := checkGlob(p.value); err != nil {
			d.fail(p.node, "%q is not a pattern: %v", p.value, err)
			continue
		}
		out = append(out, glob(p.value))
	}
	return out
}

func (d *decoder) labelSelector(s *selector) labels.Selector {
	if s == nil {
		return nil
	}
	if s.broken {
		return labels.Nothing() // it was reported
	}
	mark := len(d.problems)
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		one := metav1.LabelSelector{MatchLabels: map[string]string{key: s.MatchLabels[key]}}
		d.checkSelector(nodeAt(s.node, []string{"matchLabels", key}), one)
	}
	for i, e := range s.MatchExpressions {
		at := nodeAt(s.node, []string{"matchExpressions", strconv.Itoa(i)})
		if !slices.Contains(selectorOperators, string(e.Operator)) {
			d.fail(nodeAt(at, []string{"operator"}), "the operator of a label selector is one of %s, not %q%s",
				strings.Join(selectorOperators, ", "), e.Operator, suggest.DidYouMean(string(e.Operator), selectorOperators))
			continue
		}
		d.checkSelector(at, metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}})
	}
	sel, err := metav1.LabelSelectorAsSelector(&s.LabelSelector)
	if err != nil && d.ok(mark) {
		d.fail(s.node, "bad label selector: %v", err)
	}
	if err != nil {
		return labels.Nothing() // never "match all"
	}
	return sel
}

var selectorOperators = []string{
	string(metav1.LabelSelectorOpIn), string(metav1.LabelSelectorOpNotIn),
	string(metav1.LabelSelectorOpExists), string(metav1.LabelSelectorOpDoesNotExist),
}

// checkSelector reports what is wrong with one part of a label selector, where
// it stands.
func (d *decoder) checkSelector(at *yaml.Node, part metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(&part); err != nil {
		d.fail(at, "bad label selector: %v", err)
	}
}

func (d *decoder) fieldSelector(t *text) []fieldRequirement {
	if t == nil {
		return nil
	}
	sel, err := fields.ParseSelector(t.value)
	if err == nil && sel.Empty() {
		err = errors.New("it is empty")
	}
	if err != nil {
		d.fail(t.node, "bad field selector: %v", err)
		return nil
	}
	var out []fieldRequirement
	for _, r := range sel.Requirements() {
		path := strings.Split(r.Field, ".")
		switch {
		case slices.Contains(path, ""):
			d.fail(t.node, "bad field selector: %q is not a path such as metadata.name", r.Field)
			continue
		case strings.Contains(r.Field, "/"):
			d.fail(t.node, "bad field selector: %q: a key with dots cannot be part of a path; use labelSelector or the condition", r.Field)
			continue
		}
		out = append(out, fieldRequirement{
			path:  path,
			value: r.Value,
			equal: r.Operator != selection.NotEquals,
		})
	}
	return out
}
