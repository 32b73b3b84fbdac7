package projection

import "github.com/rectifier-dev/rectifier/internal/fieldset"

// plan is a fieldset.Set in the form that the scanner walks: what is kept of a
// value at one place. A nil plan keeps nothing of it but that it is there, as null.
// A plan is immutable.
type plan struct {
	whole bool // all
	keys  bool // all keys of a map, the length of a list, a scalar itself
	lists bool // all of it if it is a list

	names  []string
	fields []*plan          // like names
	byName map[string]*plan // the same; only where there are many
	items  *plan            // of each element of a list; implies keys
	values *plan            // of the values of a map that are not in names; implies keys
}

// Above it, a map is faster than comparing one name after the other.
const manyNames = 8

var wholePlan = &plan{whole: true}

func compile(s *fieldset.Set) *plan {
	switch {
	case s == nil:
		return nil
	case s.IsWhole():
		return wholePlan
	}
	p := &plan{keys: s.HasKeys(), lists: s.WholeLists(), names: s.Names()}
	other := "" // a name that is not among the names
	for _, name := range p.names {
		p.fields = append(p.fields, compile(s.Field(name)))
		other = name + "\x00" // the names are sorted
	}
	if len(p.names) > manyNames {
		p.byName = make(map[string]*plan, len(p.names))
		for i, name := range p.names {
			p.byName[name] = p.fields[i]
		}
	}
	p.items = compile(s.Items())
	p.values = compile(s.Field(other))
	return p
}

// field returns the plan of the value at a key, and whether the key is kept at all.
func (p *plan) field(key []byte) (*plan, bool) {
	switch {
	case p.whole:
		return wholePlan, true
	case p.byName != nil:
		if f, ok := p.byName[string(key)]; ok {
			return f, true
		}
	default:
		for i, name := range p.names {
			if string(key) == name {
				return p.fields[i], true
			}
		}
	}
	return p.values, p.keys
}
