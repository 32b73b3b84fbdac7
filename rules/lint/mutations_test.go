package lint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

// mutation is a slip that somebody could make in a rule of the gallery.
type mutation struct {
	name    string
	example string   // its folder in examples
	edit    []string // a text, and what stands there instead; more such pairs may follow
	beside  string   // another rule that is added: its name is other
	at      string   // the first line with this text must be reported; empty: the first one that changed
	want    string   // by this check
	also    []string // and others may be reported by these
}

// other is a rule beside that of an example, about the same resource.
func other(resource, spec string) string {
	return "---\napiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata:\n  name: other\nspec:\n  resource: {" + resource + "}\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

var mutations = []mutation{
	// Fields and types.
	{name: "a typo in a field that CEL reads", example: "expected-replicas", edit: []string{"object.spec.?replicas", "object.spec.?replcas"}, want: "cel-type"},
	{name: "a typo in a field of a custom resource", example: "minimum-backup-retention", edit: []string{"object.spec.?retentionDays", "object.spec.?retentionDay"}, want: "cel-type"},
	{name: "a typo in a field that is patched", example: "pv-reclaim-policy", edit: []string{"persistentVolumeReclaimPolicy: Retain", "persistentVolumeReclaimPolcy: Retain"}, want: "patch-field"},
	{name: "a typo in an Object", example: "default-requests", edit: []string{"resources: Object.spec.template.spec.containers.resources{", "resource: Object.spec.template.spec.containers.resource{"}, want: "patch-field"},
	{name: "a number compared with a string", example: "postgres-instances", edit: []string{"variables.instances < 3", "variables.instances < '3'"}, want: "cel-type", also: []string{"quantity-compare"}},
	{name: "a word that the field never holds", example: "certificate-key-rotation", edit: []string{"!object.spec.?privateKey.?rotationPolicy.hasValue()", "object.spec.?privateKey.?rotationPolicy.orValue('') != 'Allways'"}, want: "cel-type"},
	{name: "a word that the field does not take", example: "certificate-key-rotation", edit: []string{"rotationPolicy: Always", "rotationPolicy: Allways"}, want: "patch-field"},
	{name: "a patch value of the wrong type", example: "storageclass-expansion", edit: []string{"allowVolumeExpansion: true", "allowVolumeExpansion: \"true\""}, want: "patch-field"},
	{name: "a computed value of the wrong type", example: "minimum-backup-retention", edit: []string{"retentionDays: ${variables.minimum}", "retentionDays: ${string(variables.minimum)}"}, want: "patch-field"},
	{name: "a quantity compared as a string", example: "nodepool-limits", edit: []string{"quantity(string(variables.cpu.value())).isGreaterThan(quantity('1k'))", "string(variables.cpu.value()) > '1k'"}, want: "quantity-compare"},
	{name: "a number or a string, compared as a string", example: "pdb-blocks-drains", edit: []string{"string(object.spec.?maxUnavailable.orValue(''))", "object.spec.?maxUnavailable.orValue('')"}, at: "variables.maxUnavailable in", want: "int-or-string"},
	{name: "an optional field without a guard", example: "storageclass-expansion", edit: []string{"!object.?allowVolumeExpansion.orValue(false)", "!object.allowVolumeExpansion"}, want: "optional-field"},
	{name: "a key that is escaped as in admission policies", example: "namespace-pod-security", edit: []string{"!('pod-security.kubernetes.io/warn' in variables.labels)", "!has(object.metadata.labels.pod__dash__security)"}, want: "escaped-name"},
	// Conditions.
	{name: "a condition that is always true", example: "scaledobject-fallback", edit: []string{"\"!has(object.spec.fallback) && variables.possible\"", "\"!has(object.spec.fallback) || 1 == 1\""}, want: "constant-condition"},
	{name: "now without recheckAfter", example: "stale-job", edit: []string{"  recheckAfter: 6h   # time passes without an event\n", ""}, at: "!has(object.spec.ttlSecondsAfterFinished)", want: "recheck-missing"},
	{name: "a variable that is not declared", example: "minimum-backup-retention", edit: []string{"variables.actual < variables.minimum", "variables.actual < variables.minimun"}, want: "cel-compile"},
	{name: "comprehensions too deep", example: "scrape-interval", edit: []string{"variables.hasty.size() > 0", "variables.hasty.exists(a, [1].exists(b, [1].exists(c, c == b)))"}, want: "cost-limit"},
	// Names.
	{name: "a kind for the resource", example: "storageclass-expansion", edit: []string{"resource: storageclasses", "resource: StorageClass"}, want: "resource-name"},
	{name: "a singular for the resource", example: "expected-replicas", edit: []string{"resource: {group: apps, version: v1, resource: deployments}", "resource: {group: apps, version: v1, resource: deployment}"}, want: "resource-name"},
	{name: "the singular of a custom resource", example: "nodepool-limits", edit: []string{"resource: nodepools", "resource: nodepool"}, want: "resource-name"},
	{name: "namespaces of a cluster-scoped resource", example: "storageclass-expansion", edit: []string{"  condition:", "  match: {namespaces: [prod]}\n  condition:"}, want: "cluster-scoped-namespaces"},
	{name: "a name twice", example: "scrape-interval", beside: strings.Replace(other("group: monitoring.coreos.com, version: v1, resource: servicemonitors", "patch: {merge: {spec: {sampleLimit: 1}}}"), "name: other", "name: scrape-interval", 1), at: "name: scrape-interval", want: "duplicate-name", also: []string{"duplicate-name"}},
	// The file.
	{name: "a key twice", example: "pdb-blocks-drains", edit: []string{"        minAvailable: null", "        maxUnavailable: null"}, want: "yaml-syntax"},
	{name: "a field that the format does not have", example: "ingress-class", edit: []string{"  condition:", "  conditions:"}, want: "rule-format"},
	{name: "a strategic patch", example: "certificate-key-rotation", edit: []string{"    merge:", "    strategic:"}, at: "    strategic:", want: "rule-format"},
	{name: "a template in braces that is not quoted", example: "minimum-backup-retention", edit: []string{"spec:\n        retentionDays: ${variables.minimum}", "spec: {retentionDays: ${variables.minimum}}"}, want: "template"},
	{name: "a template that is not closed", example: "minimum-backup-retention", edit: []string{"retentionDays: ${variables.minimum}", "retentionDays: ${variables.minimum"}, want: "template"},
	{name: "a label that is a number", example: "team-from-namespace", edit: []string{"          team: ${variables.team}", "          team: 7"}, want: "string-value"},
	{name: "a reason to ignore another check", example: "default-requests", edit: []string{"rectifier:ignore pod-template", "rectifier:ignore pod-tempalte"}, want: "ignore-comment", also: []string{"pod-template"}},
	// Patches.
	{name: "a raw slash in a pointer", example: "configmap-key-rename", edit: []string{"path: /data/LOG_LEVEL}", "path: /metadata/annotations/example.io/level}"}, want: "json-pointer"},
	{name: "an operation that does not exist", example: "configmap-key-rename", edit: []string{"op: move", "op: rename"}, want: "json-patch"},
	{name: "status without its subresource", example: "certificate-renewal", edit: []string{"    subresource: status\n", ""}, at: "      status:", want: "status-subresource"},
	{name: "a subresource that there is not", example: "nodepool-limits", edit: []string{"    merge:\n      spec:\n        limits:\n          cpu: \"1000\"", "    subresource: scale\n    merge:\n      spec:\n        replicas: 1000"}, want: "subresource-missing"},
	{name: "a list that is replaced whole", example: "certificate-renewal", edit: []string{"    applyConfiguration:", "    merge:"}, at: "        conditions:", want: "merge-list"},
	{name: "a list without keys under applyConfiguration", example: "default-requests", edit: []string{"containers: variables.incomplete.map(c, Object.spec.template.spec.containers{", "tolerations: variables.incomplete.map(c, Object.spec.template.spec.tolerations{", "name: c.name,\n", "key: c.name\n", "                resources: Object.spec.template.spec.containers.resources{\n                  requests: variables.defaults.transformMap(k, v,\n                    !(k in c.?resources.?requests.orValue({})) && !(k in c.?resources.?limits.orValue({})), v)\n                }\n", ""}, at: "tolerations: variables", want: "atomic-list"},
	{name: "the name of the object", example: "pv-reclaim-policy", edit: []string{"      spec:\n        persistentVolumeReclaimPolicy: Retain", "      metadata: {name: kept}"}, want: "protected-field"},
	{name: "an immutable field", example: "storageclass-expansion", edit: []string{"allowVolumeExpansion: true", "reclaimPolicy: Retain"}, want: "immutable-field", also: []string{"fixed-point"}},
	{name: "a value that is left empty", example: "certificate-key-rotation", edit: []string{"rotationPolicy: Always", "rotationPolicy:"}, want: "empty-value", also: []string{"patch-field"}},
	{name: "an index without a test", example: "gateway-migration", edit: []string{"json: |-\n      ${variables.old.map(i, {\n        'op': 'replace',\n        'path': '/spec/parentRefs/' + string(i) + '/name',\n        'value': 'edge-v2'\n      })}", "json: [{op: replace, path: /spec/parentRefs/0/name, value: edge-v2}]"}, want: "index-without-test"},
	// What is written.
	{name: "a pod template without a reason", example: "default-requests", edit: []string{"    # rectifier:ignore pod-template Requests cannot be set elsewhere. Roll it out in a few namespaces at a time.\n", ""}, at: "name: c.name", want: "pod-template"},
	{name: "a finalizer without a reason", example: "stuck-application", edit: []string{"    # rectifier:ignore sensitive-target The cluster is gone, so there is nothing to clean up.\n", ""}, at: "op: 'remove'", want: "sensitive-target"},
	{name: "a label that enforces pod security", example: "namespace-pod-security", edit: []string{"          # rectifier:ignore sensitive-target Neither warn nor audit refuses a pod.\n", "          pod-security.kubernetes.io/enforce: baseline\n"}, want: "sensitive-target"},
	{name: "a look at no autoscaler", example: "expected-replicas", edit: []string{"resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}", "resource: {version: v1, resource: pods}", "        spec.scaleTargetRef.kind: Deployment\n        spec.scaleTargetRef.name: ${object.metadata.name}", "        metadata.name: ${object.metadata.name}"}, at: "replicas: ${variables.expected}", want: "scale-replicas"},
	// Fixed points.
	{name: "a counter", example: "minimum-backup-retention", edit: []string{"variables.actual < variables.minimum", "variables.actual >= variables.minimum", "retentionDays: ${variables.minimum}", "retentionDays: ${variables.actual + 1}"}, at: "retentionDays: ${", want: "fixed-point"},
	{name: "an element for ever", example: "certificate-key-rotation", edit: []string{"    merge:\n      spec:\n        privateKey:\n          rotationPolicy: Always", "    json:\n      - {op: add, path: /spec/dnsNames/-, value: www.example.io}"}, at: "op: add", want: "fixed-point"},
	{name: "the time of each evaluation", example: "stale-job", edit: []string{"ttlSecondsAfterFinished: 0", "ttlSecondsAfterFinished: null\n      metadata: {annotations: {checked: \"${string(now)}\"}}"}, at: "checked", want: "fixed-point"},
	{name: "a prefix that still matches", example: "ingress-class", edit: []string{"&& !has(object.spec.ingressClassName)", "|| object.spec.?ingressClassName.orValue('').startsWith('old')", "ingressClassName: ${lookups.classes[0].metadata.name}", "ingressClassName: old-${object.spec.?ingressClassName.orValue('')}"}, at: "ingressClassName: old", want: "fixed-point"},
	// Two rules.
	{name: "a fix that another rule undoes", example: "storageclass-expansion", beside: other("group: storage.k8s.io, version: v1, resource: storageclasses", "condition: object.?allowVolumeExpansion.orValue(false)\npatch:\n  merge:\n    allowVolumeExpansion: false"), at: "allowVolumeExpansion: true", want: "conflicting-writes"},
	{name: "a second writer of a field", example: "postgres-instances", beside: other("group: postgresql.cnpg.io, version: v1, resource: clusters", "condition: \"!has(object.spec.instances)\"\npatch: {merge: {spec: {instances: 2}}}"), at: "replicas: 3", want: "overlapping-writes", also: []string{"conflicting-writes"}},
	{name: "two defaults of a field", example: "certificate-key-rotation", beside: other("group: cert-manager.io, version: v1, resource: certificates", "condition: \"!object.spec.?privateKey.?rotationPolicy.hasValue()\"\npatch:\n  merge: {spec: {privateKey: {rotationPolicy: Never}}}"), at: "rotationPolicy: Never", want: "overlapping-writes"},
	{name: "two rules that feed each other", example: "scaledobject-fallback", beside: other("group: keda.sh, version: v1alpha1, resource: scaledobjects", "condition: has(object.spec.fallback) && object.spec.fallback.replicas > object.spec.?minReplicaCount.orValue(0)\npatch: {merge: {spec: {minReplicaCount: \"${object.spec.fallback.replicas}\"}}}"), at: "replicas: ${variables.replicas}", want: "rule-chain"},
	{name: "a rule that waits for one in Audit mode", example: "minimum-backup-retention", beside: other("group: example.io, version: v1, resource: backups", "mode: Audit\ncondition: \"!('data-class' in object.metadata.?labels.orValue({}))\"\npatch: {merge: {metadata: {labels: {data-class: customer}}}}"), at: "data-class", want: "audit-chain"},
}

// exampleFiles are the rule and the CRDs of an example.
func exampleFiles(t *testing.T, name string) (rule, crds string) {
	t.Helper()
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		} else if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	dir := "../../examples/" + name + "/"
	if rule = read(dir + "rule.yaml"); rule == "" {
		rule = read("../builtin/" + name + ".yaml")
	}
	if rule == "" {
		t.Fatalf("there is no example %s", name)
	}
	return rule, read(dir + "crd.yaml")
}

// mutate makes the slip, and tells on which line it must be found.
func (m mutation) mutate(t *testing.T, text string) (mutated string, line int) {
	t.Helper()
	at := len(text)
	mutated = text
	for i := 0; i+1 < len(m.edit); i += 2 {
		from, to := m.edit[i], m.edit[i+1]
		if strings.Count(mutated, from) != 1 {
			t.Fatalf("%q stands %d times in the rule of %s", from, strings.Count(mutated, from), m.example)
		}
		at = min(at, strings.Index(mutated, from))
		mutated = strings.Replace(mutated, from, to, 1)
	}
	mutated += m.beside
	if m.at != "" {
		if at = strings.Index(mutated, m.at); at < 0 {
			t.Fatalf("%q does not stand in the rule", m.at)
		}
	}
	return mutated, 1 + strings.Count(mutated[:at], "\n")
}

// Each slip is found, by the check that is about it and on its line, and by no
// other. What ships has none.
func TestUnracedMutationsOfTheGallery(t *testing.T) {
	found := map[string]bool{}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			text, crds := exampleFiles(t, m.example)
			known := knowing(t, crds)
			run := func(text string) []*lint.Finding {
				return lint.Run(known, rules.Source{Name: "rule.yaml", Data: []byte(text)}).Findings
			}
			clean := map[string]bool{}
			for _, f := range run(text) {
				clean[fmt.Sprint(f.Check.ID, f.Problem.Msg)] = true
				if f.Check.Severity == lint.Error || f.Check.ID == m.want {
					t.Errorf("before the slip: %s [%s]", f.Problem.Detail(), f.Check.ID)
				}
			}
			mutated, line := m.mutate(t, text)
			hit := false
			for _, f := range run(mutated) {
				switch {
				case f.Check.ID == m.want && f.Problem.Pos.Line == line:
					hit = true
				case !clean[fmt.Sprint(f.Check.ID, f.Problem.Msg)] && !slices.Contains(m.also, f.Check.ID):
					t.Errorf("also reported: %s [%s]", f.Problem.Detail(), f.Check.ID)
				}
			}
			if !hit {
				t.Errorf("%s says nothing of line %d: %s", m.want, line, strings.Split(mutated, "\n")[line-1])
			}
			found[m.want] = true
		})
	}
	if len(mutations) < 25 {
		t.Errorf("%d slips are too few", len(mutations))
	}
}
