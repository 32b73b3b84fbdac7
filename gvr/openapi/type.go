package openapi

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// Type is the schema of one kind. It is immutable and safe for concurrent use.
type Type struct {
	gvk         schema.GroupVersionKind
	schema      *smd.Schema
	root        smd.TypeRef
	definitions map[string]json.RawMessage
}

// GVK returns the kind.
func (t *Type) GVK() schema.GroupVersionKind { return t.gvk }

// Definitions decodes the OpenAPI v3 definitions that the kind needs, and names that of the kind itself. References between
// them have the form #/components/schemas/NAME. It decodes anew on every call, for milliseconds: the result is the caller's.
func (t *Type) Definitions() (root string, definitions map[string]*spec.Schema, err error) {
	definitions, err = decodeDefinitions(t.definitions)
	if err != nil {
		return "", nil, fmt.Errorf("decode schema of %s: %w", t.gvk, err)
	}
	return *t.root.NamedType, definitions, nil
}

// Check says whether config can be merged into objects of this kind: fields that the kind does not have, values of the wrong
// type, list elements without their keys or with the same ones, and atomic lists and maps are errors. All *FieldErrors are
// joined, in the order of their paths; errors.Is tells the classes apart.
//
// config is a partial object as a rule writes it: JSON-shaped values (map[string]any, []any, string, bool, int64, float64, nil).
// apiVersion and kind may be left out; if they are there, they must be those of the type.
func (t *Type) Check(config map[string]any) error {
	c := checker{schema: t.schema}
	c.identity(t.gvk, config)
	c.value(nil, t.root, config)
	return c.err()
}

// Merge returns object with config merged into it, or what Check says about config. An object of another kind is an error.
//
// Fields of config replace those of the object. Maps are merged by key, lists by the keys that the schema gives to their
// elements, sets by value: elements of config that the object has not are added, and nothing is ever removed. A list of which
// an element is named in config takes the order of config as far as it goes. null replaces a scalar and anything empty or
// absent, by null, and leaves alone what has members. What the object holds besides is not looked at, and not checked.
//
// Neither argument is modified. The result shares unchanged parts with object, and is object itself if nothing changes: a
// value that is equal as JSON (3 and 3.0) is no change. It shares new parts with config.
func (t *Type) Merge(object, config map[string]any) (map[string]any, error) {
	if apiVersion, kind := t.gvk.ToAPIVersionAndKind(); object["apiVersion"] != apiVersion || object["kind"] != kind {
		return nil, fmt.Errorf("merge into an object that is not a %s of %s", kind, apiVersion)
	}
	if err := t.Check(config); err != nil {
		return nil, err
	}
	m := merger{schema: t.schema}
	merged := m.value(nil, t.root, object, config)
	if m.err != nil {
		return nil, m.err
	}
	return merged.(map[string]any), nil // a map and a map give a map
}
