package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/rules"
)

var (
	coreEvents = schema.GroupResource{Resource: "events"}
	newEvents  = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	leases     = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

// own reports whether an object is part of the engine's own work: its Events and
// its Lease. No rule is about those. Each fix of an Event would be told by another
// Event, and each write to the Lease gets into the way of its renewal.
func (e *Engine) own(key Key, u *unstructured.Unstructured) bool {
	switch key.Resource {
	case coreEvents, newEvents:
		return ownEvent(u)
	}
	return e.ownLease(key)
}

// ownLease reports whether an object is the engine's own Lease.
func (e *Engine) ownLease(key Key) bool {
	return key.Resource == leases && e.opts.Lease.Name != "" && key.Namespace == e.opts.Lease.Namespace && key.Name == e.opts.Lease.Name
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

// excludes reports whether an object is left alone because of
// Options.ExcludeNamespaces. The key is all that it takes to know: such an object
// never comes into the queue, on whatever way.
func (e *Engine) excludes(key Key) bool {
	_, excluded := ExcludedBy(e.excluded, key.Resource, key.Namespace, key.Name)
	return excluded
}

// ExcludedBy tells which of the patterns of Options.ExcludeNamespaces leaves an
// object out: by the name of its Namespace, which for a Namespace is its own.
// Other cluster-scoped objects are left out by none. namespace is empty for what
// is cluster-scoped.
func ExcludedBy(excluded rules.Globs, resource schema.GroupResource, namespace, name string) (pattern string, ok bool) {
	if resource == namespaces.GroupResource() {
		namespace = name
	}
	if namespace == "" {
		return "", false
	}
	return excluded.Match(namespace)
}
