package importer

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// group is a set of resources that one rule can name: what it says of their
// names and labels is the same.
type group struct {
	resources  []schema.GroupVersionResource
	names      nameSet
	labels     metav1.LabelSelector
	namespaces metav1.LabelSelector
}

// resources works out what a policy acts on under a binding (nil: it is not
// restricted). Wildcards that remain are lost.
func (p *policy) resources(b *binding) []group {
	bound := matchResources{}
	if b != nil {
		bound = b.match
	}
	var groups []group
	for _, gvr := range p.candidates(bound) {
		names := nameSet{}
		for _, op := range operations {
			chosen := p.match.selects(gvr, op, true).intersect(bound.selects(gvr, op, bound.exact))
			names = names.union(chosen)
		}
		if names.none() {
			continue
		}
		g := group{
			resources:  []schema.GroupVersionResource{gvr},
			names:      names,
			labels:     and(p.match.objects, bound.objects),
			namespaces: and(p.match.namespaces, bound.namespaces),
		}
		if gvr.Group == "" && gvr.Resource == "namespaces" {
			// For a Namespace the API server compares its own labels.
			g.labels, g.namespaces = and(g.labels, g.namespaces), metav1.LabelSelector{}
		}
		groups = addGroup(groups, g)
	}
	for _, g := range groups {
		p.adviseOn(g)
	}
	return groups
}

func addGroup(groups []group, g group) []group {
	for i := range groups {
		if groups[i].names.equal(g.names) && sameSelector(groups[i].labels, g.labels) && sameSelector(groups[i].namespaces, g.namespaces) {
			groups[i].resources = append(groups[i].resources, g.resources...)
			return groups
		}
	}
	return append(groups, g)
}

func sameSelector(a, b metav1.LabelSelector) bool {
	return metav1.FormatLabelSelector(&a) == metav1.FormatLabelSelector(&b)
}

// adviseOn notes what is different about some resources.
func (p *policy) adviseOn(g group) {
	versions := map[schema.GroupResource]int{}
	for _, gvr := range g.resources {
		if versions[gvr.GroupResource()]++; versions[gvr.GroupResource()] == 2 {
			p.note(p.match.node, "several versions of %s are named: an object is there in each of them; keep the one that the expressions are written for", gvr.GroupResource())
		}
		if gvr.Group == "" && gvr.Resource == "pods" && p.writesSpec() {
			p.note(p.match.node, "pods: most of a pod's spec cannot be changed once it exists: the API server will refuse the change; a rule on the controllers' pod templates can make it")
		}
	}
}

// candidates are the resources that the policy and a binding name between
// them, in the order of the policy.
func (p *policy) candidates(bound matchResources) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	all := resourceRule{groups: []text{{wildcard, nil}}, versions: []text{{wildcard, nil}}, resources: []text{{"*/*", nil}}}
	restrictions := bound.rules
	if len(restrictions) == 0 {
		restrictions = []resourceRule{all}
	}
	for _, rule := range p.match.rules {
		if !has(rule.operations, "CREATE") && !has(rule.operations, "UPDATE") {
			continue
		}
		for _, by := range restrictions {
			groups := common(rule.groups, by.groups)
			resources := common(mains(rule.resources), mains(by.resources))
			versions := rule.versions // equivalence of versions is decided by selects
			if has(rule.versions, wildcard) {
				versions = common(rule.versions, by.versions)
			}
			if len(groups) == 0 || len(versions) == 0 || len(resources) == 0 {
				continue
			}
			p.dropWildcards("apiGroups", groups)
			p.dropWildcards("apiVersions", versions)
			p.dropWildcards("resources", resources)
			for _, g := range groups {
				for _, v := range versions {
					for _, r := range resources {
						gvr := schema.GroupVersionResource{Group: g.value, Version: v.value, Resource: r.value}
						if g.value != wildcard && v.value != wildcard && r.value != wildcard && !slices.Contains(out, gvr) {
							out = append(out, gvr)
						}
					}
				}
			}
		}
	}
	return out
}

func (p *policy) dropWildcards(field string, list []text) {
	for _, t := range list {
		if t.value == wildcard {
			p.drop(t.node, "%s %q: a rule names each resource by group, version and resource; list those that are meant", field, t.node.Value)
		}
	}
}

// common is what two lists have in common; the wildcard is, where both have it.
// Positions are those of the first list.
func common(a, b []text) []text {
	var out []text
	for _, t := range a {
		switch {
		case t.value == wildcard:
			for _, other := range b {
				out = appendNew(out, text{other.value, t.node})
			}
		case has(b, t.value):
			out = appendNew(out, t)
		}
	}
	return out
}

func hasLiteral(list []text, value string) bool {
	_, ok := find(list, value)
	return ok
}

func appendNew(list []text, t text) []text {
	if hasLiteral(list, t.value) {
		return list
	}
	return append(list, t)
}

// mains are the resources whose own objects a list names.
func mains(list []text) []text {
	var out []text
	for _, t := range list {
		if main, ok := mainResource(t.value); ok {
			out = append(out, text{main, t.node})
		}
	}
	return out
}

// selects returns the names of the objects of a resource that a request with an
// operation would be matched for. Where versions need not be exact, one of
// another version is the same object.
func (m matchResources) selects(gvr schema.GroupVersionResource, op string, exact bool) nameSet {
	out := nameSet{allBut: true}
	if len(m.rules) > 0 {
		out = nameSet{}
		for _, rule := range m.rules {
			out = out.union(rule.selects(gvr, op, exact))
		}
	}
	for _, rule := range m.excludes {
		out = out.intersect(rule.selects(gvr, op, m.exact).complement())
	}
	return out
}

func (rule resourceRule) selects(gvr schema.GroupVersionResource, op string, exact bool) nameSet {
	switch {
	case !has(rule.operations, op), !has(rule.groups, gvr.Group),
		!has(mains(rule.resources), gvr.Resource),
		!has(rule.versions, gvr.Version) && exact:
		return nameSet{}
	case len(rule.names) == 0:
		return nameSet{allBut: true}
	}
	out := nameSet{names: map[string]bool{}}
	for _, n := range rule.names {
		out.names[n.value] = true
	}
	return out
}

// nameSet is a set of names: those listed, or all but those. The zero value is
// empty.
type nameSet struct {
	allBut bool
	names  map[string]bool
}

func (s nameSet) none() bool { return !s.allBut && len(s.names) == 0 }

func (s nameSet) equal(o nameSet) bool {
	return s.allBut == o.allBut && maps.Equal(s.names, o.names)
}

func (s nameSet) complement() nameSet { return nameSet{!s.allBut, s.names} }

func (s nameSet) union(o nameSet) nameSet {
	return s.complement().intersect(o.complement()).complement()
}

func (s nameSet) intersect(o nameSet) nameSet {
	if s.allBut && o.allBut {
		out := nameSet{true, map[string]bool{}}
		maps.Copy(out.names, s.names)
		maps.Copy(out.names, o.names)
		return out
	}
	if s.allBut {
		s, o = o, s
	}
	out := nameSet{names: map[string]bool{}}
	for name := range s.names { // s lists its names
		if o.names[name] != o.allBut {
			out.names[name] = true
		}
	}
	return out
}

// globs returns the names as patterns that match nothing else.
func (s nameSet) globs() []string {
	out := make([]string, 0, len(s.names))
	for _, name := range sortedKeys(s.names) {
		out = append(out, strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name))
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
