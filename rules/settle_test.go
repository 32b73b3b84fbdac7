package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What several passes make of an object, and what they send.
func TestSettle(t *testing.T) {
	set, problems := Load(Source{Name: "r", Data: []byte(`
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: a-waits}
spec:
  resource: {group: "", version: v1, resource: configmaps}
  condition: object.data.?b.orValue('') == '1'
  patch: {merge: {data: {a: "1"}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: b-sets}
spec:
  resource: {group: "", version: v1, resource: configmaps}
  condition: object.metadata.name == 'c'
  patch: {merge: {data: {b: "1"}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: c-fails-then}
spec:
  resource: {group: "", version: v1, resource: configmaps}
  condition: object.data.?a.orValue('') == '1' && int(object.data.a + 'x') > 0
  patch: {merge: {data: {c: "1"}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: d-audits}
spec:
  resource: {group: "", version: v1, resource: configmaps}
  mode: Audit
  condition: object.data.?a.orValue('') == '1'
  patch: {merge: {data: {d: "1"}}}
`)})
	for _, p := range problems {
		t.Fatal(p.Detail())
	}
	in := Input{Resource: set.Resources()[0], Object: object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {q: r}}"), Explain: true}
	got := Settle(set.All(), in)
	if diff := cmp.Diff(map[string]any{"a": "1", "b": "1", "q": "r"}, got.Object["data"]); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	if len(got.Requests) != 2 {
		t.Errorf("%d requests, want one for each pass", len(got.Requests))
	}
	outcomes := map[string]Outcome{}
	for _, v := range got.Verdicts {
		outcomes[v.Rule.Name] = v.Outcome
	}
	if diff := cmp.Diff(map[string]Outcome{"a-waits": Patch, "b-sets": Patch, "c-fails-then": Error, "d-audits": Patch}, outcomes); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	// What is at rest stays so.
	in.Object = got.Object
	if again := Settle(set.All(), in); len(again.Requests) > 0 {
		t.Errorf("%d requests for what is at rest", len(again.Requests))
	}
}
