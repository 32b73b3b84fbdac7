package fieldset

import "slices"

// Elem is the path element that stands for every element of a list and every
// value of a map.
const Elem = "*"

// Set is a set of fields. It is immutable and safe for concurrent use. The nil
// Set and Empty are sets of no field; below the top, nil means that nothing is
// known of a value, Empty that its kind is.
//
// Sets are kept in a normal form: equal sets have equal structure.
type Set struct {
	whole bool
	keys  bool // the key set of a map, the length of a list, a scalar itself
	lists bool // all of it if it is a list

	names  []string // sorted
	fields []*Set   // like names; what values ask for is contained in each
	items  *Set     // of every list element; implies keys; nil with lists
	values *Set     // of every map value that is not in names; implies keys
}

var (
	everything = &Set{whole: true}
	nothing    = &Set{}
)

// Whole returns the set of all fields.
func Whole() *Set { return everything }

// Empty returns the set of no field.
func Empty() *Set { return nothing }

// Of returns the set of all that is at or below a path. Without a path it is
// Whole.
func Of(path ...string) *Set { return mark(path, (*Builder).Whole) }

// Presence returns what tells whether there is a value at a path, and of which
// kind, but not the value.
func Presence(path ...string) *Set { return mark(path, func(*Builder) {}) }

// Keys returns what tells the keys of the map at a path, or the length of the
// list; a string, number or bool there is kept.
func Keys(path ...string) *Set { return mark(path, (*Builder).Keys) }

// WholeIfList returns the set of all at or below a path if there is a list;
// nothing but presence and kind if there is not.
func WholeIfList(path ...string) *Set { return mark(path, (*Builder).Lists) }

func mark(path []string, f func(*Builder)) *Set {
	b := NewBuilder()
	b.walk(path, f)
	return b.Set()
}

// Union returns the set of the fields that are in any of the sets. Nil sets
// are empty.
func (s *Set) Union(others ...*Set) *Set { return union(orEmpty(s), unionAll(others)) }

// unionAll takes halves, so that the names of many sets are not copied once for
// each of them.
func unionAll(sets []*Set) *Set {
	switch n := len(sets); n {
	case 0:
		return nothing
	case 1:
		return orEmpty(sets[0])
	default:
		a, b := unionAll(sets[:n/2]), unionAll(sets[n/2:])
		if covers(a, b) { // as a rule, nothing is new
			return a
		}
		return union(a, b)
	}
}

// Covers reports whether an object reduced to s is as good as the whole one
// for whoever needs t.
func (s *Set) Covers(t *Set) bool { return covers(orEmpty(s), orEmpty(t)) }

// IsWhole reports whether all is needed.
func (s *Set) IsWhole() bool { return s != nil && s.whole }

// IsEmpty reports whether no field is needed.
func (s *Set) IsEmpty() bool {
	return s == nil || !s.whole && !s.keys && !s.lists && len(s.names) == 0
}

// HasKeys reports whether all keys of a map, the length of a list and a scalar
// itself are needed. A whole set has keys.
func (s *Set) HasKeys() bool { return s != nil && (s.whole || s.keys) }

// WholeLists reports whether all is needed of a list at this place.
func (s *Set) WholeLists() bool { return s != nil && (s.whole || s.lists) }

// Names returns the fields that are needed by name, sorted, or nil for a whole
// set. If HasKeys, other fields are needed too: see Field. The caller must not
// modify it.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return s.names
}

// Field returns what is needed of the value of a map at a key; nil: nothing.
// With HasKeys the key itself is needed nevertheless.
func (s *Set) Field(name string) *Set {
	switch {
	case s == nil:
		return nil
	case s.whole:
		return s
	}
	if i, ok := slices.BinarySearch(s.names, name); ok {
		return s.fields[i]
	}
	return s.values
}

// Items returns what is needed of each element of a list; nil: nothing. With
// HasKeys the number of elements is needed nevertheless.
func (s *Set) Items() *Set {
	switch {
	case s == nil:
		return nil
	case s.whole || s.lists:
		return everything
	}
	return s.items
}

func orEmpty(s *Set) *Set {
	if s == nil {
		return nothing
	}
	return s
}

// union is that of two sets at one place; nil: nothing is known there.
func union(a, b *Set) *Set {
	switch {
	case a == nil || a == b || a == nothing && b != nil: // presence and kind are in each
		return b
	case b == nil || b == nothing:
		return a
	case a.whole || b.whole:
		return everything
	}
	out := &Set{
		keys:   a.keys || b.keys,
		lists:  a.lists || b.lists,
		items:  union(a.items, b.items),
		values: union(a.values, b.values),
	}
	out.names = make([]string, 0, len(a.names)+len(b.names))
	out.fields = make([]*Set, 0, len(a.names)+len(b.names))
	add := func(name string, field *Set) {
		out.names, out.fields = append(out.names, name), append(out.fields, field)
	}
	// A field that only one names has what the values of the other ask for.
	i, j := 0, 0
	for i < len(a.names) || j < len(b.names) {
		switch {
		case j == len(b.names) || i < len(a.names) && a.names[i] < b.names[j]:
			add(a.names[i], union(a.fields[i], b.values))
			i++
		case i == len(a.names) || b.names[j] < a.names[i]:
			add(b.names[j], union(b.fields[j], a.values))
			j++
		default:
			add(a.names[i], union(a.fields[i], b.fields[j]))
			i, j = i+1, j+1
		}
	}
	return out.normal()
}

// normal brings a set that is still private into normal form.
func (s *Set) normal() *Set {
	if s.items != nil && s.items.whole {
		s.lists = true
	}
	if s.lists {
		s.items = nil
	}
	if len(s.names) == 0 {
		s.names, s.fields = nil, nil
	}
	if s.values == nil {
		return s
	}
	if s.values.whole && s.lists {
		return everything
	}
	var names []string
	var fields []*Set
	for i, f := range s.fields {
		if !covers(s.values, f) {
			names = append(names, s.names[i])
			fields = append(fields, f)
		}
	}
	s.names, s.fields = names, fields
	return s
}

func covers(s, t *Set) bool {
	switch {
	case t == nil || s == t:
		return true
	case s == nil:
		return false
	case s.whole:
		return true
	case t.whole, t.keys && !s.keys, t.lists && !s.lists:
		return false
	case !s.lists && !covers(s.items, t.items), !covers(s.values, t.values):
		return false
	}
	for i, name := range t.names {
		if !covers(s.Field(name), t.fields[i]) {
			return false
		}
	}
	return true // where t asks by its values, the fields of s have what its values have
}
