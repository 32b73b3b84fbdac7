package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

// always is what every rule needs that leaves it to objects to opt out, and leaves
// those alone that are being deleted.
var always = []string{`.metadata.annotations["rectifier.dev/skip"]`, `.metadata.annotations["rectifier.dev/skip-until"]`, `.metadata.deletionTimestamp?`}

// fieldsOf are the fields that rules need of a resource: "apps/v1/deployments".
func fieldsOf(set *rules.Set, resource string, replicasPath ...string) []string {
	parts := strings.Split(resource, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	return set.Fields(schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, replicasPath).Paths()
}

func checkFields(t *testing.T, got []string, want ...string) {
	t.Helper()
	if slices.Contains(want, "always") {
		want = append(slices.DeleteFunc(want, func(s string) bool { return s == "always" }), always...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is needed of the objects of well-known rules is what one would write by hand.
func TestFieldsOfWellKnownRules(t *testing.T) {
	for _, tc := range []struct {
		file, resource string
		want           []string
	}{
		{"builtin/expected-replicas.yaml", "apps/v1/deployments", []string{"always",
			".metadata.annotations{if list}", `.metadata.annotations["example.io/expected-replicas"]`, ".spec.replicas",
			".metadata.name", ".metadata.namespace"}},
		{"builtin/expected-replicas.yaml", "autoscaling/v2/horizontalpodautoscalers", []string{
			".metadata.namespace", ".spec.scaleTargetRef.kind", ".spec.scaleTargetRef.name"}},
		{"builtin/expected-replicas.yaml", "v1/namespaces", always[:2]},
		{"builtin/expected-replicas.yaml", "apps/v1/statefulsets", nil},
		{"../examples/pdb-blocks-drains/rule.yaml", "policy/v1/poddisruptionbudgets", []string{"always", ".spec.maxUnavailable", ".spec.minAvailable"}},
		{"../examples/team-from-namespace/rule.yaml", "v1/services", []string{"always", ".metadata.labels.team"}},
		{"../examples/team-from-namespace/rule.yaml", "v1/namespaces", append(always[:2:2], ".metadata.labels.team")},
		{"../examples/ingress-class/rule.yaml", "networking.k8s.io/v1/ingresses", []string{"always", `.metadata.annotations["kubernetes.io/ingress.class"]`, ".spec.ingressClassName"}},
		{"../examples/ingress-class/rule.yaml", "networking.k8s.io/v1/ingressclasses", []string{".metadata.name"}},
		{"../examples/image-pull-policy/rule.yaml", "apps/v1/deployments", []string{"always", ".spec.template.spec.containers", ".spec.template.spec.initContainers"}},
		{"../examples/stale-job/rule.yaml", "batch/v1/jobs", []string{"always",
			".metadata.annotations{if list}", `.metadata.annotations["argocd.argoproj.io/tracking-id"]?`,
			`.metadata.labels["helm.toolkit.fluxcd.io/name"]`, `.metadata.labels["kustomize.toolkit.fluxcd.io/name"]`, ".metadata.ownerReferences[*].controller",
			".spec.ttlSecondsAfterFinished", ".status.conditions[*].lastTransitionTime", ".status.conditions[*].status", ".status.conditions[*].type"}},
	} {
		t.Run(filepath.Base(filepath.Dir(tc.file))+" "+tc.resource, func(t *testing.T) {
			data, err := os.ReadFile(tc.file)
			if err != nil {
				t.Fatal(err)
			}
			set, problems := loadText(string(data))
			if len(problems) > 0 {
				t.Fatal(problems[0])
			}
			checkFields(t, fieldsOf(set, tc.resource, "spec", "replicas"), tc.want...)
		})
	}
}

// What each part of a rule adds.
func TestFieldsOfTheParts(t *testing.T) {
	for _, tc := range []struct {
		name, spec, replicas string
		want                 []string
	}{
		{"one annotation is not all", "patch: {merge: {metadata: {annotations: {a: x}}}}", "", []string{".metadata.annotations.a"}},
		{"a removal", "patch: {merge: {spec: {a: null}}}", "", []string{".spec.a"}},
		{"a map that shall be there", "patch: {merge: {spec: {a: {}}}}", "", []string{".spec.a{if list}", ".spec.a{keys}"}},
		{"a list", "patch: {merge: {spec: {l: [1]}}}", "", []string{".spec.l"}},
		{"a computed key", "patch: {merge: {spec: {a: {\"${object.kind}\": 1}}}}", "", []string{".kind", ".spec.a"}},
		{"a computed value", "patch: {merge: {spec: {a: \"${object.spec.b}\"}}}", "", []string{".spec.a", ".spec.b"}},
		{"a computed map of known keys", "patch: {merge: {spec: \"${{'a': 1, 'b': {'c': 2, 'd': {}}}}\"}}", "", []string{".spec.a", ".spec.b.c", ".spec.b.d{if list}", ".spec.b.d{keys}"}},
		{"nothing, or a patch", "patch: {merge: \"${object.spec.a ? dyn({'spec': {'b': 1}}) : dyn({})}\"}", "", []string{".spec.a", ".spec.b"}},
		{"a patch that nobody knows", "patch: {merge: \"${object.spec.patch}\"}", "", []string{"."}},
		{"a configuration", "patch: {applyConfiguration: {spec: {paused: true, template: {spec: {containers: [{name: a, image: b}]}}}}}", "", []string{".spec.paused", ".spec.template.spec.containers"}},
		{"operations", "patch: {json: [{op: test, path: /spec/a, value: 1}, {op: add, path: /spec/b, value: 1}, {op: copy, from: /spec/c/d, path: /spec/e}, {op: move, from: /spec/f, path: /spec/g}, {op: remove, path: /spec/l/0/x}]}", "",
			[]string{".spec.a", ".spec.b", ".spec.c.d", ".spec.e", ".spec.f", ".spec.g", ".spec.l"}},
		{"computed operations", "patch: {json: \"${[{'op': 'test', 'path': '/spec/a', 'value': 1}, {'op': 'copy', 'from': '/spec/b', 'path': '/spec/c'}]}\"}", "", []string{".spec.a", ".spec.b", ".spec.c"}},
		{"a computed pointer", "patch: {json: [{op: test, path: \"/spec/${object.kind}\", value: 1}, {op: remove, path: \"/status/a/${object.kind}\"}]}", "", []string{".kind", ".spec", ".status.a"}},
		{"operations that nobody knows", "patch: {json: \"${object.spec.ops}\"}", "", []string{"."}},
		{"status", "patch: {subresource: status, merge: {status: {a: 1}}}", "", []string{".status.a"}},
		{"scale", "patch: {subresource: scale, json: [{op: test, path: /spec/replicas, value: 1}, {op: replace, path: /spec/replicas, value: 2}]}", "count.of", []string{".count.of"}},
		{"scale, where nobody knows", "patch: {subresource: scale, merge: {spec: {replicas: 2}}}", "", nil},
		{"no scale", "patch: {merge: {spec: {a: 1}}}", "spec.replicas", []string{".spec.a"}},
		{"an event", "event: {message: \"${object.spec.b}\"}\n\tpatch: {merge: {spec: {a: 1}}}", "", []string{".spec.a", ".spec.b"}},
		{"a match block", "match: {names: [a], namespaces: [b], labelSelector: {matchLabels: {a: x}, matchExpressions: [{key: b, operator: Exists}]}, fieldSelector: 'spec.b!=3', namespaceSelector: {matchLabels: {c: x}}}\n\tpatch: {merge: {spec: {a: 1}}}", "",
			[]string{".metadata.labels.a", ".metadata.labels.b", ".spec.a", ".spec.b"}},
		{"a question", "lookups: [{name: l, resource: {version: v1, resource: pods}, where: {spec.a: \"${object.spec.b}\"}, labelSelector: {matchLabels: {a: \"${object.spec.c}\"}}}]\n\tcondition: lookups.l.size() == 0\n\tpatch: {merge: {spec: {a: 1}}}", "",
			[]string{".spec.a", ".spec.b", ".spec.c"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, problems := loadText(rule("r", tc.spec))
			if len(problems) > 0 {
				t.Fatal(problems[0])
			}
			var replicas []string
			if tc.replicas != "" {
				replicas = strings.Split(tc.replicas, ".")
			}
			want := append(tc.want, "always")
			if slices.Contains(want, ".") {
				want = []string{"."}
			}
			checkFields(t, fieldsOf(set, "apps/v1/deployments", replicas...), want...)
		})
	}
}

// A resource may be needed for several reasons, by several rules.
func TestFieldsOfASet(t *testing.T) {
	set, problems := loadText(strings.Join([]string{
		rule("a", "optOut: Forbidden\n\tpatch: {merge: {spec: {a: 1}}}"),
		rule("b", "optOut: Forbidden\n\tlookups: [{name: l, resource: {group: apps, version: v1, resource: deployments}, namespace: x, where: {spec.b: x}, labelSelector: {matchLabels: {b: x}}}]\n\tcondition: lookups.l.exists(d, d.spec.c == 1)\n\tpatch: {merge: {spec: {d: 1}}}"),
		rule("c", "optOut: Forbidden\n\tmatch: {deleting: true, namespaceSelector: {matchLabels: {env: x}}}\n\tcondition: namespaceObject.metadata.name == object.spec.e\n\tpatch: {subresource: scale, merge: {spec: {replicas: 1}}}"),
	}, "---\n"))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	checkFields(t, fieldsOf(set, "apps/v1/deployments", "spec", "replicas"), ".metadata.deletionTimestamp?", ".metadata.labels", ".metadata.namespace",
		".spec.a", ".spec.b", ".spec.c", ".spec.d", ".spec.e", ".spec.replicas")
	checkFields(t, fieldsOf(set, "v1/namespaces"), ".metadata.labels.env", ".metadata.name")
	checkFields(t, fieldsOf(set, "v1/pods"))
	for _, r := range set.All() {
		if !set.Fields(deployments, nil).Covers(r.Fields(deployments, nil)) {
			t.Errorf("the set does not cover %s", r.Name)
		}
	}
}

// manyRules are rules by the grammar, all about the same resource.
func manyRules(t testing.TB, n int) *rules.Set {
	var all []*rules.Rule
	for seed := uint64(1); len(all) < n; seed++ {
		set, _ := loadText(ruleMaker{seeded(seed)}.file())
		all = append(all, set.All()...)
	}
	return rules.Together(all[:n]...)
}

// A reload asks for the fields of all resources at once: 1,000 rules and 20 resources
// shall take less than 100 ms.
func BenchmarkFields(b *testing.B) {
	ask := func(b *testing.B, set *rules.Set, resources []schema.GroupVersionResource) {
		b.ReportAllocs()
		for b.Loop() {
			for _, resource := range resources {
				set.Fields(resource, []string{"spec", "replicas"})
			}
		}
	}
	var resources []schema.GroupVersionResource
	for i := range 19 {
		resources = append(resources, schema.GroupVersionResource{Group: "example.io", Version: "v1", Resource: fmt.Sprintf("kind%ds", i)})
	}
	resources = append(resources, namespaceResource)
	invented := manyRules(b, 1000).All()
	spread, crowded := slices.Clone(invented), slices.Clone(invented)
	for i, r := range invented {
		spread[i] = r.About(resources[i%19])
		crowded[i] = r.AboutAll(resources[:19])
	}
	b.Run("1000 rules on one of 20 resources each", func(b *testing.B) { ask(b, rules.Together(spread...), resources) })
	b.Run("1000 rules on all of 20 resources", func(b *testing.B) { ask(b, rules.Together(crowded...), resources) })
	var texts []string
	for i := range 1000 {
		texts = append(texts, rule(fmt.Sprintf("r%d", i), fmt.Sprintf("condition: object.metadata.labels['a%d'] == 'x'\n\tpatch: {merge: {metadata: {annotations: {k%d: x}}}}", i, i)))
	}
	set, _ := loadText(strings.Join(texts, "---\n"))
	b.Run("1000 rules of which each has fields of its own", func(b *testing.B) { ask(b, set, []schema.GroupVersionResource{deployments}) })
}
