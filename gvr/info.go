package gvr

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Info says what a resource is. It is a value; ReplicasPath is shared and must not be modified.
type Info struct {
	Resource   schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// HasStatus and HasScale say whether the endpoints /status and /scale exist.
	HasStatus, HasScale bool
	// ReplicasPath is where the spec.replicas of /scale lives in the object itself. It is nil where that is not
	// known: for a custom resource whose CRD may not be read, and for aggregated APIs.
	ReplicasPath []string
	// Preferred is the version that the cluster prefers to this one, if it is another one: what only that one knows of
	// an object may be lost when the object is written through this one. It is empty for the version in which a CRD
	// stores objects, and for built-in resources, whose versions all hold the same.
	Preferred string
}

// State is what an informer, or a resource without one, is doing.
type State string

const (
	// Waiting: the resource is not served, or it is not known yet whether it is. It starts by itself.
	Waiting State = "WaitingForResource"
	// Syncing: the first list is under way.
	Syncing State = "Syncing"
	// Synced: the store has been filled once and the watch works.
	Synced State = "Synced"
	// Forbidden: the identity may not list or watch it, or it lies outside the namespaces that the engine is
	// limited to. The first recovers by itself within 20 s of the Role being granted.
	Forbidden State = "Forbidden"
	// Failing: requests fail for another reason. It recovers by itself. A store that had synced keeps answering.
	Failing State = "Failing"
)

// Status is the state of one resource in one scope.
type Status struct {
	Resource schema.GroupVersionResource
	// Namespace is the scope: empty for the whole cluster, and for a resource that has no informer at the moment.
	Namespace string
	State     State
	// Reason is for people, one line, without anything from an object's content. Empty where the state says it all.
	Reason string
	// Since is when State last changed.
	Since time.Time
	// Objects is the number of objects in the store.
	Objects int
}
