package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestEmbeddedSchemasAreCurrent: what is checked in is what the generator makes. Compared is what is inside, because another
// Go version may compress it differently.
func TestEmbeddedSchemasAreCurrent(t *testing.T) {
	root, err := sourceTree()
	if err != nil {
		t.Fatal(err)
	}
	version, err := kubernetesVersion(root)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := specFolder(version)
	if errors.Is(err, errNotDownloaded) {
		t.Skipf("needs the sources of Kubernetes: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(os.DirFS(folder), version)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(root, "gvr", "openapi", "builtin.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("gvr/openapi/builtin.json.gz has %d bytes, the generator makes %d others; run: go generate ./gvr/openapi", len(got), len(want))
	}
}

func TestGenerateReduces(t *testing.T) {
	const document = `{"paths": {"/x": {}}, "components": {"schemas": {
		"Thing": {
			"description": "long", "type": "object", "required": ["spec"],
			"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Thing"}],
			"properties": {
				"metadata": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
				"description": {"type": "string", "description": "a property of that name stays", "default": "x"},
				"ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["protocol"],
					"items": {"allOf": [{"$ref": "#/components/schemas/Port"}], "default": {}}}
			}
		},
		"Port": {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string", "default": "", "maxLength": 3}}},
		"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"},
		"ThingList": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "ThingList"}],
			"properties": {"items": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}}},
		"Unused": {"type": "object"}
	}}}`
	const want = `{"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v9"}, "components": {"schemas": {
		"Thing": {
			"type": "object", "required": ["spec"],
			"x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Thing"}],
			"properties": {
				"metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
				"description": {"type": "string"},
				"ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["protocol"],
					"items": {"allOf": [{"$ref": "#/components/schemas/Port"}]}}
			}
		},
		"Port": {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}},
		"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"}
	}}}`
	got, err := generate(fstest.MapFS{"a.json": {Data: []byte(document)}}, "v9")
	if err != nil {
		t.Fatal(err)
	}
	var gotValue, wantValue any
	if err := json.Unmarshal(got, &gotValue); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wantValue); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantValue, gotValue); diff != "" {
		t.Error(diff)
	}
}

func TestGenerateRefuses(t *testing.T) {
	const thing = `{"components": {"schemas": {"Thing": {"type": "object", "x-kubernetes-group-version-kind": [{"kind": "Thing"}],
		"properties": {"metadata": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}}}}}`
	for name, folder := range map[string]fstest.MapFS{
		"an empty folder":           {},
		"what is no JSON":           {"a.json": {Data: []byte(`{`)}},
		"two meanings of one name":  {"a.json": {Data: []byte(thing)}, "b.json": {Data: []byte(`{"components": {"schemas": {"Thing": {"type": "string"}}}}`)}},
		"documents without objects": {"a.json": {Data: []byte(`{"components": {"schemas": {"Other": {"type": "string"}}}}`)}},
	} {
		if _, err := generate(folder, "v9"); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
