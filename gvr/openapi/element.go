package openapi

import (
	"errors"
	"strconv"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

// elementKey returns the identity of an element of an associative list: of equal keys are equal elements, and no others. In a
// list of type map it is made of the values of the key fields, or their defaults; in a set, of the element itself.
func elementKey(s *smd.Schema, t *smd.List, item any) (string, error) {
	if len(t.Keys) == 0 {
		return setKey(item)
	}
	m, ok := item.(map[string]any)
	if !ok {
		return "", errors.New("it is not a map")
	}
	if len(t.Keys) == 1 {
		v, ok := m[t.Keys[0]]
		if !ok {
			v = keyDefault(s, t, t.Keys[0])
		}
		if key, ok := plainKey(v); ok {
			return key, nil
		}
	}
	key, found := append(make([]byte, 0, 64), encodedKey), false
	for _, name := range t.Keys {
		v, ok := m[name]
		if !ok {
			v = keyDefault(s, t, name)
			ok = v != nil
		}
		if ok {
			found = true
			if key, ok = appendScalar(key, v); !ok {
				return "", errors.New("its key " + name + " is not a scalar")
			}
		}
		// An absent key is an identity of its own: claims with and without a shareID are different ones.
		key = append(key, ';')
	}
	if !found {
		return "", errors.New("it has none of the keys " + strings.Join(t.Keys, ", "))
	}
	return string(key), nil
}

func setKey(item any) (string, error) {
	if key, ok := plainKey(item); ok {
		return key, nil
	}
	key, ok := appendScalar([]byte{encodedKey}, item)
	if !ok || item == nil {
		return "", errors.New("it is in a set and not a scalar")
	}
	return string(key), nil
}

// encodedKey begins all keys but plain ones.
const encodedKey = 0

// plainKey returns a string as the key that it is: nearly all elements have one string for a key, and it costs nothing.
func plainKey(v any) (string, bool) {
	s, ok := v.(string)
	return s, ok && (s == "" || s[0] != encodedKey)
}

func keyDefault(s *smd.Schema, t *smd.List, name string) any {
	atom, ok := s.Resolve(t.ElementType)
	if !ok || atom.Map == nil {
		return nil
	}
	field, _ := atom.Map.FindField(name)
	return field.Default
}

// appendScalar writes a scalar so that no two different ones, however they are strung together, give the same bytes. A whole
// number is the same as int64 and as float64.
func appendScalar(b []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case nil:
		return append(b, 'n'), true
	case string:
		b = strconv.AppendInt(append(b, 's'), int64(len(v)), 10)
		return append(append(b, ':'), v...), true
	case bool:
		return strconv.AppendBool(b, v), true
	case int64:
		return strconv.AppendInt(append(b, 'i'), v, 10), true
	case float64:
		if i, ok := jsonvalue.WholeNumber(v); ok {
			return strconv.AppendInt(append(b, 'i'), i, 10), true
		}
		return strconv.AppendFloat(append(b, 'f'), v, 'g', -1, 64), true
	}
	return b, false
}
