package expression

import "github.com/google/cel-go/cel"

var (
	// Timestamp is the type of `now`.
	Timestamp = Type{cel.TimestampType}
	// ListOfDyn is the type of what is looked up.
	ListOfDyn = Type{cel.ListType(cel.DynType)}
)
