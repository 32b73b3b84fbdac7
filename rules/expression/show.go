package expression

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Opaque is how a value is shown that has no JSON shape: an absent optional, a
// type, a quantity.
type Opaque string

// Show returns the value for people, JSON-shaped as Native does where that is
// possible; what is not becomes an Opaque, also within lists and maps. It is
// read-only.
func (v Value) Show() any {
	if v.val == nil {
		return Opaque("nothing")
	}
	if native, err := v.Native(); err == nil {
		return native
	}
	switch val := v.val.(type) {
	case *types.Optional:
		if !val.HasValue() {
			return Opaque("optional.none()")
		}
		return Value{val.GetValue()}.Show()
	case traits.Mapper:
		out := map[string]any{}
		for it := val.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			out[fmt.Sprint(key.Value())] = Value{val.Get(key)}.Show()
		}
		return out
	case traits.Lister:
		out := []any{}
		for it := val.Iterator(); it.HasNext() == types.True; {
			out = append(out, Value{it.Next()}.Show())
		}
		return out
	case ref.Type:
		return Opaque(val.TypeName())
	}
	return Opaque(fmt.Sprint(v.val.Value()))
}
