package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Disjoint reports whether the match blocks of two rules certainly never select
// one object: they list other namespaces or names, or want other values of a
// label or field. False says nothing. What the rules change of what they are
// matched by is left out of account.
func (r *Rule) Disjoint(other *Rule) bool {
	a, b := &r.match, &other.match
	if apart(a.namespaces, b.namespaces) || apart(a.names, b.names) ||
		excluded(a.namespaces, b.excludeNamespaces) || excluded(b.namespaces, a.excludeNamespaces) ||
		excluded(a.names, b.excludeNames) || excluded(b.names, a.excludeNames) {
		return true
	}
	if contradict(a.labels, b.labels) || contradict(a.namespaceLabels, b.namespaceLabels) {
		return true
	}
	for _, f := range a.fields {
		for _, g := range b.fields {
			if slices.Equal(f.path, g.path) && (f.equal && g.equal && f.value != g.value || f.equal != g.equal && f.value == g.value) {
				return true
			}
		}
	}
	return false
}

// apart reports whether two lists of patterns have no name in common. Two
// patterns that are no plain names may always have.
func apart(a, b []glob) bool {
	if a == nil || b == nil {
		return false
	}
	for _, x := range a {
		for _, y := range b {
			if !x.plain() && !y.plain() || x.plain() && y.matches(string(x)) || y.plain() && x.matches(string(y)) {
				return false
			}
		}
	}
	return true
}

// excluded reports whether all names of one list are among those that the
// other excludes.
func excluded(names, by []glob) bool {
	return names != nil && !slices.ContainsFunc(names, func(g glob) bool { return !g.plain() || !anyGlob(by, string(g)) })
}

// plain reports whether the pattern is a name.
func (g glob) plain() bool { return !strings.ContainsAny(string(g), `*?[\`) }

// contradict reports whether no labels fit both selectors.
func contradict(a, b labels.Selector) bool {
	if a == nil || b == nil {
		return false
	}
	of, _ := a.Requirements()
	with, _ := b.Requirements()
	for _, x := range of {
		for _, y := range with {
			if x.Key() == y.Key() && (refuses(x, y) || refuses(y, x)) {
				return true
			}
		}
	}
	return false
}

// refuses reports whether no value of a label that fits y fits x.
func refuses(x, y labels.Requirement) bool {
	switch y.Operator() {
	case selection.In, selection.Equals, selection.DoubleEquals:
		return !slices.ContainsFunc(y.ValuesUnsorted(), func(v string) bool { return x.Matches(labels.Set{y.Key(): v}) })
	case selection.DoesNotExist:
		return !x.Matches(labels.Set{})
	}
	return false
}
