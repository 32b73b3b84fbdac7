package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// own reports whether an object is part of the engine's own work: its Events and
// its Lease. No rule is about those. Each fix of an Event would be told by another
// Event, and each write to the Lease gets into the way of its renewal.
func (e *Engine) own(resource schema.GroupResource, u *unstructured.Unstructured) bool {
	switch resource {
	case schema.GroupResource{Resource: "events"}, schema.GroupResource{Group: "events.k8s.io", Resource: "events"}:
		return ownEvent(u)
	case schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}:
		return e.opts.Lease.Name != "" && u.GetNamespace() == e.opts.Lease.Namespace && u.GetName() == e.opts.Lease.Name
	}
	return false
}

// ownEvent reports whether an Event tells of the engine's own work.
func ownEvent(u *unstructured.Unstructured) bool {
	for _, field := range []string{"reportingController", "reportingComponent"} {
		if by, _, _ := unstructured.NestedString(u.Object, field); by == ReportingController {
			return true
		}
	}
	return false
}
