package openapi

import "github.com/rectifier-dev/rectifier/rules/patch"

// Change is an operation as tables write it.
type Change struct {
	Op    string
	Path  []string
	Value any
}

// Changes says what a merge has changed, as what is sent says it.
func Changes(before, after map[string]any) []Change {
	var out []Change
	for _, op := range patch.Diff(before, after) {
		out = append(out, Change{op.Op, op.Path, op.Value})
	}
	return out
}
