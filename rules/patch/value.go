package patch

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

// maxDepth is how deeply values may nest, far beyond any object. It ends the walk
// through a map that somebody put into itself.
const maxDepth = 1000

// ValueError says that a value cannot be written as JSON, and where it is: Path
// leads to it from the value that was given, and is empty for that value itself.
type ValueError struct {
	Path Pointer
	Msg  string

	err error // ErrTooLarge or nil
}

// Unwrap makes errors.Is(err, ErrTooLarge) work.
func (e *ValueError) Unwrap() error { return e.err }

func (e *ValueError) Error() string {
	if len(e.Path) == 0 {
		return e.Msg
	}
	return e.Path.String() + ": " + e.Msg
}

// under puts one more step in front of the path, while an error travels up.
func (e *ValueError) under(token string) *ValueError {
	e.Path = append(Pointer{token}, e.Path...)
	return e
}

// Normalize returns v with every whole float64 in the range of int64 as an int64,
// so that 3.0 is never written where Kubernetes wants an integer. It returns v
// itself if there is nothing to change, and otherwise a copy of the parts that
// change; v is not modified. NaN, infinities, strings that are not UTF-8, and Go
// types outside of the JSON shape (int, map[string]string, …) are a *ValueError.
func Normalize(v any) (any, error) {
	out, err := normalize(v, 0)
	if err != nil { // a typed nil must not become a non-nil error
		return nil, err
	}
	return out, nil
}

func normalize(v any, depth int) (any, *ValueError) {
	if depth > maxDepth {
		return nil, tooDeep()
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, &ValueError{Msg: "a string that is not valid UTF-8"}
		}
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, notFinite()
		}
		if whole, ok := jsonvalue.WholeNumber(v); ok {
			return whole, nil
		}
		return v, nil
	case map[string]any:
		return normalizeMap(v, depth)
	case []any:
		return normalizeList(v, depth)
	}
	return nil, foreignType(v)
}

func normalizeMap(m map[string]any, depth int) (any, *ValueError) {
	if m == nil {
		return map[string]any{}, nil
	}
	out, copied := m, false
	for key, old := range m {
		if !utf8.ValidString(key) {
			return nil, &ValueError{Msg: "a key that is not valid UTF-8"}
		}
		v, err := normalize(old, depth+1)
		if err != nil {
			return nil, err.under(key)
		}
		if same(old, v) {
			continue
		}
		if !copied {
			out, copied = maps.Clone(m), true
		}
		out[key] = v
	}
	return out, nil
}

func normalizeList(l []any, depth int) (any, *ValueError) {
	if l == nil {
		return []any{}, nil
	}
	out, copied := l, false
	for i, old := range l {
		v, err := normalize(old, depth+1)
		if err != nil {
			return nil, err.under(fmt.Sprint(i))
		}
		if same(old, v) {
			continue
		}
		if !copied {
			out, copied = slices.Clone(l), true
		}
		out[i] = v
	}
	return out, nil
}

// same reports whether now is what old was: the very same value, not an equal one
// of another type.
func same(old, now any) bool {
	if _, ok := old.(float64); ok {
		_, kept := now.(float64)
		return kept
	}
	return identical(old, now)
}

func tooDeep() *ValueError {
	return &ValueError{Msg: fmt.Sprintf("nested more than %d levels deep", maxDepth)}
}

func notFinite() *ValueError {
	return &ValueError{Msg: "NaN and infinities cannot be written as JSON"}
}

func foreignType(v any) *ValueError {
	return &ValueError{Msg: fmt.Sprintf("a Go %T is not a JSON value", v)}
}

// typeName names the JSON type of a value, for messages.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a bool"
	case int64, float64:
		return "a number"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprintf("a Go %T", v)
}
