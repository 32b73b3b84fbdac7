package rules

import (
	"cmp"
	"math"
	"strings"
)

// relation is how a value stands to another one: to a bound, or a text to a part of it.
type relation int

const (
	less relation = iota + 1
	lessOrEqual
	greater
	greaterOrEqual
	begins // the first one of texts
	ends
	holds
)

// relations are by the operator or function of CEL.
var relations = map[string]relation{
	"<": less, "<=": lessOrEqual, ">": greater, ">=": greaterOrEqual,
	"startsWith": begins, "endsWith": ends, "contains": holds,
}

// mirrored is how b stands to a, where a stands so to b.
func (r relation) mirrored() relation {
	return [...]relation{less: greater, lessOrEqual: greaterOrEqual, greater: less, greaterOrEqual: lessOrEqual}[r]
}

// opposite holds of two values that can be ordered where the relation does not.
func (r relation) opposite() relation {
	return [...]relation{less: greaterOrEqual, lessOrEqual: greater, greater: lessOrEqual, greaterOrEqual: less}[r]
}

// textRelations say whether a text stands so to a part.
var textRelations = map[relation]func(text, part string) bool{
	begins: strings.HasPrefix, ends: strings.HasSuffix, holds: strings.Contains,
}

// excludes reports whether the relation does not hold of a value and a bound, given
// how they compare: less than 0 is below the bound.
func (r relation) excludes(order int) bool {
	switch r {
	case less:
		return order >= 0
	case lessOrEqual:
		return order > 0
	case greater:
		return order <= 0
	case greaterOrEqual:
		return order < 0
	}
	return false
}

// order compares two constants as CEL does. It reports false where that is an error,
// or where doubles do not tell whole numbers apart.
func order(a, b any) (int, bool) {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), true
		}
	}
	x, isNumber := double(a)
	y, areNumbers := double(b)
	return cmp.Compare(x, y), isNumber && areNumbers
}

// double is a number as a double, if that is exact.
func double(v any) (float64, bool) {
	var out float64
	switch v := v.(type) {
	case int64:
		out = float64(v)
	case float64:
		out = v
	default:
		return 0, false
	}
	return out, math.Abs(out) < exactInts
}
