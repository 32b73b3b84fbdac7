package gvr

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// crdResource is where the cluster keeps CRDs. They are read as unstructured objects: their Go types would bring in
// k8s.io/apiextensions-apiserver for eight fields.
var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// crd is what this package wants to know about a CustomResourceDefinition.
type crd struct {
	uid         types.UID
	resource    schema.GroupResource
	kind        string
	namespaced  bool
	established bool
	versions    []crdVersion
	preferred   string // of the served versions; empty if none is served
}

type crdVersion struct {
	name                string
	served, stored      bool
	hasStatus, hasScale bool
	replicasPath        []string
}

// parseCRD reads a CRD as it comes from YAML, JSON or an informer.
func parseCRD(object map[string]any) (crd, error) {
	u := unstructured.Unstructured{Object: object}
	name := u.GetName()
	if u.GetKind() != "CustomResourceDefinition" || u.GroupVersionKind().Group != crdResource.Group {
		return crd{}, fmt.Errorf("read CRD %q: it is a %s of %q", name, u.GetKind(), u.GetAPIVersion())
	}
	if v := u.GroupVersionKind().Version; v != crdResource.Version {
		return crd{}, fmt.Errorf("read CRD %q: version %s of CustomResourceDefinition is not known, only %s", name, v, crdResource.Version)
	}
	group, _, _ := unstructured.NestedString(object, "spec", "group")
	plural, _, _ := unstructured.NestedString(object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(object, "spec", "scope")
	if group == "" || plural == "" || kind == "" {
		return crd{}, fmt.Errorf("read CRD %q: spec.group, spec.names.plural and spec.names.kind are required", name)
	}
	if scope != "Namespaced" && scope != "Cluster" {
		return crd{}, fmt.Errorf("read CRD %q: spec.scope must be Namespaced or Cluster, not %q", name, scope)
	}
	c := crd{
		uid:         u.GetUID(),
		resource:    schema.GroupResource{Group: group, Resource: plural},
		kind:        kind,
		namespaced:  scope == "Namespaced",
		established: isEstablished(object),
	}
	versions, _ := nested(object, "spec", "versions").([]any)
	for i, v := range versions {
		version, err := parseCRDVersion(v)
		if err != nil {
			return crd{}, fmt.Errorf("read CRD %q: spec.versions[%d]: %w", name, i, err)
		}
		c.versions = append(c.versions, version)
	}
	if len(c.versions) == 0 {
		return crd{}, fmt.Errorf("read CRD %q: spec.versions is empty", name)
	}
	c.preferred = preferredVersion(c.servedVersions())
	return c, nil
}

func parseCRDVersion(value any) (crdVersion, error) {
	fields, _ := value.(map[string]any)
	v := crdVersion{}
	v.name, _, _ = unstructured.NestedString(fields, "name")
	if v.name == "" {
		return v, fmt.Errorf("name is required")
	}
	v.served, _, _ = unstructured.NestedBool(fields, "served")
	v.stored, _, _ = unstructured.NestedBool(fields, "storage")
	subresources, _ := fields["subresources"].(map[string]any)
	_, v.hasStatus = subresources["status"]
	if scale, ok := subresources["scale"].(map[string]any); ok {
		v.hasScale = true
		if path, _ := scale["specReplicasPath"].(string); strings.HasPrefix(path, ".") {
			// The API server admits simple dotted paths only.
			v.replicasPath = strings.Split(path[1:], ".")
		}
	}
	return v, nil
}

func isEstablished(object map[string]any) bool {
	conditions, _ := nested(object, "status", "conditions").([]any)
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// info describes one version. The version must be served.
func (c *crd) info(version string) (Info, bool) {
	for _, v := range c.versions {
		if v.name == version && v.served {
			info := Info{
				Resource:     c.resource.WithVersion(version),
				Kind:         c.kind,
				Namespaced:   c.namespaced,
				HasStatus:    v.hasStatus,
				HasScale:     v.hasScale,
				ReplicasPath: v.replicasPath,
			}
			if c.preferred != version && !v.stored {
				info.Preferred = c.preferred
			}
			return info, true
		}
	}
	return Info{}, false
}

func (c *crd) servedVersions() []string {
	var names []string
	for _, v := range c.versions {
		if v.served {
			names = append(names, v.name)
		}
	}
	return names
}

// pruneCRD is the transform of the CRD informer: of a CRD, which may have hundreds of kilobytes of schema, it keeps
// what parseCRD reads.
func pruneCRD(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil // a tombstone: what it holds was pruned before
	}
	spec := map[string]any{
		"group": nested(u.Object, "spec", "group"),
		"names": nested(u.Object, "spec", "names"),
		"scope": nested(u.Object, "spec", "scope"),
	}
	versions, _ := nested(u.Object, "spec", "versions").([]any)
	pruned := make([]any, 0, len(versions))
	for _, v := range versions {
		version, _ := v.(map[string]any)
		kept := map[string]any{"name": version["name"], "served": version["served"], "storage": version["storage"]}
		if subresources, ok := version["subresources"]; ok {
			kept["subresources"] = subresources
		}
		pruned = append(pruned, kept)
	}
	spec["versions"] = pruned
	conditions := []any{}
	if isEstablished(u.Object) {
		conditions = append(conditions, map[string]any{"type": "Established", "status": "True"})
	}
	out := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": u.GetAPIVersion(),
		"kind":       u.GetKind(),
		"metadata":   map[string]any{"name": u.GetName()},
		"spec":       spec,
		"status":     map[string]any{"conditions": conditions},
	}}
	out.SetUID(u.GetUID())
	out.SetResourceVersion(u.GetResourceVersion())
	return out, nil
}

// nested is unstructured.NestedFieldNoCopy without the error: absent and of another type are the same here.
func nested(object map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}
