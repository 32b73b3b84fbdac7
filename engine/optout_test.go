package engine

import (
	"strings"
	"testing"
)

// What is wrong with an opt-out is told once on the object, however many rules
// read it; and a name that is nearly that of a rule is told of, though the rule
// goes on.
func TestBadOptOuts(t *testing.T) {
	f := newFixture(t)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: unclear, annotations: {rectifier.dev/skip: "true"}}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: misspelt, annotations: {rectifier.dev/skip: "dev-queue-small"}}}`)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, annotations: {rectifier.dev/skip: "cost-center, pod-labels"}}}`)
	var all []string
	for _, name := range []string{"dev-queues-small", "owner", "team"} {
		all = append(all, rule(name, `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {`+name+`: "yes"}}}`))
	}
	f.start(append(all, rule("pod-label", `
resource: {version: v1, resource: pods}
patch: {merge: {metadata: {labels: {a: b}}}}`))...)
	f.eventually(soon, configmaps, "misspelt", "yes", "data", "dev-queues-small")
	f.eventually(soon, configmaps, "foreign", "yes", "data", "team")
	f.wantEvent("misspelt", `Warning BadOptOut: rule dev-queues-small: the annotation rectifier.dev/skip on the object names "dev-queue-small", which is no rule (did you mean "dev-queues-small"?)`)
	f.wantEvent("unclear", `Warning BadOptOut: rule dev-queues-small: the annotation rectifier.dev/skip on the object names rules, or is "*" for all, but it is "true"`)
	f.merge(configmaps, "unclear", `{"data":{"touched":"1"}}`)
	f.merge(configmaps, "misspelt", `{"data":{"touched":"1"}}`)
	f.settle("configmaps")
	for name, want := range map[string]int{"unclear": 1, "misspelt": 1, "foreign": 0} {
		got := 0
		for _, event := range f.eventsOn(name) {
			if strings.Contains(event, "BadOptOut") {
				got++
			}
		}
		if got != want {
			t.Errorf("%d Warnings on %s, not %d: %q", got, name, want, f.eventsOn(name))
		}
	}
	if data := f.get(configmaps, "unclear").Object["data"].(map[string]any); len(data) != 1 {
		t.Errorf("the object that asks to be left alone was changed: %v", data)
	}
}
