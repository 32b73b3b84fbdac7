package openapi

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BuiltinKinds are the kinds that Builtin knows, in all their versions, sorted by group, kind and version. The caller must not
// modify the slice.
func BuiltinKinds() []schema.GroupVersionKind { return listedKinds() }

var listedKinds = sync.OnceValue(func() []schema.GroupVersionKind {
	doc, err := builtinDocument()
	if err != nil {
		return nil // whoever asks for a Type is told
	}
	var out []schema.GroupVersionKind
	for _, raw := range doc.definitions {
		var definition struct {
			GVKs []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		if !strings.Contains(string(raw), gvkExtension) || json.Unmarshal(raw, &definition) != nil || len(definition.GVKs) != 1 {
			continue
		}
		out = append(out, definition.GVKs[0])
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
})
