package lint

import (
	"fmt"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// atomicList finds what applyConfiguration refuses: lists and maps that can
// only be replaced whole, and elements without the keys by which they are
// merged. It decides as gvr/openapi does when the rule runs.
var atomicList = &Check{
	ID: "atomic-list", Severity: Error, Summary: "applyConfiguration writes into a list or map that has no keys",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			p.eachTarget(one, func(t *target) {
				if t.kind != "applyConfiguration" || t.shape == nil || t.value == nil {
					return
				}
				for _, v := range t.value.alternatives() {
					if msg := refusedByApply(t, v); msg != "" {
						report(t.at, msg)
					}
				}
			})
		})
	},
}

func refusedByApply(t *target, v *value) string {
	if v.kind == literal || v.kind == mixedText || v.kind == computed && strings.HasPrefix(v.typ.Spell(), "optional") {
		return "" // null leaves it alone, as what is absent does; scalars are for patch-field
	}
	switch t.shape.kind {
	case expression.ListShape:
		if _, keyed := t.shape.listKeys(); !keyed {
			return fmt.Sprintf("%s is an atomic list: applyConfiguration refuses it, because it could only be replaced whole; use merge or json", t.name())
		}
	case expression.MapShape, expression.ObjectShape:
		if t.shape.atomicMap() {
			return fmt.Sprintf("%s is atomic: applyConfiguration refuses it, because it could only be replaced whole; use merge or json", t.name())
		}
	}
	if t.parent.kind != expression.ListShape || v.kind != mapping {
		return ""
	}
	keys, _ := t.parent.listKeys()
	if len(keys) == 0 {
		return ""
	}
	for _, e := range v.entries {
		for _, key := range keys {
			if e.computed || e.key == key {
				return ""
			}
		}
	}
	for _, key := range keys {
		// The default of most keys is "": the server refuses such an element.
		if f := t.shape.field(key); f != nil && f.place.Default != nil && f.place.Default != "" {
			return ""
		}
	}
	return fmt.Sprintf("an element of %s needs its %s: applyConfiguration finds the element by it", strings.Join(t.path[:len(t.path)-1], "."), strings.Join(keys, " and "))
}
