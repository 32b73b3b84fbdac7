package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ruleCost is what an update costs with so many rules on its resource.
func ruleCost(count int) measure {
	return measure{fmt.Sprintf("CPU per relevant update, rules on the resource: %s", thousands(count)), microseconds}
}

// ruleStart is how long it takes until so many rules are compiled and the objects
// are read, and ruleMemory the largest resident set.
func ruleStart(count int) measure {
	return measure{fmt.Sprintf("start until synced, rules on the resource: %s", thousands(count)), seconds}
}

func ruleMemory(count int) measure {
	return measure{fmt.Sprintf("peak memory, rules on the resource: %s", thousands(count)), megabytes}
}

// manyRules is what an update costs that changes what rules read, with more and
// more rules, of which none matches.
func (s *suite) manyRules(ctx context.Context) error {
	var contenders []contender
	counts := map[string]int{}
	for _, n := range s.ruleCounts {
		path := filepath.Join(s.dir, fmt.Sprintf("rules-%d.yaml", n))
		if err := os.WriteFile(path, []byte(generateRules(n)), 0o600); err != nil {
			return err
		}
		c := s.rectifier(fmt.Sprintf("%s, %d rules", ours, n), "--builtin=none", "--rules="+path)
		counts[c.name] = n
		contenders = append(contenders, c)
	}
	err := s.rounds(ctx, contenders, func(ctx context.Context, c contender) error {
		cost, err := s.costOf(ctx, c, s.plane.relabel)
		if err != nil {
			return err
		}
		n := counts[c.name]
		s.add(ruleCost(n), ours, toMicroseconds(cost.perEvent))
		s.add(ruleStart(n), ours, cost.ready.Seconds())
		s.add(ruleMemory(n), ours, toMegabytes(cost.peak))
		return nil
	})
	if err != nil {
		return err
	}
	few, many := s.ruleCounts[0], s.ruleCounts[len(s.ruleCounts)-1]
	for round, cost := range s.values[ruleCost(many)][ours] {
		s.add(rulesAlone(few, many), ours, cost-s.values[ruleCost(few)][ours][round])
	}
	return nil
}

// rulesAlone is what many rules add to an update: the rest is that it arrives.
func rulesAlone(few, many int) measure {
	return measure{fmt.Sprintf("the same, with %s rules less with %d", thousands(many), few), microseconds}
}

// conditions are what rules ask, in turn: those that many rules of one resource
// differ in. Each has a guard, as such rules have: an annotation, a label, a value.
var conditions = []string{
	`'example.io/policy-%d' in object.metadata.?annotations.orValue({}) && object.spec.replicas > 0`,
	`object.metadata.?labels.?team.orValue('') == 'no-team-%d' && object.spec.replicas > 1`,
	`has(object.metadata.labels.tier%d) && object.metadata.labels.tier%[1]d != object.metadata.labels.team`,
	`object.spec.template.spec.?serviceAccountName.orValue('') == 'robot-%d'`,
	`object.spec.replicas > 1000 + %d && object.metadata.labels.team != 'no-team'`,
}

func generateRules(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, `---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: rule-%d}
spec:
  resource: {group: apps, version: v1, resource: deployments}
  condition: %q
  patch: {merge: {metadata: {labels: {example.io/rule-%[1]d: "yes"}}}}
`, i, fmt.Sprintf(conditions[i%len(conditions)], i))
	}
	return b.String()
}
