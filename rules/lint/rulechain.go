package lint

import (
	"fmt"

	"github.com/rectifier-dev/rectifier/rules"
)

var ruleChain = &Check{
	ID: "rule-chain", Severity: Warning, Summary: "Two rules feed each other",
	Run: runRuleChain,
}

// runRuleChain tells of the first such rule, and how many others there are.
func runRuleChain(p *Pass) {
	first, firstTheirs, owner, others := p.firstPair(func(other *rules.Definition) (mine, theirs *rules.Write) {
		if met, _ := p.meet(other); met != nil {
			return nil, nil // that is what there is to tell
		}
		return cycle(p.Rule, other.Rule)
	})
	if first == nil {
		return
	}
	more := ""
	if others > 0 {
		more = fmt.Sprintf(" (%s this one)", countMore(others, "feeds", "feed"))
	}
	p.Reportf(first.Pos, "%s reads %s and writes %s, which this rule reads: the two could go on changing the object%s", position(owner, firstTheirs), first.Field(), firstTheirs.Field(), more)
}

// cycle returns what each of two rules writes that the other one reads, if they
// may keep each other going. They cannot where all values that they write
// depend on nothing that either writes: each then has its say once.
func cycle(a, b *rules.Rule) (first, second *rules.Write) {
	first, second = feeds(a, b), feeds(b, a)
	if first == nil || second == nil {
		return nil, nil
	}
	if feedsValues(a, b) == nil && feedsValues(b, a) == nil {
		return nil, nil
	}
	return first, second
}
