package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

const (
	refPrefix    = "#/components/schemas/"
	gvkExtension = "x-kubernetes-group-version-kind"
)

// document is the definitions of one OpenAPI v3 document, undecoded: of a document of many megabytes, most is never needed.
type document struct {
	definitions map[string]json.RawMessage
}

// parseDocument splits a document. What it keeps are copies: data is free afterwards.
func parseDocument(data []byte) (*document, error) {
	var parsed struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &parsed); err != nil {
		return nil, fmt.Errorf("parse OpenAPI v3 document: %w", err)
	}
	return &document{definitions: parsed.Components.Schemas}, nil
}

// find returns the name of the definition of a kind.
func (d *document) find(gvk schema.GroupVersionKind) (string, bool) {
	kind := []byte(strconv.Quote(gvk.Kind))
	for name, raw := range d.definitions {
		// Decoding takes a thousand times longer than this, and is wrong for nearly all definitions.
		if !bytes.Contains(raw, []byte(gvkExtension)) || !bytes.Contains(raw, kind) {
			continue
		}
		var extensions struct {
			GVKs []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		if err := json.Unmarshal(raw, &extensions); err != nil {
			continue // a property of that name
		}
		// Options and Status carry a long list of kinds; what is an object has one.
		if len(extensions.GVKs) == 1 && extensions.GVKs[0] == gvk {
			return name, true
		}
	}
	return "", false
}

var reference = regexp.MustCompile(`"\$ref"\s*:\s*"#/components/schemas/([^"]+)"`)

// reach returns the definition and all that it refers to, directly or not.
func (d *document) reach(name string) map[string]json.RawMessage {
	reached := map[string]json.RawMessage{}
	pending := []string{name}
	for len(pending) > 0 {
		name, pending = pending[len(pending)-1], pending[:len(pending)-1]
		raw, ok := d.definitions[name]
		if _, done := reached[name]; done || !ok {
			continue // a reference that leads nowhere shows when a value meets it
		}
		reached[name] = raw
		for _, match := range reference.FindAllSubmatch(raw, -1) {
			pending = append(pending, string(match[1]))
		}
	}
	return reached
}

// build makes the Type of a kind, or says ErrNoSchema.
func (d *document) build(gvk schema.GroupVersionKind) (*Type, error) {
	name, ok := d.find(gvk)
	if !ok {
		return nil, noSchema(gvk)
	}
	return newType(gvk, name, d.reach(name))
}

func newType(gvk schema.GroupVersionKind, root string, raw map[string]json.RawMessage) (*Type, error) {
	definitions, err := decodeDefinitions(raw)
	if err != nil {
		return nil, fmt.Errorf("decode schema of %s: %w", gvk, err)
	}
	converted, err := schemaconv.ToSchemaFromOpenAPI(definitions, false)
	if err != nil {
		return nil, fmt.Errorf("convert schema of %s: %w", gvk, err)
	}
	return &Type{
		gvk:         gvk,
		schema:      converted,
		root:        smd.TypeRef{NamedType: &root},
		definitions: raw,
	}, nil
}

func decodeDefinitions(raw map[string]json.RawMessage) (map[string]*spec.Schema, error) {
	definitions := make(map[string]*spec.Schema, len(raw))
	for name, data := range raw {
		definition := &spec.Schema{}
		if err := json.Unmarshal(data, definition); err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		definitions[name] = definition
	}
	return definitions, nil
}
