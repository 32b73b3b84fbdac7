package rules

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SCL-02: whoever may read managedFields is known, and only they.
func TestReadsManagedFields(t *testing.T) {
	configmaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	tests := []struct {
		name, spec                       string
		configmaps, secrets, ofNamespace bool
	}{
		{"labels only", `condition: has(object.metadata.labels) && object.metadata.name != 'a'`, false, false, false},
		{"no expression", `match: {labelSelector: {matchLabels: {a: b}}}`, false, false, false},
		{"the last-applied annotation", `condition: "'kubectl.kubernetes.io/last-applied-configuration' in object.metadata.?annotations.orValue({})"`, false, false, false},
		{"a configuration", `condition: object.data.a == 'b'`, false, false, false},
		{"by name", `condition: object.metadata.managedFields.exists(m, m.manager == 'kubectl')`, true, false, false},
		{"whether there are any", `condition: "!has(object.metadata.managedFields)"`, true, false, false},
		{"as an optional", `condition: object.metadata.?managedFields.orValue([]).size() == 0`, true, false, false},
		{"by a computed key", `condition: object.metadata['managed' + 'Fields'].size() == 0`, true, false, false},
		{"among all keys", `condition: object.metadata.exists(k, k == 'managedFields')`, true, false, false},
		{"all of the metadata", `condition: object.metadata == {}`, true, false, false},
		{"all of the object", `condition: object == namespaceObject`, true, false, true},
		{"through a variable", `variables: [{name: meta, expression: object.metadata}]
  condition: variables.meta.managedFields.size() > 9`, true, false, false},
		{"in an event", `event: {reason: Fixed, message: "owned by ${object.metadata.managedFields[0].manager}"}`, true, false, false},
		{"copied", `patch: {json: [{op: copy, from: /metadata/managedFields/0/manager, path: /data/a}]}`, true, false, false},
		{"copied with all metadata", `patch: {json: [{op: copy, from: /metadata, path: /data/a}]}`, true, false, false},
		{"tested", `patch: {json: [{op: test, path: /metadata/managedFields, value: null}, {op: add, path: /data/a, value: x}]}`, true, false, false},
		{"by operations that nobody knows", `patch: {json: "${object.data.ops}"}`, true, false, false},
		{"by operations that copy something else", `patch: {json: [{op: copy, from: /metadata/labels/a, path: /data/a}]}`, false, false, false},
		{"a patch that nobody knows", `patch: {merge: "${object.data.patch}"}`, false, false, false},
		{"of what is looked up", `lookups: [{name: found, resource: {version: v1, resource: secrets}}]
  condition: lookups.found.exists(s, s.metadata.managedFields.size() > 9)`, false, true, false},
		{"of the Namespace", `condition: namespaceObject.metadata.managedFields.size() > 9`, false, false, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			set := load(t, fmt.Sprintf(`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: rule}
spec:
  resource: {version: v1, resource: configmaps}
  %s
`, withPatch(test.spec)))
			for resource, want := range map[schema.GroupVersionResource]bool{configmaps: test.configmaps, secrets: test.secrets, namespaces: test.ofNamespace} {
				if got := set.ReadsManagedFields(resource); got != want {
					t.Errorf("%s: %v, want %v", resource.Resource, got, want)
				}
			}
		})
	}
}

func withPatch(spec string) string {
	if strings.HasPrefix(spec, "patch: ") {
		return spec
	}
	return spec + "\n  patch: {merge: {data: {a: b}}}"
}
