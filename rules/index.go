package rules

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Index finds, among rules for one resource, those that an object can concern, so
// that the others need not be evaluated. It is immutable and safe for concurrent
// use.
//
// A rule is passed over if its match block does not select the object, or if one of
// two conjuncts of its condition is false: what the object lacks cannot be what the
// rule asks for. Rules whose condition shows no such guard (see guard) are evaluated, as
// are those that have to be asked again after a time if they match. Once a rule
// changes the object, those after it see another one, and all of them are evaluated.
type Index struct {
	rules  []*Rule
	words  int     // of a set of rules
	always ruleSet // those that are evaluated on every object
	// first is where all other rules are filed by the guard that fewest objects pass,
	// and second where those are that have another one: both have to hold.
	first, second places
	withoutSecond ruleSet
	// groups are match blocks that are looked at once for all their rules.
	groups []matchGroup
	// groupOf gives for each rule its group, -1: it has none, and is passed over as not
	// matching.
	groupOf []int8

	needNamespace ruleSet
	anyOptOut     bool
}

// matchGroup are the rules with one match block.
type matchGroup struct {
	match *matcher
	rules ruleSet
}

// maxGroups keeps what is known of all match blocks in one word.
const maxGroups = 64

// manyRules is how many rules make it worth while to look at their match block
// first, whatever else it can be found by.
const manyRules = 8

// NewIndex makes an index of rules, which must be in the order of a Set and about
// one resource. The caller must not modify the slice afterwards.
func NewIndex(rules []*Rule) *Index {
	x := &Index{rules: rules, words: (len(rules) + 63) / 64, groupOf: make([]int8, len(rules))}
	x.always, x.withoutSecond, x.needNamespace = x.none(), x.none(), x.none()
	x.group()
	for i, r := range rules {
		x.anyOptOut = x.anyOptOut || r.OptOut
		if r.NeedsNamespace {
			x.needNamespace.addOne(int32(i))
		}
		x.file(int32(i), x.guardsOf(i))
	}
	return x
}

// file has a rule found by its guards. Where there is none, or the places do not know
// how to find one, it is found on every object: no guard may keep a rule from what it
// is about.
func (x *Index) file(rule int32, guards []guard) {
	if len(guards) == 0 || !x.first.file(rule, guards[0]) {
		x.always.addOne(rule)
	}
	if len(guards) < 2 || !x.second.file(rule, guards[1]) {
		x.withoutSecond.addOne(rule)
	}
}

func (x *Index) none() ruleSet { return make(ruleSet, x.words) }

// guardsOf are the guards that a rule is filed under, two at most. A rule without a
// group is passed over only where it certainly does not match.
func (x *Index) guardsOf(rule int) []guard {
	r := x.rules[rule]
	switch {
	case x.groupOf[rule] < 0:
		if g, ok := matchGuard(&r.match); ok {
			return []guard{g}
		}
		return nil
	case r.RecheckAfter > 0:
		return nil
	}
	return conditionGuards(r, 2)
}

// group puts the rules with the same match block together: those first that have
// many rules, or that nothing else finds.
func (x *Index) group() {
	type block struct {
		rules   []int32
		guarded bool
	}
	blocks := map[string]*block{}
	for i, r := range x.rules {
		key := r.match.key()
		if blocks[key] == nil {
			_, guarded := matchGuard(&r.match)
			blocks[key] = &block{guarded: guarded}
		}
		blocks[key].rules = append(blocks[key].rules, int32(i))
		x.groupOf[i] = -1
	}
	all := make([]*block, 0, len(blocks))
	for _, b := range blocks {
		all = append(all, b)
	}
	rank := func(b *block) int {
		switch {
		case len(b.rules) >= manyRules:
			return 0
		case !b.guarded:
			return 1
		}
		return 2
	}
	slices.SortFunc(all, func(a, b *block) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), -cmp.Compare(len(a.rules), len(b.rules)), cmp.Compare(a.rules[0], b.rules[0]))
	})
	for g, b := range all[:min(len(all), maxGroups)] {
		members := x.none()
		members.add(b.rules)
		for _, i := range b.rules {
			x.groupOf[i] = int8(g)
		}
		x.groups = append(x.groups, matchGroup{&x.rules[b.rules[0]].match, members})
	}
}

// key is the same for match blocks that are the same.
func (m *matcher) key() string {
	out := fmt.Sprintf("%v %q %q %q %q %v %v", m.deleting, m.namespaces, m.excludeNamespaces, m.names, m.excludeNames,
		m.namespaces != nil, m.names != nil)
	for _, s := range []labels.Selector{m.labels, m.namespaceLabels} {
		if s == nil {
			out += " all"
			continue
		}
		_, selectable := s.Requirements() // both that of all and that of none are written ""
		out += fmt.Sprintf(" %v %q", selectable, s.String())
	}
	for _, f := range m.fields {
		out += fmt.Sprintf(" %q %v %q", f.path, f.equal, f.value)
	}
	return out
}

// Rules returns the rules of the index, in their order. The caller must not modify
// the slice.
func (x *Index) Rules() []*Rule { return x.rules }
