package fieldset

import (
	"maps"
	"slices"
)

// Builder is one place of a set that is being built: what it is told to need
// only grows. Builders below one another are shared, so that whoever holds the
// one of a value marks it wherever it is read. A Builder is not safe for
// concurrent use.
type Builder struct {
	whole, keys, lists bool
	fields             map[string]*Builder
	items, values      *Builder
}

// NewBuilder returns a Builder of the empty set.
func NewBuilder() *Builder { return &Builder{} }

// Whole marks all at or below the place as needed.
func (b *Builder) Whole() { b.whole = true }

// Keys marks the keys of a map, the length of a list, or a scalar itself as
// needed.
func (b *Builder) Keys() { b.keys = true }

// Lists marks all at or below the place as needed if it is a list.
func (b *Builder) Lists() { b.lists = true }

// Field returns the place at a key of a map: presence and kind of the value
// are needed from now on.
func (b *Builder) Field(name string) *Builder {
	if b.fields == nil {
		b.fields = map[string]*Builder{}
	}
	f := b.fields[name]
	if f == nil {
		f = &Builder{}
		b.fields[name] = f
	}
	return f
}

// Items returns the place of all elements of a list: its length and the kind
// of each element are needed from now on.
func (b *Builder) Items() *Builder {
	if b.items == nil {
		b.items = &Builder{}
	}
	return b.items
}

// Values returns the place of all values of a map: its keys and the kind of
// each value are needed from now on.
func (b *Builder) Values() *Builder {
	if b.values == nil {
		b.values = &Builder{}
	}
	return b.values
}

// Set returns what is needed so far. The Builder may be used further.
func (b *Builder) Set() *Set {
	if b.whole {
		return everything
	}
	s := &Set{keys: b.keys || b.items != nil || b.values != nil, lists: b.lists}
	if b.items != nil {
		s.items = b.items.Set()
	}
	if b.values != nil {
		s.values = b.values.Set()
	}
	s.names = slices.Sorted(maps.Keys(b.fields))
	s.fields = make([]*Set, len(s.names))
	for i, name := range s.names {
		s.fields[i] = union(b.fields[name].Set(), s.values)
	}
	return s.normal()
}

// ItemsSet returns what is needed of the elements if the place is a list of
// objects; never nil.
func (b *Builder) ItemsSet() *Set { return orEmpty(b.Set().Items()) }

// walk calls f on the places that a path leads to.
func (b *Builder) walk(path []string, f func(*Builder)) {
	switch {
	case len(path) == 0:
		f(b)
	case path[0] == Elem:
		b.Items().walk(path[1:], f)
		b.Values().walk(path[1:], f)
	default:
		b.Field(path[0]).walk(path[1:], f)
	}
}
