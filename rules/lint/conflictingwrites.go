package lint

import (
	"fmt"
	"slices"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

var conflictingWrites = &Check{
	ID: "conflicting-writes", Severity: Error, Summary: "Two rules undo each other's work",
	Run: runConflictingWrites,
}

// runConflictingWrites tells of the first rule that this one fights with, and
// how many others there are: a finding for each pair would bury all else.
func runConflictingWrites(p *Pass) {
	var at yamldoc.Position
	var told string // of the first
	others := 0
	note := func(pos yamldoc.Position, format string, args ...any) {
		if told != "" {
			others++
			return
		}
		at, told = pos, fmt.Sprintf(format, args...)
	}
	for _, other := range p.rivals() {
		if mine, theirs := p.meet(other); mine != nil {
			if p.fights(other) {
				note(mine.Pos, "%s undoes this: it writes %s too, so both would be stopped; let one of them give way, by its match block or its condition", position(other, theirs), theirs.Field())
			}
		} else if mine, theirs := cycle(p.Rule, other.Rule); mine != nil && p.fights(other) {
			note(mine.Pos, "%s does not come to an end with this one: it reads %s and writes %s, which this rule reads, so both would be stopped", position(other, theirs), mine.Field(), theirs.Field())
		}
	}
	switch {
	case others > 0:
		p.Reportf(at, "%s (%s with this one)", told, countMore(others, "fights", "fight"))
	case told != "":
		p.Reportf(at, "%s", told)
	}
}

// countMore is how many more rules do something.
func countMore(n int, one, several string) string {
	if n == 1 {
		return "1 more rule " + one
	}
	return fmt.Sprintf("%d more rules %s", n, several)
}

var overlappingWrites = &Check{
	ID: "overlapping-writes", Severity: Warning, Summary: "Two rules write one field",
	Run: runOverlappingWrites,
}

// runOverlappingWrites tells of the first rule that writes the field, and how
// many others do: a finding for each pair would bury all else.
func runOverlappingWrites(p *Pass) {
	first, firstTheirs, owner, others := p.firstPair(p.meet)
	if first == nil {
		return
	}
	more := ""
	if others > 0 {
		more = fmt.Sprintf(" (%s with this one)", countMore(others, "overlaps", "overlap"))
	}
	p.Reportf(first.Pos, "%s writes %s too%s: on an object that both change, it depends on the conditions which value it gets", position(owner, firstTheirs), firstTheirs.Field(), more)
}

// meet returns where this rule and another one write the same field, and not
// for certain the same value.
func (p *Pass) meet(other *rules.Definition) (mine, theirs *rules.Write) {
	for _, w := range p.Rule.Writes() {
		for _, v := range other.Rule.Writes() {
			if w.Exact && v.Exact && p.sameField(w, v) && disagree(w, v) {
				return w, v
			}
		}
	}
	return nil, nil
}

// sameField reports whether one of two writes is at or below the other.
func (p *Pass) sameField(w, v *rules.Write) bool {
	if (w.Subresource == "scale") != (v.Subresource == "scale") {
		a, b := p.stored(w), p.stored(v)
		return slices.Equal(a, b)
	}
	return w.Overlaps(v)
}

// stored is the path in the object that a write changes.
func (p *Pass) stored(w *rules.Write) []string {
	if w.Subresource != "scale" {
		return w.Path
	}
	if at := p.trial(p.Rule.Resources[0]).ReplicasPath; at != nil {
		return at
	}
	return []string{"spec", "replicas"}
}

// disagree reports whether two writes that overlap may leave different values.
func disagree(w, v *rules.Write) bool {
	switch {
	case !w.Constant || !v.Constant:
		return true
	case w.Removes || v.Removes:
		return !(w.Removes && v.Removes)
	case len(w.Path) == len(v.Path):
		return !patch.Equal(w.Value, v.Value)
	case len(w.Path) > len(v.Path):
		return disagree(v, w)
	}
	value := w.Value
	for _, key := range v.Path[len(w.Path):] {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return !patch.Equal(value, v.Value)
}
