package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ruleSet is so many rules on one resource, of which none matches.
type ruleSet struct {
	count     int
	unguarded int // of them: those that every object has to be evaluated for
}

func (r ruleSet) String() string {
	if r.unguarded > 0 {
		return fmt.Sprintf("%s, %d of them without a guard", thousands(r.count), r.unguarded)
	}
	return thousands(r.count)
}

// ruleCost is what an update costs with these rules on its resource.
func ruleCost(r ruleSet) measure {
	return measure{fmt.Sprintf("CPU per relevant update, rules on the resource: %v", r), microseconds}
}

// ruleStart is how long it takes until so many rules are compiled and the objects
// are read, and ruleMemory the largest resident set.
func ruleStart(r ruleSet) measure {
	return measure{fmt.Sprintf("start until synced, rules on the resource: %v", r), seconds}
}

func ruleMemory(r ruleSet) measure {
	return measure{fmt.Sprintf("peak memory, rules on the resource: %v", r), megabytes}
}

// rulesAdd is what more rules add to an update that matters with few, too: the rest
// is that it arrives, waits its turn and is parsed.
func rulesAdd(few, more ruleSet) measure {
	return measure{fmt.Sprintf("CPU that rules add to a relevant update: %v less %v", more, few), microseconds}
}

// The rules that the bar is about.
var (
	fewRules  = ruleSet{count: 10}
	manyRules = ruleSet{count: 1000}
)

// rules measures what an update costs that changes what a rule of each set reads.
func (s *suite) rules(ctx context.Context) error {
	var contenders []contender
	sets := map[string]ruleSet{}
	for i, set := range s.ruleSets {
		path := filepath.Join(s.dir, fmt.Sprintf("rules-%d.yaml", i))
		if err := os.WriteFile(path, []byte(generateRules(set)), 0o600); err != nil {
			return err
		}
		c := s.rectifier(fmt.Sprintf("%s, rules: %v", ours, set), "--builtin=none", "--rules="+path)
		sets[c.name] = set
		contenders = append(contenders, c)
	}
	err := s.rounds(ctx, contenders, func(ctx context.Context, c contender) error {
		set := sets[c.name]
		needed, err := s.whileIdle(ctx, c, func(ctx context.Context, p *process) error {
			cost, err := s.costOf(ctx, p, s.steady(s.plane.relabel))
			if err != nil {
				return err
			}
			peak, err := p.peak()
			s.add(ruleCost(set), ours, toMicroseconds(cost.contender))
			s.add(ruleMemory(set), ours, toMegabytes(peak))
			return err
		})
		s.add(ruleStart(set), ours, needed.ready.Seconds())
		return err
	})
	if err != nil {
		return err
	}
	for _, more := range s.ruleSets {
		if more.count <= fewRules.count {
			continue
		}
		for round, cost := range s.values[ruleCost(more)][ours] {
			s.add(rulesAdd(fewRules, more), ours, cost-s.values[ruleCost(fewRules)][ours][round])
		}
	}
	return nil
}

// conditions are what rules ask, in turn: those that many rules of one resource
// differ in. Each has a guard, as such rules have: a label, an annotation, a value.
// The first reads what relabel changes, so that this update matters to one rule,
// too.
var conditions = []string{
	`object.metadata.?labels.?team.orValue('') == 'no-team-%d' && object.spec.replicas > 1`,
	`'example.io/policy-%d' in object.metadata.?annotations.orValue({}) && object.spec.replicas > 0`,
	`has(object.metadata.labels.tier%d) && object.metadata.labels.tier%[1]d != object.metadata.labels.team`,
	`object.spec.template.spec.?serviceAccountName.orValue('') == 'robot-%d'`,
	`object.spec.replicas > 1000 + %d && object.metadata.labels.team != 'no-team'`,
}

// unguarded has no condition at its top that alone could be false.
const unguarded = `object.spec.replicas > 1000 + %d || object.metadata.?labels.?team.orValue('') == 'no-team'`

// generateRules makes a file of rules. Those without a guard are spread among the
// others.
func generateRules(set ruleSet) string {
	var b strings.Builder
	for i := range set.count {
		condition := conditions[i%len(conditions)]
		if (i+1)*set.unguarded/set.count > i*set.unguarded/set.count {
			condition = unguarded
		}
		fmt.Fprintf(&b, `---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: rule-%d}
spec:
  resource: {group: apps, version: v1, resource: deployments}
  condition: %q
  patch: {merge: {metadata: {labels: {example.io/rule-%[1]d: "yes"}}}}
`, i, fmt.Sprintf(condition, i))
	}
	return b.String()
}
