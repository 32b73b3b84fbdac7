package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// Reload compiles all rules of the sources to take the place of a set in force.
// It is Load, except that a rule which was good before keeps its last good
// version when
//
//   - it does not compile any more, or there is another one of its name, or
//   - something in its file cannot be read so far that its name is known: that
//     may be the rule.
//
// The problems behind that say so, see Problem.Kept. A rule that is not in the
// sources any more goes.
func Reload(old *Set, sources ...Source) (*Set, []*Problem) {
	l := read(sources)
	all := l.compiled()
	fresh := newSet(all)
	for _, r := range old.All() {
		if fresh.Get(r.Name) != nil {
			continue
		}
		if at, ok := l.keep(r); ok {
			kept := *r
			kept.Pos = at
			all = append(all, &kept)
		}
	}
	return newSet(all), l.problems
}

// keep reports whether a rule that was good before and is not now keeps its
// version, and where it stands now. It marks the problems behind that.
func (l *loader) keep(r *Rule) (at yamldoc.Position, ok bool) {
	for _, p := range l.problems {
		switch {
		case p.Rule == r.Name:
			at = cmp.Or(at, p.Pos)
		case p.Rule == "" && p.Pos.File == r.Pos.File:
			at = cmp.Or(at, r.Pos)
		default:
			continue
		}
		p.Kept, ok = true, true
		p.Msg = strings.TrimSuffix(p.Msg, neitherUsed)
	}
	if claims := l.named[r.Name]; len(claims) > 0 {
		at = claims[0].pos
	}
	return at, ok
}

// Get returns the rule of a name, nil if there is none.
func (s *Set) Get(name string) *Rule {
	i, ok := slices.BinarySearchFunc(s.rules, name, func(r *Rule, name string) int { return strings.Compare(r.Name, name) })
	if !ok {
		return nil
	}
	return s.rules[i]
}

// Changes are the names of the rules in which a set differs from the one
// before, each list sorted.
type Changes struct{ Added, Changed, Removed []string }

// None reports whether nothing has changed.
func (c Changes) None() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// ChangesFrom compares the set with the one before. What counts is the text of
// each rule, comments, layout and place aside: a rule that was only moved, within
// its file or to another one, has not changed.
func (s *Set) ChangesFrom(old *Set) Changes {
	var c Changes
	for _, r := range s.rules {
		switch was := old.Get(r.Name); {
		case was == nil:
			c.Added = append(c.Added, r.Name)
		case was.digest != r.digest:
			c.Changed = append(c.Changed, r.Name)
		}
	}
	for _, r := range old.rules {
		if s.Get(r.Name) == nil {
			c.Removed = append(c.Removed, r.Name)
		}
	}
	return c
}
