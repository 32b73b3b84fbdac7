package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
)

const (
	refPrefix     = "#/components/schemas/"
	objectMetaRef = refPrefix + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	gvkExtension  = "x-kubernetes-group-version-kind"
)

// generate reads all OpenAPI documents in folder and returns one, as JSON with sorted keys: the same input gives the same bytes.
func generate(folder fs.FS, version string) ([]byte, error) {
	all, err := readDefinitions(folder)
	if err != nil {
		return nil, err
	}
	kept := map[string]any{}
	for name, definition := range all {
		if isObject(definition) {
			keep(kept, all, name)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("no kinds found")
	}
	keys := map[string]bool{}
	for _, definition := range kept {
		collectListKeys(keys, definition)
	}
	for name, definition := range kept {
		kept[name] = reduce(definition, keys)
	}
	return json.Marshal(map[string]any{
		"openapi":    "3.0.0",
		"info":       map[string]any{"title": "Kubernetes", "version": version},
		"components": map[string]any{"schemas": kept},
	})
}

func readDefinitions(folder fs.FS) (map[string]map[string]any, error) {
	files, err := fs.Glob(folder, "*.json")
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	all := map[string]map[string]any{}
	for _, file := range files {
		data, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, fmt.Errorf("read document: %w", err)
		}
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(data, &document); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		for name, definition := range document.Components.Schemas {
			// Options differ from one document to the next in the kinds that they list; nobody asks for those.
			if other, ok := all[name]; ok && isOneKind(definition) && !reflect.DeepEqual(other, definition) {
				return nil, fmt.Errorf("%s: %s is not what it is in another document", file, name)
			}
			all[name] = definition
		}
	}
	return all, nil
}

// isOneKind tells kinds of objects, and what is no kind, from options, which are of a kind in each group and version.
func isOneKind(definition map[string]any) bool {
	kinds, _ := definition[gvkExtension].([]any)
	return len(kinds) <= 1
}

// isObject reports whether a definition is of a kind with ObjectMeta.
func isObject(definition map[string]any) bool {
	kinds, _ := definition[gvkExtension].([]any)
	properties, _ := definition["properties"].(map[string]any)
	return len(kinds) == 1 && refersTo(properties["metadata"], objectMetaRef)
}

func refersTo(schema any, ref string) bool {
	found := false
	eachRef(schema, func(name string) { found = found || refPrefix+name == ref })
	return found
}

func keep(kept map[string]any, all map[string]map[string]any, name string) {
	if _, ok := kept[name]; ok {
		return
	}
	kept[name] = all[name]
	eachRef(all[name], func(name string) { keep(kept, all, name) })
}

func eachRef(value any, visit func(name string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			if ref, ok := below.(string); ok && key == "$ref" {
				visit(strings.TrimPrefix(ref, refPrefix))
			} else {
				eachRef(below, visit)
			}
		}
	case []any:
		for _, below := range v {
			eachRef(below, visit)
		}
	}
}

func collectListKeys(keys map[string]bool, value any) {
	switch v := value.(type) {
	case map[string]any:
		names, _ := v["x-kubernetes-list-map-keys"].([]any)
		if key, ok := v["x-kubernetes-patch-merge-key"]; ok {
			names = append(slices.Clone(names), key)
		}
		for _, name := range names {
			if name, ok := name.(string); ok {
				keys[name] = true
			}
		}
		for _, below := range v {
			collectListKeys(keys, below)
		}
	case []any:
		for _, below := range v {
			collectListKeys(keys, below)
		}
	}
}

// reduce returns a schema without what neither a merge nor a type check reads.
func reduce(value any, listKeys map[string]bool) any {
	schema, ok := value.(map[string]any)
	if !ok {
		return value
	}
	out := map[string]any{}
	for keyword, v := range schema {
		switch keyword {
		case "type", "format", "$ref", "required", "nullable", "enum":
			out[keyword] = v
		case "items", "additionalProperties", "not":
			out[keyword] = reduce(v, listKeys)
		case "allOf", "oneOf", "anyOf":
			list := slices.Clone(v.([]any))
			for i := range list {
				list[i] = reduce(list[i], listKeys)
			}
			out[keyword] = list
		case "properties":
			out[keyword] = reduceProperties(v.(map[string]any), listKeys)
		case "x-kubernetes-unions", "x-kubernetes-validations":
		case gvkExtension:
			if isOneKind(schema) {
				out[keyword] = v
			}
		default:
			if strings.HasPrefix(keyword, "x-kubernetes-") {
				out[keyword] = v
			}
		}
	}
	return out
}

func reduceProperties(properties map[string]any, listKeys map[string]bool) map[string]any {
	out := maps.Clone(properties)
	for name, property := range properties {
		reduced := reduce(property, listKeys).(map[string]any)
		if value, ok := property.(map[string]any)["default"]; ok && listKeys[name] {
			reduced["default"] = value
		}
		out[name] = reduced
	}
	return out
}
