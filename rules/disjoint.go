package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Disjoint reports whether the match blocks of two rules certainly never select
// one object that stays in its place: they list other namespaces or names. No
// rule can change that. False says nothing.
func (r *Rule) Disjoint(other *Rule) bool {
	a, b := &r.match, &other.match
	return apart(a.namespaces, b.namespaces) || apart(a.names, b.names) ||
		excluded(a.namespaces, b.excludeNamespaces) || excluded(b.namespaces, a.excludeNamespaces) ||
		excluded(a.names, b.excludeNames) || excluded(b.names, a.excludeNames)
}

// NamespaceDifferences are the labels of a Namespace of which two rules want
// other values with their namespaceSelectors, as paths in the Namespace. They say
// nothing of objects that are in no namespace: a namespaceSelector does not
// exclude those.
func (r *Rule) NamespaceDifferences(other *Rule) [][]string {
	return contradictions(r.match.namespaceLabels, other.match.namespaceLabels)
}

// Differences are the paths in the object at which the match blocks of two
// rules want other values, so that no object fits both: a label, or what a
// fieldSelector names. A rule that writes such a path can make an object of one
// rule one of the other.
func (r *Rule) Differences(other *Rule) [][]string {
	out := contradictions(r.match.labels, other.match.labels)
	for _, f := range r.match.fields {
		for _, g := range other.match.fields {
			if slices.Equal(f.path, g.path) && (f.equal && g.equal && f.value != g.value || f.equal != g.equal && f.value == g.value) {
				out = append(out, f.path)
			}
		}
	}
	return out
}

// apart reports whether two lists of patterns certainly have no name in common.
func apart(a, b []glob) bool {
	if a == nil || b == nil {
		return false
	}
	return !slices.ContainsFunc(a, func(x glob) bool { return slices.ContainsFunc(b, x.mayMeet) })
}

// mayMeet reports whether a name may fit both patterns. Of two that are no
// plain names only what is written out at their ends is compared.
func (g glob) mayMeet(other glob) bool {
	switch {
	case g.plain():
		return other.matches(string(g))
	case other.plain():
		return g.matches(string(other))
	}
	a, b := g.prefix(), other.prefix()
	if !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) {
		return false
	}
	a, b = g.suffix(), other.suffix()
	return strings.HasSuffix(a, b) || strings.HasSuffix(b, a)
}

const globChars = `*?[\`

// prefix is what all names begin with that fit the pattern.
func (g glob) prefix() string {
	if i := strings.IndexAny(string(g), globChars); i >= 0 {
		return string(g[:i])
	}
	return string(g)
}

// suffix is what all names end with that fit the pattern. A class of
// characters, and a character that is escaped, are no such text.
func (g glob) suffix() string {
	if strings.ContainsAny(string(g), `[\`) {
		return ""
	}
	return string(g[strings.LastIndexAny(string(g), globChars)+1:])
}

// excluded reports whether all names of one list are among those that the
// other excludes. A pattern is if it is excluded just as it is written.
func excluded(names, by []glob) bool {
	return names != nil && !slices.ContainsFunc(names, func(g glob) bool {
		return !slices.Contains(by, g) && (!g.plain() || !anyGlob(by, string(g)))
	})
}

// plain reports whether the pattern is a name.
func (g glob) plain() bool { return !strings.ContainsAny(string(g), globChars) }

// contradictions are the labels of which no value fits both selectors, as
// paths in an object.
func contradictions(a, b labels.Selector) [][]string {
	if a == nil || b == nil {
		return nil
	}
	var out [][]string
	of, _ := a.Requirements()
	with, _ := b.Requirements()
	for _, x := range of {
		for _, y := range with {
			if x.Key() == y.Key() && (refuses(x, y) || refuses(y, x)) {
				out = append(out, []string{"metadata", "labels", x.Key()})
			}
		}
	}
	return out
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
