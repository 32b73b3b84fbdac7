// Package rollouts is a custom resource for the benchmark, with a Go type as its
// authors have: like a Deployment in all but its kind, so that figures of the two
// can be compared.
package rollouts

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is what the API server serves it as, and Kind its kind.
var (
	Resource = schema.GroupVersionResource{Group: "bench.example.io", Version: "v1", Resource: "rollouts"}
	Kind     = Resource.GroupVersion().WithKind("Rollout")
)

// Definition is the CustomResourceDefinition, as JSON. Its schema says nothing of
// the fields within spec and status, which the API server then has not to prune.
const Definition = `{
"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "rollouts.bench.example.io"},
"spec": {"group": "bench.example.io", "scope": "Namespaced", "names": {"kind": "Rollout", "listKind": "RolloutList", "plural": "rollouts", "singular": "rollout"},
  "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"replicas": {"type": "integer"}}},
    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}}`

// Rollout is one object.
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              appsv1.DeploymentSpec   `json:"spec,omitempty"`
	Status            appsv1.DeploymentStatus `json:"status,omitempty"`
}

// RolloutList is what a list request returns.
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}

// AddToScheme makes the types known.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(Resource.GroupVersion(), &Rollout{}, &RolloutList{})
	metav1.AddToGroupVersion(scheme, Resource.GroupVersion())
	return nil
}

// DeepCopyObject is what code generators write.
func (r *Rollout) DeepCopyObject() runtime.Object {
	c := &Rollout{TypeMeta: r.TypeMeta}
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	r.Spec.DeepCopyInto(&c.Spec)
	r.Status.DeepCopyInto(&c.Status)
	return c
}

// DeepCopyObject is what code generators write.
func (l *RolloutList) DeepCopyObject() runtime.Object {
	c := &RolloutList{TypeMeta: l.TypeMeta, Items: make([]Rollout, len(l.Items))}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Rollout)
	}
	return c
}
