package openapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: false
    storage: false
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              ratio: {type: number}
              port: {x-kubernetes-int-or-string: true}
              rules:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [host, protocol]
                items:
                  type: object
                  required: [host]
                  properties:
                    host: {type: string}
                    protocol: {type: string, default: http}
                    paths: {type: array, items: {type: string}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              list: {type: array, items: {type: object, properties: {a: {type: string}}}}
              ref: {type: object, x-kubernetes-map-type: atomic, properties: {name: {type: string}}}
              values: {type: object, x-kubernetes-preserve-unknown-fields: true}
              partly: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: integer}}}
              pools: {type: object, additionalProperties: {type: object, properties: {size: {type: integer}, zones: {type: array, items: {type: string}}}}}
              manifest: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object, properties: {x: {type: string}}}}}
`

const widget = `
apiVersion: example.io/v1
kind: Widget
metadata: {name: w}
spec:
  rules: [{host: a, paths: [/]}, {host: b, protocol: tcp}]
  tags: [x]
  values: {a: {b: 1}, list: [1, 2]}
  pools: {east: {size: 1, zones: [a]}}
  manifest: {apiVersion: v1, kind: ConfigMap, data: {a: "1"}}
`

var widgetKind = schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}

func widgetType(t testing.TB) *Type {
	t.Helper()
	manifest := object(t, widgets)
	crds, err := NewCRDs(manifest)
	if err != nil {
		t.Fatal(err)
	}
	typ, err := crds.Type(t.Context(), widgetKind)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, widgets), manifest); diff != "" {
		t.Errorf("the manifest was modified: %s", diff)
	}
	return typ
}

// widgetCases are also what TestClusterEqualsManifest gives to the API server's own schema.
var widgetCases = []struct {
	name   string
	config string
	cause  error
	want   []Change
}{
	{"by both keys, one of them the default", `{spec: {rules: [{host: a, protocol: http}]}}`, nil,
		[]Change{{"add", []string{"spec", "rules", "0", "protocol"}, "http"}}},
	{"by both keys", `{spec: {rules: [{host: b, protocol: tcp}, {host: c}]}}`, nil,
		[]Change{{"add", []string{"spec", "rules", "2"}, map[string]any{"host": "c"}}}},
	{"atomic list in an element", `{spec: {rules: [{host: a, paths: [/x]}]}}`, ErrAtomic, nil},
	{"set", `{spec: {tags: [z]}}`, nil, []Change{{"add", []string{"spec", "tags", "1"}, "z"}}},
	{"list without a type", `{spec: {list: [{a: b}]}}`, ErrAtomic, nil},
	{"atomic map", `{spec: {ref: {name: x}}}`, ErrAtomic, nil},
	{"int or string", `{spec: {port: http}}`, nil, []Change{{"add", []string{"spec", "port"}, "http"}}},
	{"number", `{spec: {ratio: 0.5, size: 3}}`, nil,
		[]Change{{"add", []string{"spec", "ratio"}, 0.5}, {"add", []string{"spec", "size"}, int64(3)}}},
	{"free-form map", `{spec: {values: {a: {c: [1]}}}}`, nil, []Change{{"add", []string{"spec", "values", "a", "c"}, []any{int64(1)}}}},
	{"free-form list is replaced", `{spec: {values: {list: [3]}}}`, nil,
		[]Change{{"replace", []string{"spec", "values", "list", "0"}, int64(3)}, {"remove", []string{"spec", "values", "list", "1"}, nil}}},
	{"known field of a free-form map", `{spec: {partly: {known: x}}}`, ErrWrongType, nil},
	{"map of objects", `{spec: {pools: {east: {size: 2}, west: {size: 1}}}}`, nil, []Change{
		{"replace", []string{"spec", "pools", "east", "size"}, int64(2)}, {"add", []string{"spec", "pools", "west"}, map[string]any{"size": int64(1)}}}},
	{"embedded resource, free-form", `{spec: {manifest: {metadata: {labels: {a: b}}, data: {b: "2"}}}}`, nil, []Change{
		{"add", []string{"spec", "manifest", "data", "b"}, "2"},
		{"add", []string{"spec", "manifest", "metadata"}, map[string]any{"labels": map[string]any{"a": "b"}}}}},
	{"embedded resource", `{spec: {template: {apiVersion: v1, kind: X, metadata: {name: x}, spec: {x: "1"}}}}`, nil,
		[]Change{{"add", []string{"spec", "template"}, map[string]any{"apiVersion": "v1", "kind": "X",
			"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"x": "1"}}}}},
	{"unknown field of an embedded resource", `{spec: {template: {data: {}}}}`, ErrUnknownField, nil},
	{"wrong type in embedded metadata", `{spec: {template: {metadata: {labels: [a]}}}}`, ErrWrongType, nil},
	{"unknown field", `{spec: {sice: 3}}`, ErrUnknownField, nil},
	{"label", `{metadata: {labels: {a: b}}}`, nil, []Change{{"add", []string{"metadata", "labels"}, map[string]any{"a": "b"}}}},
	{"unknown field of metadata", `{metadata: {lables: {a: b}}}`, ErrUnknownField, nil},
}

func TestMergeCustomResource(t *testing.T) { testWidgets(t, widgetType(t)) }

func testWidgets(t *testing.T, typ *Type) {
	converter := upstreamConverter(t, &document{definitions: typ.definitions})
	for _, test := range widgetCases {
		t.Run(test.name, func(t *testing.T) {
			live, config := object(t, widget), object(t, test.config)
			got, err := typ.Merge(live, config)
			if !errors.Is(err, test.cause) || (err == nil) != (test.cause == nil) {
				t.Fatalf("got %v, want %v", err, test.cause)
			}
			want, wantErr := upstreamMerge(converter, typ, live, config)
			if (wantErr == nil) != (err == nil) || err == nil && !jsonvalue.Equal(got, want) {
				t.Errorf("upstream: %v, differences %v", wantErr, Changes(want, got))
			}
			if diff := cmp.Diff(test.want, Changes(live, got)); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAtomicListInMapOfObjects is the one difference: upstream does not look below additionalProperties, and there replaces
// atomic lists whole without a word.
func TestAtomicListInMapOfObjects(t *testing.T) {
	_, err := widgetType(t).Merge(object(t, widget), object(t, `{spec: {pools: {east: {zones: [b]}}}}`))
	var field *FieldError
	if !errors.As(err, &field) || field.Err != ErrAtomic || field.Path != "spec.pools.east.zones" {
		t.Errorf("got %v", err)
	}
}

func TestElementWithoutKeys(t *testing.T) {
	manifest := strings.ReplaceAll(widgets, ", default: http", "")
	crds, err := NewCRDs(object(t, manifest))
	if err != nil {
		t.Fatal(err)
	}
	typ, err := crds.Type(t.Context(), widgetKind)
	if err != nil {
		t.Fatal(err)
	}
	const want = "spec.rules[0]: list element without an identity of its own: it has none of the keys host, protocol"
	if err := typ.Check(object(t, `{spec: {rules: [{paths: []}]}}`)); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestCRDWithoutSchema(t *testing.T) {
	crds, err := NewCRDs(object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x.a.io},
		spec: {group: a.io, names: {kind: X, plural: xs}, preserveUnknownFields: true, versions: [{name: v1, served: true}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	typ, err := crds.Type(t.Context(), schema.GroupVersionKind{Group: "a.io", Version: "v1", Kind: "X"})
	if err != nil {
		t.Fatal(err)
	}
	if err := typ.Check(object(t, `{metadata: {labels: {a: b}}, anything: {at: [all]}}`)); err != nil {
		t.Error(err)
	}
}

func TestNewCRDsRefuses(t *testing.T) {
	for name, manifests := range map[string][]string{
		"another kind":     {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`},
		"another version":  {strings.Replace(widgets, "io/v1\n", "io/v1beta1\n", 1)},
		"no group":         {strings.Replace(widgets, "group: example.io", "", 1)},
		"the same twice":   {widgets, widgets},
		"schema is a list": {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: a, names: {kind: X}, versions: [{name: v1, served: true, schema: {openAPIV3Schema: []}}]}}`},
	} {
		var objects []map[string]any
		for _, manifest := range manifests {
			objects = append(objects, object(t, manifest))
		}
		if _, err := NewCRDs(objects...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestJoin(t *testing.T) {
	crds, err := NewCRDs(object(t, widgets))
	if err != nil {
		t.Fatal(err)
	}
	types := Join(crds, Builtin())
	for _, gvk := range []schema.GroupVersionKind{widgetKind, deploymentKind} {
		if typ, err := types.Type(t.Context(), gvk); err != nil || typ.GVK() != gvk {
			t.Errorf("%s: %v", gvk, err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "example.io", Version: "v1alpha1", Kind: "Widget"}, // not served
		{Group: "apps", Version: "v1beta1", Kind: "Deployment"},
		{Group: "apps", Version: "v1", Kind: "DeploymentList"},
	} {
		if _, err := types.Type(t.Context(), gvk); !errors.Is(err, ErrNoSchema) {
			t.Errorf("%s: %v", gvk, err)
		}
	}
}
