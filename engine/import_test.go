package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/rules/importer"
)

var (
	policies       = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"}
	policyBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"}
	statefulsets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	ingresses      = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	jobs           = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// policyCase is an admission policy, and objects that it changes or leaves
// alone.
type policyCase struct {
	name    string
	spec    string // of the policy
	objects []policyObject
}

type policyObject struct {
	resource schema.GroupVersionResource
	changed  bool   // whether the policy changes it
	yaml     string // with a verb for the name
}

// What a policy gives to objects that are created while it is in force, the
// imported rule gives to those that were there before; and then it is silent.
func TestImportedPoliciesGiveExistingObjectsWhatAdmissionGivesNewOnes(t *testing.T) {
	testcluster.RequireVersion(t, "1.36", "MutatingAdmissionPolicy of admissionregistration.k8s.io/v1")
	for _, tc := range policyCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.labelNamespace(`{"metadata":{"labels":{"team":"payments"}}}`)
			before := f.createAll(tc, "existing")

			policy := f.policy(tc.spec)
			f.enforce(policy)
			f.awaitAdmission(tc, before, true)
			want := f.createAll(tc, "admitted")
			for i, o := range tc.objects {
				if diff := cmp.Diff(before[i], want[i]); (diff != "") != o.changed {
					t.Fatalf("admission changes object %d: want %v, got (-without +with the policy):\n%s", i, o.changed, diff)
				}
			}
			f.lift()
			f.awaitAdmission(tc, before, false) // or admission would do the engine's work at its first write

			f.start(imported(t, policy)...)
			for i, o := range tc.objects {
				testcluster.Eventually(t, soon, func() error {
					if diff := cmp.Diff(want[i], f.essence(f.get(o.resource, objectName("existing", i)))); diff != "" {
						return fmt.Errorf("object %d (-by admission +by the rule):\n%s", i, diff)
					}
					return nil
				})
			}
			f.wantOneWriteEach(tc)
		})
	}
}

// createAll creates the objects of a case under names of their own, and
// returns what became of them.
func (f *fixture) createAll(tc policyCase, prefix string) []map[string]any {
	f.Helper()
	var out []map[string]any
	for i, o := range tc.objects {
		out = append(out, f.essence(f.create(o.resource, o.yaml, objectName(prefix, i))))
	}
	return out
}

func objectName(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }

// essence is what two objects made of one manifest have in common: all but
// what the server gives to each of them, wherever it stands.
func (f *fixture) essence(u *unstructured.Unstructured) map[string]any {
	f.Helper()
	object := u.DeepCopy().Object
	delete(object, "status")
	for _, field := range []string{"resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	data, err := json.Marshal(object)
	if err != nil {
		f.Fatal(err)
	}
	text := strings.NewReplacer(string(u.GetUID()), "UID", u.GetName(), "NAME").Replace(string(data))
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		f.Fatal(err)
	}
	return out
}

// policy writes a policy and its binding to the test's namespace, as people
// keep them in a file.
func (f *fixture) policy(spec string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  %[2]s
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
`, f.ns, strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  "))
}

func (f *fixture) enforce(policy string) {
	f.Helper()
	f.Cleanup(f.lift)
	for i, doc := range strings.Split(policy, "---\n") {
		u := f.object("%s", doc)
		u.SetNamespace("")
		resource := []schema.GroupVersionResource{policies, policyBindings}[i]
		if _, err := f.client.Resource(resource).Create(f.Context(), u, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

// lift deletes the test's policy and binding. It may be called again.
func (f *fixture) lift() {
	for _, resource := range []schema.GroupVersionResource{policyBindings, policies} {
		_ = f.client.Resource(resource).Delete(context.WithoutCancel(f.Context()), f.ns, metav1.DeleteOptions{})
	}
}

// awaitAdmission waits until the API server applies the policy, or does not
// any more: both take it a moment. Nothing is created.
func (f *fixture) awaitAdmission(tc policyCase, without []map[string]any, inForce bool) {
	f.Helper()
	for i, o := range tc.objects {
		if !o.changed {
			continue
		}
		testcluster.Eventually(f, soon, func() error {
			u, err := f.client.Resource(o.resource).Namespace(f.ns).Create(f.Context(), f.object(o.yaml, "probe"),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			if applied := !cmp.Equal(without[i], f.essence(u)); applied != inForce {
				return fmt.Errorf("the policy applies to object %d: %v", i, applied)
			}
			return nil
		})
	}
}

// imported makes rules of a policy; nothing may be lost.
func imported(t *testing.T, policy string) []string {
	t.Helper()
	result := importer.Import([]input.File{{Name: "policy.yaml", Data: []byte(policy)}}, importer.Options{})
	if err := errors.Join(result.Unreadable...); err != nil {
		t.Fatal(err)
	}
	for _, finding := range result.Findings {
		if finding.Severity == importer.Lost {
			t.Error(finding)
		}
	}
	var out []string
	for _, r := range result.Rules {
		out = append(out, r.Text)
	}
	if len(out) != 1 {
		t.Fatalf("%d rules of one policy and one binding", len(out))
	}
	return out
}

// wantOneWriteEach proves that the engine has come to rest, and that it wrote
// once to each object that it had to change, never to what admission had done.
func (f *fixture) wantOneWriteEach(tc policyCase) {
	f.Helper()
	want, got := map[string]int{}, map[string]int{}
	seen := map[schema.GroupVersionResource]bool{}
	for i, o := range tc.objects {
		if o.changed {
			want[o.resource.Resource+"/"+objectName("existing", i)] = 1
		}
		if seen[o.resource] {
			continue
		}
		seen[o.resource] = true
		f.settle(o.resource.Resource)
		for _, e := range f.requests(o.resource.Resource) {
			got[e.ObjectRef.Resource+"/"+e.ObjectRef.Name]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("requests by object (-want +got):\n%s", diff)
	}
}
