package lint

import "github.com/rectifier-dev/rectifier/rules"

var ruleChain = &Check{
	ID: "rule-chain", Severity: Warning, Summary: "Two rules feed each other",
	Run: runRuleChain,
}

func runRuleChain(p *Pass) {
	for _, other := range p.rivals() {
		if met, _ := p.meet(other); met != nil {
			continue // that is what there is to tell
		}
		if mine, theirs := cycle(p.Rule, other.Rule); mine != nil && !p.apart(other) && !p.fights(other) {
			p.Reportf(mine.Pos, "%s reads %s and writes %s, which this rule reads: the two could go on changing the object", position(other, theirs), mine.Field(), theirs.Field())
		}
	}
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
