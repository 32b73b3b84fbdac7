package expression

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// ErrAbsent is what the conversion of optional.none() returns: the caller
// drops the key or the list element.
var ErrAbsent = errors.New("the optional value is absent")

// MaxValues is how many values a list or a map has that an expression makes, and
// how many Native makes. A map or list may hold another one many times, and that
// one a third: the tree is then much larger than what CEL holds, without any loop
// in the expression.
const MaxValues = 1_000_000

// ErrTooLarge is what an evaluation, or the conversion of its result, returns
// where there would be more.
var ErrTooLarge = fmt.Errorf("the expression makes a list or map with more than %d values", MaxValues)

// Bool returns the value as a bool.
func (v Value) Bool() (bool, error) {
	b, ok := v.val.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the value is %s, not bool", typeName(v.val))
	}
	return bool(b), nil
}

// Text returns the value as it is put into a string: strings, numbers and
// bools, timestamps and durations as CEL's string() writes them. Anything else
// is an error.
func (v Value) Text() (string, error) {
	val, err := unwrap(v.val)
	if err != nil {
		return "", err
	}
	switch val := val.(type) {
	case types.String:
		return string(val), nil
	case types.Int, types.Uint, types.Double, types.Bool, types.Timestamp, types.Duration:
		s, ok := val.ConvertToType(types.StringType).(types.String)
		if !ok {
			return "", fmt.Errorf("a %s cannot be written as a string", typeName(val))
		}
		return string(s), nil
	}
	return "", fmt.Errorf("a %s cannot be put into a string: only strings, numbers, bools, timestamps and durations can", typeName(val))
}

// Native returns the value as JSON-shaped Go: map[string]any, []any, string,
// bool, int64, float64 or nil. Whole doubles become int64; timestamps,
// durations and bytes (base64) become strings. Parts that were taken from the
// object are shared with it: the result is read-only. An absent optional value
// drops its key or element; at the top it is ErrAbsent. Objects and operations
// of patches become maps of the fields that were set.
func (v Value) Native() (any, error) {
	c := converter{left: MaxValues}
	out, err := c.native(v.val)
	if errors.Is(err, ErrTooLarge) {
		return nil, ErrTooLarge // and nobody walks it again
	}
	// What the types of a patch forbid is told first: it says more.
	if err := checkPatch(v.val); err != nil {
		return nil, err
	}
	return out, err
}

// converter converts one result.
type converter struct{ left int } // how many values it may still make

func (c *converter) native(v ref.Val) (any, error) {
	if c.left--; c.left < 0 {
		return nil, ErrTooLarge
	}
	v, err := unwrap(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("%d is larger than the largest integer that Kubernetes keeps", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		return number(float64(v))
	case types.Bool:
		return bool(v), nil
	case types.Null:
		return nil, nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp, types.Duration:
		return Value{v}.Text()
	case *patchValue:
		return c.nativeFields(v)
	case traits.Mapper:
		return c.nativeMap(v)
	case traits.Lister:
		return c.nativeList(v)
	}
	return nil, fmt.Errorf("a %s cannot be put into a patch: use string() or another conversion", typeName(v))
}

func (c *converter) nativeMap(m traits.Mapper) (any, error) {
	if raw, ok := m.Value().(map[string]any); ok {
		return raw, nil // a part of the object
	}
	n := int(m.Size().(types.Int))
	if n > c.left {
		return nil, ErrTooLarge
	}
	out := make(map[string]any, n)
	for it := m.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		key, ok := k.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map key is a %s, not a string", typeName(k))
		}
		val, err := c.native(m.Get(k))
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", string(key), err)
		}
		out[string(key)] = val
	}
	return out, nil
}

func (c *converter) nativeList(l traits.Lister) (any, error) {
	// Unlike maps, a []any is not only a part of the object: [a] + [b] is one
	// too, and holds CEL's own values. Elements that are parts are shared.
	n := int(l.Size().(types.Int))
	if n > c.left {
		return nil, ErrTooLarge
	}
	out := make([]any, 0, n)
	for i := range n {
		val, err := c.native(l.Get(types.Int(i)))
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out = append(out, val)
	}
	return out, nil
}

// number keeps whole doubles as integers, since that is what Kubernetes'
// decoder makes of 3.0 and what an integer field accepts.
func number(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is not a number that JSON can hold", f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}

func unwrap(v ref.Val) (ref.Val, error) {
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return nil, ErrAbsent
		}
		return unwrap(v.GetValue())
	case *types.Err:
		return nil, v.Unwrap()
	}
	return v, nil
}

func typeName(v ref.Val) string {
	if v == nil {
		return "nothing"
	}
	return v.Type().TypeName()
}
