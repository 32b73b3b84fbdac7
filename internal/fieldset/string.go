package fieldset

import (
	"regexp"
	"strconv"
	"strings"
)

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Paths lists the set as paths, in the order of the names, for logs and tests.
// `.a.b` is all below a.b, `.a.b?` its presence and kind, `.a{keys}` keys or
// length, `.a{if list}` all of it if it is a list; `[*]` stands for list
// elements, `{*}` for map values, `.*` for both. All fields are `.`.
func (s *Set) Paths() []string {
	if s.IsEmpty() {
		return nil
	}
	return s.paths(nil, "")
}

// String is Paths in one line.
func (s *Set) String() string { return strings.Join(s.Paths(), " ") }

func (s *Set) paths(out []string, at string) []string {
	if s.whole {
		if at == "" {
			at = "."
		}
		return append(out, at)
	}
	if s.IsEmpty() {
		return append(out, at+"?")
	}
	if s.keys && s.items == nil && s.values == nil {
		out = append(out, at+"{keys}")
	}
	if s.lists {
		out = append(out, at+"{if list}")
	}
	for i, name := range s.names {
		if plainName.MatchString(name) {
			out = s.fields[i].paths(out, at+"."+name)
		} else {
			out = s.fields[i].paths(out, at+"["+strconv.Quote(name)+"]")
		}
	}
	if s.items != nil && s.values != nil && covers(s.items, s.values) && covers(s.values, s.items) {
		return s.items.paths(out, at+".*")
	}
	if s.items != nil {
		out = s.items.paths(out, at+"[*]")
	}
	if s.values != nil {
		out = s.values.paths(out, at+"{*}")
	}
	return out
}
