package lint

import (
	"slices"

	"github.com/rectifier-dev/rectifier/rules"
)

// maxTrials is how many pairs of rules are tried on made-up objects in one run,
// for tens of milliseconds each. Rules that write one field are few, unless
// something is very wrong with them; then the first pairs tell enough, and
// the others are taken for rules that only overlap.
const maxTrials = 100

// pairs knows what is dear to find out about two rules, for all checks and all
// rules of a run.
type pairs struct {
	trials int
	fights map[[2]*rules.Definition]bool
	claims map[*rules.Definition][]claim
}

func newPairs() *pairs {
	return &pairs{fights: map[[2]*rules.Definition]bool{}, claims: map[*rules.Definition][]claim{}}
}

// claimsOf are the claims of a rule's condition.
func (p *pairs) claimsOf(d *rules.Definition) []claim {
	known, ok := p.claims[d]
	if !ok {
		known = claims(d)
		p.claims[d] = known
	}
	return known
}

// apart reports whether this rule and another one never change one object,
// because what excludes them is out of their own reach.
func (p *Pass) apart(other *rules.Definition) bool {
	if p.Rule.Disjoint(other.Rule) {
		return true
	}
	lasting := func(paths [][]string) bool {
		return slices.ContainsFunc(paths, func(path []string) bool { return !writesAny(p.Rule, path) && !writesAny(other.Rule, path) })
	}
	if lasting(p.Rule.Differences(other.Rule)) || p.pairs.exclusive(p.Definition, other) {
		return true
	}
	differ := p.Rule.NamespaceDifferences(other.Rule)
	if len(differ) == 0 {
		return false
	}
	for _, resource := range shared(p.Rule, other.Rule) {
		switch kind := p.typing.kinds.of(resource); {
		case resource.GroupResource() == namespaces.GroupResource():
			if !lasting(differ) { // they are the object's own labels
				return false
			}
		case kind.known && !kind.Namespaced:
			return false // such objects fit every namespaceSelector
		}
	}
	return true
}

// firstPair returns the first rival that this rule has to do with, by two writes,
// if the two may change one object and are not known to fight; and how many
// others there are. A nil mine means that there is none.
func (p *Pass) firstPair(related func(other *rules.Definition) (mine, theirs *rules.Write)) (mine, theirs *rules.Write, owner *rules.Definition, others int) {
	for _, other := range p.rivals() {
		w, v := related(other)
		switch {
		case w == nil || p.apart(other) || p.fights(other):
		case mine == nil:
			mine, theirs, owner = w, v, other
		default:
			others++
		}
	}
	return mine, theirs, owner, others
}

// fights reports whether there is an object on which this rule and another one
// undo each other's work.
func (p *Pass) fights(other *rules.Definition) bool {
	pair := [2]*rules.Definition{other, p.Definition}
	known, ok := p.pairs.fights[pair]
	if !ok {
		known = p.seenFighting(other)
		p.pairs.fights[pair] = known
	}
	return known
}

func (p *Pass) seenFighting(other *rules.Definition) bool {
	if p.apart(other) {
		return false
	}
	for _, resource := range shared(p.Rule, other.Rule) {
		if p.pairs.trials++; p.pairs.trials > maxTrials {
			return false
		}
		if _, culprits := p.trial(resource).Restless(other.Rule, p.Rule); len(culprits) == 2 {
			return true
		}
	}
	return false
}
