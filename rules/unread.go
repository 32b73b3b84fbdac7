package rules

import (
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// A rule of which a part cannot be read is refused, but the rest of it is
// compiled to find what else is wrong. What follows keeps a part that was
// reported from being reported again as missing, or as unknown where it is read.

// forgetUnread takes away the strings that were given but are none: for the
// compiler they are absent.
func (s *spec) forgetUnread() {
	forget := func(all ...**text) {
		for _, t := range all {
			if *t != nil && (*t).node == nil {
				*t = nil
			}
		}
	}
	forget(&s.Condition, &s.Mode, &s.RecheckAfter, &s.OptOut, &s.Match.FieldSelector, &s.Event.Reason, &s.Event.Message)
	if s.Resource != nil {
		forget(&s.Resource.Group)
	}
	for i := range s.Resources {
		forget(&s.Resources[i].Group)
	}
	for i := range s.Lookups {
		if r := s.Lookups[i].Resource; r != nil {
			forget(&r.Group)
		}
	}
	if s.Patch != nil {
		forget(&s.Patch.Subresource)
	}
	for i := range s.Patches {
		forget(&s.Patches[i].Subresource)
	}
}

// lacks reports whether a mapping, which was read as a struct like this one,
// neither has a field nor one that was likely meant to be it.
func lacks(n *yaml.Node, as any, name string) bool {
	_, known := strictyaml.Fields(reflect.TypeOf(as))
	for _, p := range strictyaml.Pairs(n) {
		key := p.Key.Value
		if key == name || !slices.Contains(known, key) && suggest.Closest(key, known) == name {
			return false
		}
	}
	return true
}

// hasUnknown reports whether a mapping, which was read as a struct like this
// one, has fields that the struct does not have.
func hasUnknown(n *yaml.Node, as any) bool {
	_, known := strictyaml.Fields(reflect.TypeOf(as))
	return slices.ContainsFunc(strictyaml.Pairs(n), func(p strictyaml.Pair) bool { return !slices.Contains(known, p.Key.Value) })
}

// unreadNames tells which names the CEL of a rule may read though they are not
// known: what declares them could not be read.
func (d *decoder) unreadNames(s spec) {
	given := func(name string) bool { return !lacks(d.body, spec{}, name) }
	d.unreadVariables = given("variables") && s.Variables == nil ||
		slices.ContainsFunc(s.Variables, func(v variable) bool { return v.Name.node == nil })
	d.unreadLookups = given("lookups") && s.Lookups == nil ||
		slices.ContainsFunc(s.Lookups, func(l lookup) bool { return l.Name.node == nil })
}
