package lint

import (
	"fmt"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// mergeList finds merge patches that write a list of objects out: the list is
// replaced, with all elements and fields that are not in the patch. A list that
// is computed may well be made of the one that is there.
var mergeList = &Check{
	ID: "merge-list", Severity: Warning, Summary: "A merge patch replaces a list of objects whole",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			p.eachTarget(one, func(t *target) {
				if t.kind != "merge" || t.shape == nil || t.value == nil {
					return
				}
				for _, v := range t.value.alternatives() {
					if v.kind == list && !v.repeated && holdsMapping(v) {
						report(t.at, fmt.Sprintf("a merge patch replaces %s whole: elements and fields that are not written here are lost; use %s", t.name(), keeps(t.shape)))
					}
				}
			})
		})
	},
}

func holdsMapping(v *value) bool {
	for _, item := range v.items {
		if item.kind == mapping {
			return true
		}
	}
	return false
}

// keeps says how one element of a list is changed without the others.
func keeps(s *shape) string {
	if keys, keyed := s.listKeys(); keyed && s.kind == expression.ListShape && len(keys) > 0 {
		return "applyConfiguration, which merges the elements by " + strings.Join(keys, " and ")
	}
	return "json, with a test of the element that is meant"
}
