package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rectifier-dev/rectifier/internal/suggest"
)

// MisspeltOptOut finds a name in the skip annotations of an object and of its
// Namespace (nil: not known) that is no rule of the set, but nearly one of those
// that look at the object: most likely that one was meant, and is not kept away.
// It returns the rule that was meant and what to tell; nil if there is none.
//
// Names that are like no rule are not told of: they may be rules of another
// instance, and so may names that differ as rules of one family do (limits-a and
// limits-b, 10-x and 20-x). Which rules look at the object is asked only where
// there is a name.
func MisspeltOptOut(object, namespace map[string]any, matched func() []*Rule, set *Set, now time.Time) (meant *Rule, err error) {
	for _, place := range []struct {
		object map[string]any
		what   string
	}{{object, "the object"}, {namespace, "its Namespace"}} {
		for _, name := range skipNames(place.object, now) {
			if set.Get(name) != nil {
				continue
			}
			if meant := nearly(name, matched()); meant != nil {
				return meant, fmt.Errorf("the annotation %s on %s names %q, which is no rule (did you mean %q?): this rule does not leave the object alone",
					SkipAnnotation, place.what, name, meant.Name)
			}
		}
	}
	return nil, nil
}

// skipNames are the names of rules that a skip annotation holds which is in force.
func skipNames(object map[string]any, now time.Time) []string {
	annotations, _ := metadataOf(object)["annotations"].(map[string]any)
	skip, _ := annotations[SkipAnnotation].(string)
	if skip == "" {
		return nil
	}
	if until, ok := annotations[SkipUntilAnnotation].(string); ok {
		if end, err := time.Parse(time.RFC3339, until); err == nil && !now.Before(end) {
			return nil
		}
	}
	var out []string
	for _, name := range strings.Split(skip, ",") {
		if name = strings.TrimSpace(name); name != "" && name != "*" {
			out = append(out, name)
		}
	}
	return out
}

// longName is how long the name of a rule is, in bytes, in which two slips are
// still a slip.
const longName = 8

func nearly(name string, matched []*Rule) *Rule {
	slips := 1
	if len(name) >= longName {
		slips = 2
	}
	var names []string
	for _, r := range matched {
		if r.OptOut && !family(name, r.Name) {
			names = append(names, r.Name)
		}
	}
	near := suggest.Near(name, names, slips)
	for _, r := range matched {
		if r.Name == near {
			return r
		}
	}
	return nil
}

// family reports whether two names differ only in words that count or that are as
// good as letters: those are two rules, not one that was misspelt.
func family(a, b string) bool {
	x, y := strings.Split(a, "-"), strings.Split(b, "-")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		switch short := len(x[i]) == len(y[i]) && len(x[i]) <= 3; {
		case x[i] == y[i], short:
		case slices.ContainsFunc([]string{x[i], y[i]}, func(s string) bool { return strings.ContainsAny(s, "0123456789") }):
		default:
			return false
		}
	}
	return true
}
