package rules

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Globs are patterns over whole names, as in match.namespaces. The zero value
// matches nothing. They are immutable.
type Globs struct{ globs []glob }

// NewGlobs compiles patterns. One that is none is an error.
func NewGlobs(patterns ...string) (Globs, error) {
	var out Globs
	for _, p := range patterns {
		if err := checkGlob(p); err != nil {
			return Globs{}, fmt.Errorf("%q is not a pattern: %w", p, err)
		}
		out.globs = append(out.globs, glob(p))
	}
	return out, nil
}

// checkGlob refuses what is no pattern of path.Match. "[!a]" is one, and matches
// just the opposite of what it means to shells: "!" or "a".
func checkGlob(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return err
	}
	if strings.Contains(pattern, "[!") {
		return errors.New("write [^…] for all characters but these, not [!…]")
	}
	return nil
}

// Match reports whether a name is matched, and by which pattern at first.
func (g Globs) Match(name string) (pattern string, ok bool) {
	for _, one := range g.globs {
		if one.matches(name) {
			return string(one), true
		}
	}
	return "", false
}

// MatchesOnlyIn reports whether a rule is about nothing but objects in namespaces
// of these patterns: its match.namespaces names some of them, or has some of the
// patterns themselves, and nothing else.
func (r *Rule) MatchesOnlyIn(g Globs) bool {
	return len(r.match.namespaces) > 0 && !slices.ContainsFunc(r.match.namespaces, func(wanted glob) bool {
		_, covered := g.Match(string(wanted))
		return !covered && !slices.Contains(g.globs, wanted)
	})
}
