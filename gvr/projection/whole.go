package projection

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of reduces a whole object. It shares nothing with it that can be modified.
func Of(u *unstructured.Unstructured, fields Fields) (*Object, error) {
	// Projecting copies what it reduces, but nothing below, and of a whole object nothing.
	reduced := maps.Clone(fields.Set.Union(kept).Project(u.Object))
	var id identity
	apiVersion := takeString(reduced, "apiVersion")
	kind := takeString(reduced, "kind")
	if metadata, ok := reduced["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		reduced["metadata"] = metadata
		id.name = []byte(takeString(metadata, "name"))
		id.namespace = []byte(takeString(metadata, "namespace"))
		id.uid = []byte(takeString(metadata, "uid"))
		id.resourceVersion = []byte(takeString(metadata, "resourceVersion"))
		if !fields.ManagedFields {
			delete(metadata, "managedFields")
		}
		if len(id.name) > 0 && len(metadata) == 0 {
			delete(reduced, "metadata")
		}
	}
	text, err := appendValue(nil, reduced, 0)
	if err != nil {
		return nil, fmt.Errorf("reduce an object: %w", err)
	}
	return makeObject(typeOf(apiVersion, kind), id, text), nil
}

// takeString removes a string from a map. What is not a string, or empty, stays.
func takeString(m map[string]any, key string) string {
	s, _ := m[key].(string)
	if s != "" {
		delete(m, key)
	}
	return s
}

var (
	errNotFinite = errors.New("a number is not finite")
	errDepth     = errors.New("it is nested too deeply")
)

// appendValue appends a value as JSON from which the same value is parsed, with the
// keys in order.
func appendValue(out []byte, value any, depth int) ([]byte, error) {
	if depth > parseDepth {
		return nil, errDepth
	}
	switch v := value.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case float64:
		return appendFloat(out, v)
	case string:
		return appendString(out, v), nil
	case map[string]any:
		return appendMap(out, v, depth)
	case []any:
		return appendList(out, v, depth)
	}
	// No decoder makes anything else; it is what tests put into objects.
	b, err := json.Marshal(value)
	return append(out, b...), err
}

// appendFloat appends a number that does not look like an integer.
func appendFloat(out []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errNotFinite
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(out, f, 'e', -1, 64), nil
	}
	start := len(out)
	out = strconv.AppendFloat(out, f, 'f', -1, 64)
	if !slices.Contains(out[start:], '.') {
		out = append(out, ".0"...)
	}
	return out, nil
}

func appendString(out []byte, s string) []byte { return appendText(out, []byte(s)) }

func appendMap(out []byte, m map[string]any, depth int) (_ []byte, err error) {
	out = append(out, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, k), ':')
		if out, err = appendValue(out, m[k], depth+1); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendList(out []byte, list []any, depth int) (_ []byte, err error) {
	out = append(out, '[')
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendValue(out, v, depth+1); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}
