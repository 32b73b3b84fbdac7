package patch

import "github.com/rectifier-dev/rectifier/internal/jsonvalue"

// Equal reports whether two values are the same JSON value. An int64 and a
// float64 are equal if they are the same number exactly (not after rounding).
// NaN equals nothing, nor does a value outside of the JSON shape.
//
// Parts that two values share, as results of this package do with their inputs,
// are recognised without being walked.
func Equal(a, b any) bool { return jsonvalue.Equal(a, b) }
