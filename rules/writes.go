package rules

import (
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/fieldset"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// PatchKind says which kind of patch something is.
type PatchKind string

const (
	KindMerge              PatchKind = "merge"
	KindJSON               PatchKind = "json"
	KindApplyConfiguration PatchKind = "applyConfiguration"
)

// Write is one place that a patch of a rule can change, known without
// evaluating it. All Writes of a rule together are complete: whatever the
// object, what differs after the rule's patches is at or below the Path of one
// of them. Two things beside that can happen on the way to a Path: a map that is
// not there is made, and what is there but is no map is replaced by one.
type Write struct {
	Patch       int    // counts the rule's patches from 0
	Subresource string // "", status or scale
	Kind        PatchKind
	// Path are keys of maps, from the top of the object. It ends where a list
	// begins, and where it is not known any further; empty, anything may change.
	// For scale it is a path of the Scale: spec.replicas, which objects keep in a
	// place of their own (Input.ReplicasPath).
	Path []string
	// Within leads on from a list at Path, as far as that can be told: keys, and *
	// for any element. Nil: elements may come and go. Where elements are merged by
	// their keys, one that is not there yet is added nevertheless.
	Within []string
	// Exact says that what is at Path becomes one value, or is removed. Otherwise
	// the place may be anywhere at or below Path.
	Exact bool
	// Constant says, of an exact one, that the value is Value on every object.
	Constant bool
	Value    any // JSON-shaped and read-only
	Removes  bool
	// Pos is where that stands in the file: a key, a pointer, or CEL.
	Pos yamldoc.Position

	op      string // of a JSON patch; empty where it is computed
	ensures bool   // {}: what is there stays if it is a map, and else becomes one
}

// Fields are the fields that can change.
func (w *Write) Fields() *fieldset.Set { return fieldset.Of(w.Path...) }

// Field is the path as people write it; "the whole object" if it is empty.
func (w *Write) Field() string {
	path := slices.Concat(w.Path, w.Within)
	return FieldName(path, func(i int) bool { return i >= len(w.Path) && path[i] == fieldset.Elem })
}

// FieldName spells a path as people write it: spec.containers[0].image. isIndex
// tells which of its keys are indices of lists; nil: none.
func FieldName(path []string, isIndex func(i int) bool) string {
	if len(path) == 0 {
		return "the whole object"
	}
	var b strings.Builder
	for i, key := range path {
		switch {
		case isIndex != nil && isIndex(i):
			b.WriteString("[" + key + "]")
		case strings.ContainsAny(key, "./ '\""):
			b.WriteString("['" + key + "']")
		case i > 0:
			b.WriteString("." + key)
		default:
			b.WriteString(key)
		}
	}
	return b.String()
}

// Overlaps reports whether a change of one can be a change of the other: one
// path leads to the other. They must be about one subresource or the object.
func (w *Write) Overlaps(other *Write) bool {
	n := min(len(w.Path), len(other.Path))
	return slices.Equal(w.Path[:n], other.Path[:n])
}

// Touches reports whether a change at or below Path can be seen by one who reads
// these fields. That a map on the way there comes to be is not counted: see
// Makes.
func (w *Write) Touches(reads *fieldset.Set) bool {
	for _, key := range w.Path {
		if reads.HasKeys() {
			return true
		}
		if reads = reads.Field(key); reads == nil {
			return false
		}
	}
	return reads != nil
}

// Feeds is Touches where what is known of elements of lists is believed.
func (w *Write) Feeds(reads *fieldset.Set) bool {
	if w.Within == nil || !w.Touches(reads) {
		return w.Touches(reads)
	}
	for _, key := range w.Path {
		reads = reads.Field(key)
	}
	for _, key := range w.Within {
		switch {
		case reads.IsWhole():
			return true
		case key == fieldset.Elem:
			reads = reads.Items()
		case reads.HasKeys():
			return true
		default:
			reads = reads.Field(key)
		}
		if reads == nil {
			return false
		}
	}
	return true
}

// Makes reports whether the patch can bring maps into being, on the way to
// Path, that one who reads these fields would notice. metadata is always there.
func (w *Write) Makes(reads *fieldset.Set) bool {
	if w.Kind == KindJSON || len(w.Path) < 2 {
		return false
	}
	first := reads.Field(w.Path[0])
	if w.Path[0] == "metadata" && first != nil && len(w.Path) > 2 {
		first = first.Field(w.Path[1])
	} else if w.Path[0] == "metadata" {
		return false
	}
	return first != nil
}

// Patches returns how many patches the rule has.
func (r *Rule) Patches() int { return len(r.patches) }

// Writes returns all places that the rule's patches can change, in the order of
// the file. The caller must not modify it.
func (r *Rule) Writes() []*Write { return r.writes }

// ConditionReads returns which fields of the object decide whether the rule
// patches it: those of the match block, the condition, and its opt-outs.
func (r *Rule) ConditionReads() *fieldset.Set { return r.conditionReads }

// PatchReads returns which fields of the object the values of a patch are
// computed from, or copied from by its operations, and whether they depend on the time. A lookup counts with what
// it is looked up by, not with what is found.
func (r *Rule) PatchReads(i int) (reads *fieldset.Set, now bool) {
	return r.patchReads[i].fields, r.patchReads[i].now
}

// reading is what values are computed from.
type reading struct {
	fields *fieldset.Set // of the object
	tested *fieldset.Set // what operations compare: it decides whether values are written
	now    bool
}

// findReads is called when the rule has compiled; taken and tested are the fields
// that the operations of each patch copy and test.
func (r *Rule) findReads(taken, tested []*fieldset.Set) {
	r.conditionReads = r.deciding()
	for i, p := range r.patches {
		var programs []*expression.Program
		for _, t := range []template{p.merge, p.json, p.apply} {
			programs = append(programs, programsOf(t)...)
		}
		reads := r.reads(programs...)
		reads.fields, reads.tested = reads.fields.Union(taken[i]), tested[i]
		r.patchReads = append(r.patchReads, reads)
	}
}

func (r *Rule) deciding() *fieldset.Set {
	reads := fieldset.Presence("metadata", "deletionTimestamp")
	if r.match.labels != nil {
		reads = reads.Union(labelFields(r.match.labels))
	}
	for _, f := range r.match.fields {
		reads = reads.Union(fieldset.Of(f.path...))
	}
	if r.OptOut {
		reads = reads.Union(optOutFields)
	}
	if r.condition == nil {
		return reads
	}
	return reads.Union(r.reads(r.condition).fields)
}

// reads analyses some of the rule's programs, with the variables and lookups
// that they need.
func (r *Rule) reads(programs ...*expression.Program) reading {
	a := expression.NewAnalysis()
	for _, v := range r.variables {
		a.Bind(variablePrefix+v.name, v.program)
	}
	seen := map[string]bool{}
	var need func(ps []*expression.Program)
	need = func(ps []*expression.Program) {
		for _, p := range ps {
			for _, name := range p.Reads() {
				if seen[name] {
					continue
				}
				seen[name] = true
				for _, v := range r.variables {
					if variablePrefix+v.name == name {
						need([]*expression.Program{v.program})
					}
				}
				for _, l := range r.Lookups {
					if lookupPrefix+l.Name == name {
						by := l.programs()
						need(by)
						for _, p := range by {
							a.Read(p)
						}
					}
				}
			}
		}
	}
	need(programs)
	for _, p := range programs {
		a.Read(p)
	}
	return reading{fields: a.Paths(objectName), now: seen[nowName]}
}

// programs are those that compute what is looked up.
func (l *Lookup) programs() []*expression.Program {
	out := slices.Concat(programsOf(l.namespace), programsOf(l.selector))
	for _, t := range l.where {
		out = append(out, programsOf(t)...)
	}
	return out
}

// programsOf are the programs in a template, keys included.
func programsOf(t template) []*expression.Program {
	var out []*expression.Program
	switch t := t.(type) {
	case whole:
		out = append(out, t.program)
	case mixed:
		for _, p := range t {
			if p.program != nil {
				out = append(out, p.program)
			}
		}
	case mapping:
		for _, e := range t {
			out = slices.Concat(out, programsOf(e.key), programsOf(e.value))
		}
	case sequence:
		for _, item := range t {
			out = append(out, programsOf(item)...)
		}
	}
	return out
}
