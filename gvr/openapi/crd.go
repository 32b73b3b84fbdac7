package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	objectMeta    = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	embeddedMark  = "x-kubernetes-embedded-resource"
	crdAPIVersion = "apiextensions.k8s.io/v1"
	crdKind       = "CustomResourceDefinition"
)

// CRDs knows the kinds of CustomResourceDefinition manifests, all served versions of them.
type CRDs struct {
	schemas map[schema.GroupVersionKind]json.RawMessage
	types   lazyTypes
}

// NewCRDs makes a source from manifests (apiextensions.k8s.io/v1) as decoded from YAML or JSON. The maps are not kept and not
// modified. A manifest that is not a usable CRD, and a second one for the same kind, is an error that names it. What is within
// a schema is looked at when its kind is first asked for.
func NewCRDs(manifests ...map[string]any) (*CRDs, error) {
	c := &CRDs{schemas: map[schema.GroupVersionKind]json.RawMessage{}}
	for _, manifest := range manifests {
		if err := c.add(manifest); err != nil {
			name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
			return nil, fmt.Errorf("read schema of CRD %q: %w", name, err)
		}
	}
	return c, nil
}

func (c *CRDs) add(manifest map[string]any) error {
	if manifest["apiVersion"] != crdAPIVersion || manifest["kind"] != crdKind {
		return fmt.Errorf("it is not a %s of %s", crdKind, crdAPIVersion)
	}
	group, _, _ := unstructured.NestedString(manifest, "spec", "group")
	kind, _, _ := unstructured.NestedString(manifest, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedFieldNoCopy(manifest, "spec", "versions")
	list, ok := versions.([]any)
	if group == "" || kind == "" || !ok {
		return fmt.Errorf("spec.group, spec.names.kind and spec.versions are required")
	}
	for i, item := range list {
		version, _ := item.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		name, _ := version["name"].(string)
		gvk := schema.GroupVersionKind{Group: group, Version: name, Kind: kind}
		if _, ok := c.schemas[gvk]; ok {
			return fmt.Errorf("spec.versions[%d]: %s is already defined", i, gvk)
		}
		raw, err := publishedSchema(gvk, version)
		if err != nil {
			return fmt.Errorf("spec.versions[%d]: %w", i, err)
		}
		c.schemas[gvk] = raw
	}
	return nil
}

// Type implements Types.
func (c *CRDs) Type(_ context.Context, gvk schema.GroupVersionKind) (*Type, error) {
	raw, ok := c.schemas[gvk]
	if !ok {
		return nil, noSchema(gvk)
	}
	return c.types.get(gvk, func() (*Type, error) {
		builtin, err := builtinDocument()
		if err != nil {
			return nil, err
		}
		definitions := builtin.reach(objectMeta)
		root := gvk.Group + "." + gvk.Version + "." + gvk.Kind
		definitions[root] = raw
		return newType(gvk, root, definitions)
	})
}

// publishedSchema returns the schema of a version as the API server publishes it in OpenAPI v3: with what every object has and
// no CRD says.
func publishedSchema(gvk schema.GroupVersionKind, version map[string]any) (json.RawMessage, error) {
	declared, _, err := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
	if err != nil {
		return nil, fmt.Errorf("schema is not a map")
	}
	root := map[string]any{"type": "object"} // no schema: anything goes, metadata included
	if declared != nil {
		s, ok := declared.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("schema.openAPIV3Schema is not a map")
		}
		root = withObjectFields(completeEmbedded(s).(map[string]any))
	}
	root[gvkExtension] = []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}}
	raw, err := json.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("encode schema.openAPIV3Schema: %w", err)
	}
	return raw, nil
}

// completeEmbedded returns a schema in which embedded resources have the fields of objects. Only what is on the way to one is
// copied; the rest is shared.
func completeEmbedded(value any) any {
	s, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := maps.Clone(s)
	for _, one := range []string{"items", "additionalProperties"} {
		if below, ok := s[one].(map[string]any); ok {
			out[one] = completeEmbedded(below)
		}
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		completed := make(map[string]any, len(properties))
		for name, below := range properties {
			completed[name] = completeEmbedded(below)
		}
		out["properties"] = completed
	}
	if s[embeddedMark] == true {
		return withObjectFields(out)
	}
	return out
}

// withObjectFields adds the fields that every object has. It modifies s, but not its properties.
func withObjectFields(s map[string]any) map[string]any {
	properties, _ := s["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	properties["apiVersion"] = map[string]any{"type": "string"}
	properties["kind"] = map[string]any{"type": "string"}
	properties["metadata"] = map[string]any{"$ref": refPrefix + objectMeta}
	s["properties"] = properties
	return s
}
