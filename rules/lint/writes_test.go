package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// writeChecks are those about what rules write.
var writeChecks = []string{"fixed-point", "conflicting-writes", "overlapping-writes", "rule-chain", "audit-chain", "sensitive-target", "pod-template", "index-without-test", "empty-value", "scale-replicas"}

// writeCase is some rules, of whose names and specs the files a.yaml, b.yaml and
// so on are made, and what the checks on writes find in them.
type writeCase struct {
	name  string
	specs []string // the first line is line 6 of the file, in column 3
	want  []string
}

// sources are the files of a case. What its rules are about is a custom resource
// that nothing is known of, unless they say it.
func sources(specs []string) []rules.Source {
	var out []rules.Source
	for i, spec := range specs {
		name := string(rune('a' + i))
		if !strings.Contains(spec, "resource: {") && !strings.Contains(spec, "resources:") {
			spec = "resource: {group: example.io, version: v1, resource: things}\n" + spec
		}
		spec = "  " + strings.ReplaceAll(spec, "\n", "\n  ")
		out = append(out, rules.Source{Name: name + ".yaml", Data: []byte("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n" + spec + "\n")})
	}
	return out
}

func testWrites(t *testing.T, cases []writeCase) {
	t.Helper()
	known := knowing(t, "")
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, f := range lint.Run(known, sources(tc.specs)...).Findings {
				if slices.Contains(writeChecks, f.Check.ID) || f.Problem.Check != "" {
					got = append(got, fmt.Sprintf("%s: %s [%s]", f.Problem.Pos, f.Problem.Msg, f.Check.ID))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func one(spec string) []string { return []string{spec} }

const (
	deployments = "resource: {group: apps, version: v1, resource: deployments}\n"
	configMaps  = "resource: {version: v1, resource: configmaps}\n"
)

func TestFixedPoint(t *testing.T) {
	again := func(field string) string {
		return "no fixed point: the rule would change " + field + " again and again, so it would be stopped; add a condition that is false once the change is made [fixed-point]"
	}
	testWrites(t, []writeCase{
		{"a counter", one("patch:\n  merge:\n    spec:\n      count: ${object.spec.?count.orValue(0) + 1}"), []string{"a.yaml:9:9: " + again("spec.count")}},
		{"a counter that ends", one("condition: object.spec.count < 3\npatch: {merge: {spec: {count: \"${object.spec.count + 1}\"}}}"), nil},
		{"an element for ever", one("patch:\n  json:\n    - {op: add, path: /spec/items/-, value: x}"), []string{"a.yaml:8:25: " + again("spec.items")}},
		{"an element once", one("condition: \"!('x' in object.spec.items)\"\npatch:\n  json:\n    - {op: add, path: /spec/items/-, value: x}"), nil},
		{"the time", one("recheckAfter: 1h\npatch:\n  merge:\n    metadata:\n      annotations:\n        seen: ${string(now)}"), []string{
			"a.yaml:11:11: no fixed point: what is written to metadata.annotations.seen depends on the time, so it is another value at each evaluation, and the rule would be stopped; write it once, with a condition that is false afterwards [fixed-point]",
		}},
		{"the time, of the first time", one("recheckAfter: 1h\ncondition: \"!has(object.metadata.annotations.seen)\"\npatch:\n  merge:\n    metadata:\n      annotations:\n        seen: ${string(now)}"), nil},
		{"a prefix", one("condition: object.spec.image.startsWith('docker.io/')\npatch:\n  merge:\n    spec:\n      image: docker.io/mirror/${object.spec.image}"), []string{"a.yaml:10:9: " + again("spec.image")}},
		{"a prefix that is tested", one("condition: object.spec.image.startsWith('docker.io/')\npatch:\n  merge:\n    spec:\n      image: mirror.io/${object.spec.image}"), nil},
		{"an image that still matches", one("condition: object.spec.image.endsWith(':latest')\npatch:\n  merge:\n    spec:\n      image: ${object.spec.image.replace(':latest', ':latest:latest')}"), []string{"a.yaml:10:9: " + again("spec.image")}},
		{"an element that is inserted", one("patches:\n- json:\n  - {op: add, path: /spec/items/0, value: x}\n- merge: {spec: {a: 1}}"), []string{"a.yaml:8:23: " + again("spec.items")}},
		{"a constant", one("patch: {merge: {spec: {a: 1}}}"), nil},
		{"an Audit rule", one("mode: Audit\npatch: {merge: {spec: {count: \"${object.spec.?count.orValue(0) + 1}\"}}}"), []string{"a.yaml:7:26: " + again("spec.count")}},
		{"what fails on its own result", one("patch: {merge: {spec: {a: \"x${int(object.spec.a)}\"}}}"), nil},
		{"what changes it until it fails", one("patch: {merge: {spec: {a: \"${object.spec.a[0]}\"}}}"), []string{"a.yaml:6:26: " + again("spec.a")}},
	})
}

func TestConflictingWrites(t *testing.T) {
	undoes := func(line, field string) string {
		return "the rule a (a.yaml:" + line + ") undoes this: it writes " + field + " too, so both would be stopped; let one of them give way, by its match block or its condition [conflicting-writes]"
	}
	depends := func(line, field string) string {
		return "the rule a (a.yaml:" + line + ") writes " + field + " too: on an object that both change, it depends on the conditions which value it gets [overlapping-writes]"
	}
	testWrites(t, []writeCase{
		{"two constants", []string{"patch:\n  merge:\n    spec:\n      a: 1", "patch:\n  merge:\n    spec:\n      a: 2"}, []string{"b.yaml:9:9: " + undoes("9:9", "spec.a")}},
		{"the same constant", []string{"patch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {a: 1}}}"}, nil},
		{"conditions that ask for what the rule wants", []string{"condition: object.spec.a != 1\npatch: {merge: {spec: {a: 1}}}", "condition: object.spec.a != 2\npatch: {merge: {spec: {a: 2}}}"}, []string{"b.yaml:7:26: " + undoes("7:26", "spec.a")}},
		{"an undone fix", []string{"condition: object.spec.paused\npatch: {merge: {spec: {paused: false}}}", "condition: \"!object.spec.paused\"\npatch: {merge: {spec: {paused: true}}}"}, []string{"b.yaml:7:26: " + undoes("7:26", "spec.paused")}},
		{"what is not there yet", []string{"condition: \"!has(object.spec.a)\"\npatch: {merge: {spec: {a: 1}}}", "condition: \"!has(object.spec.a)\"\npatch: {merge: {spec: {a: 2}}}"}, []string{"b.yaml:7:26: " + depends("7:26", "spec.a")}},
		{"set and removed", []string{"patch: {merge: {spec: {a: {b: 1}}}}", "patch: {merge: {spec: {a: null}}}"}, []string{"b.yaml:6:26: " + undoes("6:30", "spec.a.b")}},
		{"set within a map that is replaced", []string{"patch: {json: [{op: add, path: /spec/a, value: {b: 1}}]}", "patch: {merge: {spec: {a: {b: 2}}}}"}, []string{"b.yaml:6:30: " + undoes("6:34", "spec.a")}},
		{"set to what the map holds", []string{"patch: {json: [{op: add, path: /spec/a, value: {b: 1}}]}", "patch: {merge: {spec: {a: {b: 1}}}}"}, nil},
		{"other fields", []string{"patch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {b: 2}}}"}, nil},
		{"other resources", []string{"patch: {merge: {spec: {a: 1}}}", configMaps + "patch: {merge: {spec: {a: 2}}}"}, nil},
		{"by way of scale", []string{
			deployments + "lookups: [{name: h, resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}}]\npatch: {merge: {spec: {replicas: 1}}}",
			deployments + "lookups: [{name: h, resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}}]\npatch: {subresource: scale, merge: {spec: {replicas: 2}}}",
		}, []string{"b.yaml:7:46: " + undoes("7:26", "spec.replicas")}},
		{"one of them in Audit mode", []string{"mode: Audit\npatch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {a: 2}}}"}, nil},
		{"other namespaces", []string{"match: {namespaces: [x, \"y-*\"]}\npatch: {merge: {spec: {a: 1}}}", "match: {namespaces: [z]}\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"namespaces that may be the same", []string{"match: {namespaces: [\"y-*\"]}\npatch: {merge: {spec: {a: 1}}}", "match: {namespaces: [y-1]}\npatch: {merge: {spec: {a: 2}}}"}, []string{"b.yaml:7:26: " + undoes("7:26", "spec.a")}},
		{"a namespace that the other excludes", []string{"match: {namespaces: [prod]}\npatch: {merge: {spec: {a: 1}}}", "match: {excludeNamespaces: [\"pro*\"]}\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"other names", []string{"match: {names: [v]}\npatch: {merge: {spec: {a: 1}}}", "match: {names: [w]}\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"other labels", []string{"match: {labelSelector: {matchLabels: {tier: web}}}\npatch: {merge: {spec: {a: 1}}}", "match: {labelSelector: {matchExpressions: [{key: tier, operator: NotIn, values: [web]}]}}\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"other labels, which one of them changes", []string{
			"match: {labelSelector: {matchLabels: {tier: web}}}\npatch: {merge: {metadata: {labels: {tier: db}}, spec: {a: 1}}}",
			"match: {labelSelector: {matchLabels: {tier: db}}}\npatch: {merge: {metadata: {labels: {tier: web}}, spec: {a: 2}}}",
		}, []string{"b.yaml:7:39: " + undoes("7:39", "metadata.labels.tier")}},
		{"other labels, of which the first rule makes the second's", []string{
			"match: {labelSelector: {matchLabels: {tier: web}}}\npatch: {merge: {metadata: {labels: {tier: db}}, spec: {a: 1}}}",
			"match: {labelSelector: {matchLabels: {tier: db}}}\npatch: {merge: {spec: {a: 2}}}",
		}, []string{"b.yaml:7:26: " + depends("7:58", "spec.a")}},
		{"and the second the first's", []string{
			"match: {labelSelector: {matchLabels: {tier: web}}}\npatch: {merge: {spec: {a: 1}}}",
			"match: {labelSelector: {matchLabels: {tier: db}}}\npatch: {merge: {metadata: {labels: {tier: web}}, spec: {a: 2}}}",
		}, []string{"b.yaml:7:59: " + depends("7:26", "spec.a")}},
		{"the same fields of the object", []string{"match: {fieldSelector: spec.type=Web}\npatch: {merge: {spec: {a: 1}}}", "match: {fieldSelector: spec.type=Web}\npatch: {merge: {spec: {a: 2}}}"}, []string{"b.yaml:7:26: " + undoes("7:26", "spec.a")}},
		{"other labels of the namespace", []string{"match: {namespaceSelector: {matchLabels: {env: prod}}}\npatch: {merge: {spec: {a: 1}}}", "match: {namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}}\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"other fields of the object", []string{"match: {fieldSelector: spec.type=Web}\npatch: {merge: {spec: {a: 1}}}", "match: {fieldSelector: spec.type!=Web}\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"other labels, of which neither is changed", []string{
			"match: {labelSelector: {matchLabels: {tier: web}}}\npatch: {merge: {metadata: {labels: {env: dev}}}}",
			"match: {labelSelector: {matchLabels: {tier: db}}}\npatch: {merge: {metadata: {labels: {env: prod}}}}",
		}, nil},
		{"other namespaces, and labels are written", []string{
			"match: {namespaces: [a]}\npatch: {merge: {metadata: {labels: {env: dev}}}}",
			"match: {namespaces: [b]}\npatch: {merge: {metadata: {labels: {env: prod}}}}",
		}, nil},
		{"other labels of the namespace, which objects get too", []string{
			"match: {namespaceSelector: {matchLabels: {env: dev}}}\npatch: {merge: {metadata: {labels: {env: dev}}}}",
			"match: {namespaceSelector: {matchLabels: {env: prod}}}\npatch: {merge: {metadata: {labels: {env: prod}}}}",
		}, nil},
		{"other labels of the namespace, which is the object", []string{
			"resource: {version: v1, resource: namespaces}\nmatch: {namespaceSelector: {matchLabels: {env: dev}}}\npatch: {merge: {metadata: {labels: {env: prod, a: \"1\"}}}}",
			"resource: {version: v1, resource: namespaces}\nmatch: {namespaceSelector: {matchLabels: {env: prod}}}\npatch: {merge: {metadata: {labels: {env: dev, a: \"2\"}}}}",
		}, []string{"b.yaml:7:39: " + undoes("7:39", "metadata.labels.env")}},
		{"which neither changes", []string{
			"resource: {version: v1, resource: namespaces}\nmatch: {namespaceSelector: {matchLabels: {env: dev}}}\npatch: {merge: {metadata: {labels: {a: \"1\"}}}}",
			"resource: {version: v1, resource: namespaces}\nmatch: {namespaceSelector: {matchLabels: {env: prod}}}\npatch: {merge: {metadata: {labels: {a: \"2\"}}}}",
		}, nil},
		{"other labels of a namespace that the objects do not have", []string{
			"resource: {version: v1, resource: persistentvolumes}\nmatch: {namespaceSelector: {matchLabels: {env: dev}}}\npatch: {merge: {metadata: {labels: {a: \"1\"}}}}",
			"resource: {version: v1, resource: persistentvolumes}\nmatch: {namespaceSelector: {matchLabels: {env: prod}}}\npatch: {merge: {metadata: {labels: {a: \"2\"}}}}",
		}, []string{"b.yaml:7:39: " + undoes("7:39", "metadata.labels.a")}},
		{"a field that one of them changes to what the other wants", []string{
			"match: {fieldSelector: spec.type=Web}\npatch: {merge: {spec: {type: Db, a: 1}}}",
			"match: {fieldSelector: spec.type=Db}\npatch: {merge: {spec: {a: 2}}}",
		}, []string{"b.yaml:7:26: " + depends("7:36", "spec.a")}},
		{"patterns that begin otherwise", []string{"match: {namespaces: [\"dev-*\"]}\npatch: {merge: {spec: {a: 1}}}", "match: {namespaces: [\"prod-*\"]}\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"patterns that may meet", []string{"match: {names: [\"dev-*\"]}\npatch: {merge: {spec: {a: 1}}}", "match: {names: [\"*-web\"]}\npatch: {merge: {spec: {a: 2}}}"}, []string{"b.yaml:7:26: " + depends("7:26", "spec.a")}},
		{"three of one field", []string{"patch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {a: 2}}}", "patch: {merge: {spec: {a: 3}}}"}, []string{
			"b.yaml:6:26: " + undoes("6:26", "spec.a"),
			"c.yaml:6:26: " + strings.Replace(undoes("6:26", "spec.a"), " [", " (1 more rule fights with this one) [", 1),
		}},
		{"three that may meet", slices.Repeat([]string{"condition: \"!has(object.spec.a)\"\npatch: {merge: {spec: {a: \"${object.metadata.name}\"}}}"}, 4), []string{
			"b.yaml:7:26: " + depends("7:26", "spec.a"),
			"c.yaml:7:26: " + strings.Replace(depends("7:26", "spec.a"), "too:", "too (1 more rule overlaps with this one):", 1),
			"d.yaml:7:26: " + strings.Replace(depends("7:26", "spec.a"), "too:", "too (2 more rules overlap with this one):", 1),
		}},
		{"conditions that exclude each other", []string{"condition: object.spec.a != 1 && object.spec.env == 'prod'\npatch: {merge: {spec: {a: 1}}}", "variables: [{name: e, expression: object.spec.env}]\ncondition: variables.e in ['dev', 'test']\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"one that is the other's opposite", []string{"condition: object.spec.prod\npatch: {merge: {spec: {a: 1}}}", "condition: \"!object.spec.prod && true\"\npatch: {merge: {spec: {a: 2}}}"}, nil},
		{"conditions on what one of them writes", []string{"condition: object.spec.env == 'prod'\npatch: {merge: {spec: {a: 1, env: dev}}}", "condition: object.spec.env == 'dev'\npatch: {merge: {spec: {a: 2, env: prod}}}"}, []string{"b.yaml:7:26: " + undoes("7:26", "spec.a")}},
		{"computed values", []string{"condition: object.spec.b == 'x'\npatch: {merge: {spec: {a: \"${object.spec.c}\"}}}", "condition: object.spec.d == 'x'\npatch: {merge: {spec: {a: \"${object.spec.e}\"}}}"}, []string{"b.yaml:7:26: " + undoes("7:26", "spec.a")}},
		{"a lookup that finds nothing, or something", []string{
			"resource: {version: v1, resource: namespaces}\nlookups: [{name: quotas, resource: {version: v1, resource: resourcequotas}, namespace: \"${object.metadata.name}\"}]\ncondition: lookups.quotas.size() == 0 && object.metadata.?labels[?'no-quota'].orValue('') != 'yes'\npatch: {merge: {metadata: {labels: {no-quota: 'yes'}}}}",
			"resource: {version: v1, resource: namespaces}\nlookups: [{name: mine, resource: {version: v1, resource: resourcequotas}, namespace: \"${object.metadata.name}\"}]\ncondition: lookups.mine.size() > 0 && object.metadata.?labels[?'no-quota'].hasValue()\npatch: {merge: {metadata: {labels: {no-quota: null}}}}",
		}, nil},
		{"a lookup that finds nothing, or something, in other words", []string{
			"resource: {version: v1, resource: namespaces}\nlookups: [{name: quotas, resource: {version: v1, resource: resourcequotas}, namespace: \"${object.metadata.name}\"}]\ncondition: lookups.quotas.size() < 1 && object.metadata.?labels[?'no-quota'].orValue('') != 'yes'\npatch: {merge: {metadata: {labels: {no-quota: 'yes'}}}}",
			"resource: {version: v1, resource: namespaces}\nlookups: [{name: quotas, resource: {version: v1, resource: resourcequotas}, namespace: \"${object.metadata.name}\"}]\ncondition: lookups.quotas.exists(q, q.metadata.name != '') && object.metadata.?labels[?'no-quota'].hasValue()\npatch: {merge: {metadata: {labels: {no-quota: null}}}}",
		}, []string{"b.yaml:8:39: " + depends("8:39", "metadata.labels.no-quota")}},
		{"lookups of one name, of other things", []string{
			"resource: {version: v1, resource: namespaces}\nlookups: [{name: quotas, resource: {version: v1, resource: resourcequotas}, namespace: \"${object.metadata.name}\"}]\ncondition: lookups.quotas.size() == 0 && object.metadata.?labels[?'no-quota'].orValue('') != 'yes'\npatch: {merge: {metadata: {labels: {no-quota: 'yes'}}}}",
			"resource: {version: v1, resource: namespaces}\nlookups: [{name: quotas, resource: {version: v1, resource: limitranges}, namespace: \"${object.metadata.name}\"}]\ncondition: lookups.quotas.size() > 0 && object.metadata.?labels[?'no-quota'].hasValue()\npatch: {merge: {metadata: {labels: {no-quota: null}}}}",
		}, []string{"b.yaml:8:39: " + undoes("8:39", "metadata.labels.no-quota")}},
		{"elements of one list", []string{"condition: object.spec.x.size() == 1\npatch: {json: [{op: test, path: /spec/l/0/a, value: 1}, {op: add, path: /spec/l/0/b, value: 1}]}", "patch: {json: \"${object.spec.?l.orValue([]).transformList(i, e, !has(e.c), {'op': 'add', 'path': '/spec/l/' + string(i) + '/c', 'value': 1})}\"}"}, nil},
	})
}

func TestRuleChain(t *testing.T) {
	testWrites(t, []writeCase{
		{"each computes from what the other writes", []string{
			"condition: object.spec.kind == 'X' && has(object.spec.b)\npatch: {merge: {spec: {a: \"${object.spec.b}\"}}}",
			"condition: has(object.spec.a)\npatch: {merge: {spec: {b: \"${object.spec.a}\"}}}",
		}, []string{"b.yaml:7:26: the rule a (a.yaml:7:26) reads spec.b and writes spec.a, which this rule reads: the two could go on changing the object [rule-chain]"}},
		{"and does not come to an end", []string{
			"patch: {merge: {spec: {a: \"${object.spec.b + 1}\"}}}",
			"patch: {merge: {spec: {b: \"${object.spec.a + 1}\"}}}",
		}, []string{"b.yaml:6:26: the rule a (a.yaml:6:26) does not come to an end with this one: it reads spec.b and writes spec.a, which this rule reads, so both would be stopped [conflicting-writes]"}},
		{"constants, each once", []string{"condition: object.spec.b == 1\npatch: {merge: {spec: {a: 1}}}", "condition: object.spec.a == 1\npatch: {merge: {spec: {b: 1}}}"}, nil},
		{"only forward", []string{"patch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {b: \"${object.spec.?a.orValue(0)}\"}}}"}, nil},
		{"only backward", []string{"patch: {merge: {spec: {b: \"${object.spec.?a.orValue(0)}\"}}}", "patch: {merge: {spec: {a: 1}}}"}, nil},
		{"another field of the same elements", []string{
			"patch: {json: \"${object.spec.?l.orValue([]).transformList(i, e, e.?a.orValue('') != e.b, {'op': 'add', 'path': '/spec/l/' + string(i) + '/a', 'value': e.b})}\"}",
			"patch: {json: \"${object.spec.?l.orValue([]).transformList(i, e, e.?c.orValue('') != e.d, {'op': 'add', 'path': '/spec/l/' + string(i) + '/c', 'value': e.d})}\"}",
		}, nil},
	})
}

// CLI-08.
func TestAuditChain(t *testing.T) {
	depends := "it depends on the rule a (a.yaml:7:39), which is in Audit mode: metadata.labels.a stays as it is, and this rule does not see what the other would write [audit-chain]"
	audit := "mode: Audit\npatch: {merge: {metadata: {labels: {a: \"1\"}}}}"
	testWrites(t, []writeCase{
		{"a condition", []string{audit, "condition: object.metadata.labels.a == '1'\npatch: {merge: {metadata: {labels: {b: \"1\"}}}}"}, []string{"b.yaml:6:14: " + depends}},
		{"a value", []string{audit, "patch:\n  merge:\n    spec:\n      b: ${object.metadata.?labels.?a}"}, []string{"b.yaml:9:14: " + depends}},
		{"a match block", []string{audit, "match:\n  labelSelector: {matchLabels: {a: \"1\"}}\npatch: {merge: {spec: {b: 1}}}"}, []string{"b.yaml:7:5: " + depends}},
		{"both in Audit mode", []string{audit, "mode: Audit\ncondition: object.metadata.labels.a == '1'\npatch: {merge: {spec: {b: 1}}}"}, nil},
		{"another label", []string{audit, "condition: object.metadata.labels.c == '1'\npatch: {merge: {spec: {b: 1}}}"}, nil},
		{"one that the rule writes itself", []string{audit, "condition: object.metadata.labels.a != '2'\npatch: {merge: {metadata: {labels: {a: \"2\"}}}}"}, nil},
		{"one that a third rule writes", []string{audit, "condition: object.metadata.labels.a == '1'\npatch: {merge: {spec: {b: 1}}}", "condition: object.spec.x == 1\npatch: {merge: {metadata: {labels: {a: x}}}}"}, nil},
		{"the Audit rule reads", []string{"mode: Audit\ncondition: object.spec.b == 1\npatch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {b: 1}}}"}, nil},
	})
}

func TestSensitiveTarget(t *testing.T) {
	testWrites(t, []writeCase{
		{"finalizers", one("match: {deleting: true}\npatch: {merge: {metadata: {finalizers: null}}}"), []string{"a.yaml:7:30: sensitive: finalizers hold back a deletion until somebody has cleaned up; without them nobody does [sensitive-target]"}},
		{"owner references, computed", one("patch:\n  json: \"${[JSONPatch{op: 'remove', path: '/metadata/ownerReferences/' + object.spec.index}]}\""), []string{"a.yaml:7:45: sensitive: owner references decide what the garbage collector deletes [sensitive-target]"}},
		{"a label of pod security", one("resource: {version: v1, resource: namespaces}\npatch:\n  merge:\n    metadata:\n      labels:\n        pod-security.kubernetes.io/enforce: baseline"), []string{"a.yaml:10:11: sensitive: this label decides which pods the namespace admits, or warns of [sensitive-target]"}},
		{"a role", one("resource: {group: rbac.authorization.k8s.io, version: v1, resource: clusterroles}\npatch: {json: [{op: add, path: /rules/-, value: {}}]}\ncondition: object.rules.size() < 1"), []string{"a.yaml:6:34: sensitive: a change of roles and bindings gives or takes rights [sensitive-target]"}},
		{"a label of a role", one("resource: {group: rbac.authorization.k8s.io, version: v1, resource: roles}\npatch: {merge: {metadata: {labels: {team: x}}}}"), nil},
		{"a label that adds a role to another", one("resource: {group: rbac.authorization.k8s.io, version: v1, resource: clusterroles}\npatch: {merge: {metadata: {labels: {rbac.authorization.k8s.io/aggregate-to-admin: \"true\"}}}}"), []string{"a.yaml:6:39: sensitive: this label adds the rules of the role to others [sensitive-target]"}},
		{"a webhook", one("resource: {group: admissionregistration.k8s.io, version: v1, resource: validatingwebhookconfigurations}\npatch: {json: [{op: test, path: /webhooks/0/name, value: x}, {op: add, path: /webhooks/0/failurePolicy, value: Ignore}]}"), []string{"a.yaml:6:80: sensitive: a change of webhooks and admission policies decides about each request to the API server [sensitive-target]"}},
		{"a lease", one("resource: {group: coordination.k8s.io, version: v1, resource: leases}\npatch: {merge: {spec: {holderIdentity: null}}}"), []string{"a.yaml:6:26: sensitive: a Lease says who leads, rectifier itself among others: whoever writes it takes that away [sensitive-target]"}},
		{"the opt-out", one("patch: {merge: {metadata: {annotations: {rectifier.dev/skip: null}}}}"), []string{"a.yaml:6:44: sensitive: this annotation turns rules off for the object [sensitive-target]"}},
		{"another label", one("patch: {merge: {metadata: {labels: {a: b}}}}"), nil},
		{"a patch that does not tell", one("patch: {merge: \"${object.spec.patch}\"}"), nil},
		{"a spec.finalizers of its own", one("patch: {merge: {spec: {finalizers: [x]}}}"), nil},
	})
}

func TestPodTemplate(t *testing.T) {
	rolls := func(field string) string {
		return "a change of the pod template (" + field + ") replaces the pods of each workload that the rule changes: all at once, as soon as the rule runs [pod-template]"
	}
	testWrites(t, []writeCase{
		{"a merge", one(deployments + "patch: {merge: {spec: {template: {spec: {priorityClassName: x}}}}}"), []string{"a.yaml:6:44: " + rolls("spec.template.spec.priorityClassName")}},
		{"an annotation", one("resource: {group: apps, version: v1, resource: statefulsets}\npatch: {merge: {spec: {template: {metadata: {annotations: {a: b}}}}}}"), []string{"a.yaml:6:62: " + rolls("spec.template.metadata.annotations.a")}},
		{"an operation", one("resources: [{version: v1, resource: services}, {group: apps, version: v1, resource: daemonsets}]\npatch: {json: [{op: remove, path: /spec/template/spec/hostNetwork}]}"), []string{"a.yaml:6:37: " + rolls("spec.template.spec.hostNetwork")}},
		{"a configuration", one(deployments + "patch: {applyConfiguration: {spec: {template: {spec: {containers: [{name: x, image: y}]}}}}}"), []string{"a.yaml:6:71: " + rolls("spec.template.spec.containers")}},
		{"labels of the workload", one(deployments + "patch: {merge: {metadata: {labels: {a: b}}}}"), nil},
		{"other fields of its spec", one(deployments + "patch: {merge: {spec: {minReadySeconds: 5}}}"), nil},
		{"a template of something else", one("patch: {merge: {spec: {template: {a: b}}}}"), nil},
		{"the template of future jobs", one("resource: {group: batch, version: v1, resource: cronjobs}\npatch: {merge: {spec: {jobTemplate: {spec: {ttlSecondsAfterFinished: 5}}}}}"), nil},
	})
}

// PAT-08.
func TestIndexWithoutTest(t *testing.T) {
	other := func(element string) string {
		return element + " is another element on another object: put a test of it before this operation, such as {op: test, path: " + element + ", value: …} (of an object, its name is enough: " + element + "/name), or merge lists by their keys with applyConfiguration [index-without-test]"
	}
	testWrites(t, []writeCase{
		{"a removal", one("patch:\n  json:\n    - {op: remove, path: /spec/items/1}"), []string{"a.yaml:8:28: " + other("/spec/items/1")}},
		{"a field of an element", one("patch:\n  json:\n    - {op: replace, path: /spec/items/0/sub/2/x, value: 1}"), []string{"a.yaml:8:29: " + other("/spec/items/0/sub/2")}},
		{"a test", one("patch: {json: [{op: test, path: /spec/items/1/name, value: x}, {op: remove, path: /spec/items/1}]}"), nil},
		{"a test of the element itself", one("patch: {json: [{op: test, path: /spec/items/1, value: x}, {op: remove, path: /spec/items/1}]}"), nil},
		{"a test that comes later", one("patch:\n  json:\n    - {op: remove, path: /spec/items/1}\n    - {op: test, path: /spec/items/1, value: x}"), []string{"a.yaml:8:28: " + other("/spec/items/1")}},
		{"a test of another element", one("patch:\n  json:\n    - {op: test, path: /spec/items/10, value: x}\n    - {op: remove, path: /spec/items/1}"), []string{"a.yaml:9:28: " + other("/spec/items/1")}},
		{"a move", one("patch:\n  json:\n    - {op: move, from: /spec/items/0/a, path: /spec/items/0/b}"), []string{"a.yaml:8:26: " + other("/spec/items/0"), "a.yaml:8:49: " + other("/spec/items/0")}},
		{"appended", one("condition: \"!has(object.spec.x)\"\npatches: [{json: [{op: add, path: /spec/items/-, value: 1}]}, {merge: {spec: {x: 1}}}]"), nil},
		{"inserted", one("condition: \"!has(object.spec.x)\"\npatches: [{json: [{op: add, path: /spec/items/0, value: 1}]}, {merge: {spec: {x: 1}}}]"), nil},
		{"a key that is a number", one(configMaps + "patch: {json: [{op: remove, path: /data/0}]}"), nil},
		{"computed", one("patch: {json: \"${[{'op': 'remove', 'path': '/spec/items/0'}]}\"}\ncondition: object.spec.items.size() == 3"), nil},
	})
}

// PAT-13.
func TestEmptyValue(t *testing.T) {
	testWrites(t, []writeCase{
		{"a label", one("patch:\n  merge:\n    metadata:\n      labels:\n        a: null\n        b:\n        c: ~\n        d: \"\""), []string{
			"a.yaml:11:11: metadata.labels.b is left empty, which removes it: write null if that is meant, \"\" for an empty string, {} for an empty map [empty-value]",
		}},
		{"a map", one("patch:\n  merge:\n    spec:"), []string{"a.yaml:8:7: spec is left empty, which removes it: write null if that is meant, \"\" for an empty string, {} for an empty map [empty-value]"}},
		{"flow style", one("patch: {merge: {spec: {a: , b: 1}}}"), []string{"a.yaml:6:26: spec.a is left empty, which removes it: write null if that is meant, \"\" for an empty string, {} for an empty map [empty-value]"}},
		{"a configuration", one("patch:\n  applyConfiguration:\n    spec:\n      a:"), []string{"a.yaml:9:9: spec.a is left empty, which sets it to null: write null if that is meant, \"\" for an empty string, {} for an empty map [empty-value]"}},
		{"an operation", one("patch: {json: [{op: test, path: /spec/a, value: }, {op: add, path: /spec/a, value: 1}]}"), nil},
	})
}

func TestScaleReplicas(t *testing.T) {
	scales := "the rule scales a workload, and so may an autoscaler: the two would undo each other's work; look up HorizontalPodAutoscalers that target the object and leave it alone if there are any [scale-replicas]"
	testWrites(t, []writeCase{
		{"a merge", one(deployments + "patch: {merge: {spec: {replicas: 3}}}"), []string{"a.yaml:6:26: " + scales}},
		{"through scale", one(deployments + "patch: {subresource: scale, merge: {spec: {replicas: 3}}}"), []string{"a.yaml:6:46: " + scales}},
		{"with a lookup", one(deployments + "lookups: [{name: h, resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}}]\npatch: {subresource: scale, merge: {spec: {replicas: 3}}}"), nil},
		{"no workload", one("patch: {merge: {spec: {replicas: 3}}}"), nil},
		{"in a status", one(deployments + "patch: {subresource: status, merge: {status: {replicas: 3}}}"), nil},
	})
}

// Many rules are linted in little time, and each tells of what it has with the
// others once.
func TestUnracedManyRules(t *testing.T) {
	of := func(n int, spec func(i int) string) []rules.Source {
		var out []rules.Source
		for i := range n {
			out = append(out, rules.Source{Name: "many.yaml", Data: fmt.Appendf(nil, "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r%d}\nspec:\n  %s  %s", i, deployments, spec(i))})
		}
		return out
	}
	lintOf := func(sources []rules.Source) (findings []string) {
		begin := time.Now()
		for _, f := range lint.Run(knowing(t, ""), sources...).Findings {
			findings = append(findings, f.Problem.Rule+" "+f.Check.ID)
		}
		// It takes one second on a slow machine; each pair tried takes minutes.
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("%d rules took %s", len(sources), took)
		}
		return findings
	}
	if got := lintOf(of(300, func(i int) string {
		return fmt.Sprintf("match: {namespaces: [ns-%d]}\n  condition: object.spec.?replicas.orValue(1) == %d\n  patch: {merge: {metadata: {labels: {l: v%d}}}}\n", i, i%7, i)
	})); got != nil {
		t.Errorf("rules in namespaces of their own: %v", got)
	}
	got := lintOf(of(300, func(i int) string {
		return fmt.Sprintf("condition: \"!has(object.metadata.labels)\"\n  patch: {merge: {metadata: {labels: {l: v%d}}}}\n", i)
	}))
	if unique := slices.Compact(slices.Sorted(slices.Values(got))); len(got) != 299 || len(unique) != 299 {
		t.Errorf("300 rules that overlap have %d findings, %d that differ, not one for each but the first", len(got), len(unique))
	}
}
