package openapi

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

func decodeJSON(data []byte) (map[string]any, error) {
	var out map[string]any
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out)
	return out, err
}

func containsValue(err error, value string) bool { return strings.Contains(err.Error(), value) }

func newBuiltinType(gvk schema.GroupVersionKind) (*Type, error) {
	doc, err := builtinDocument()
	if err != nil {
		return nil, err
	}
	return doc.build(gvk)
}
