package engine

import (
	"slices"

	"github.com/rectifier-dev/rectifier/rules"
)

// maxLoggedFields bounds what the log says of the fields of one fix, in bytes:
// keys of maps may be long.
const maxLoggedFields = 300

// fieldsOf names what rules change, for the log: the places, never the values.
// Where keys may come from a Secret, they are those of the rules' text.
func (d *decision) fieldsOf(verdicts []rules.Verdict) string {
	s := d.shield()
	var all []string
	for _, v := range verdicts {
		all = append(all, s.Fields(v)...)
	}
	slices.Sort(all)
	return truncate(list(slices.Compact(all)), maxLoggedFields)
}
