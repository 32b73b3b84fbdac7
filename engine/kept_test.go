package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/projection"
	"github.com/rectifier-dev/rectifier/rules"
)

// What is told to be kept for each rule is, all together, what the informers keep.
func TestKeptIsWhatInformersKeep(t *testing.T) {
	set := setOf(t, rule("labels", readsLabels), rule("looks-up", `
resource: {version: v1, resource: secrets}
optOut: Forbidden
lookups:
- {name: found, resource: {version: v1, resource: configmaps}, namespace: "${object.metadata.namespace}", where: {data.owner: x}}
condition: lookups.found.size() > 0 && has(object.data.password)
patch: {merge: {metadata: {labels: {a: b}}}}`), rule("scales", `
resource: {group: apps, version: v1, resource: deployments}
optOut: Forbidden
match: {namespaceSelector: {matchLabels: {env: prod}}}
patch: {subresource: scale, merge: {spec: {replicas: 3}}}`), rule("owners", `
resource: {version: v1, resource: configmaps}
condition: object.metadata.managedFields.exists(m, m.manager == 'x')
patch: {merge: {data: {a: b}}}`))
	e, kept := offline(t, set, nil), NewKept(set)
	defer e.queue.ShutDown()
	replicas := []string{"spec", "replicas"}
	together := map[schema.GroupVersionResource]projection.Fields{}
	for _, r := range set.All() {
		for _, resource := range kept.Resources(r) {
			together[resource] = together[resource].Union(kept.Fields(r, resource, replicas))
		}
	}
	var resources []string
	for resource, got := range together {
		resources = append(resources, rules.ResourceName(resource))
		want := e.policy.Load().needs.of(resource, replicas)
		if !got.Covers(want) || !want.Covers(got) {
			t.Errorf("%s: (-kept +told):\n%s", rules.ResourceName(resource), cmp.Diff(want.Paths(), got.Paths()))
		}
	}
	var want []string
	for _, resource := range watched(set) {
		want = append(want, rules.ResourceName(resource))
	}
	slices.Sort(resources)
	slices.Sort(want)
	if diff := cmp.Diff(want, resources); diff != "" {
		t.Errorf("resources (-watched +told):\n%s", diff)
	}
}
