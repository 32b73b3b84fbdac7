// Package suggest finds what was meant by a word that is not known: a field, a
// rule, a command, a flag. All of it is pure.
package suggest

import (
	"fmt"
	"slices"
	"strings"
)

// maxWord is how long a word may be, in bytes, to be taken for a slip: what is
// longer is no name.
const maxWord = 100

// minPart is how long a part of a name must be, in bytes, to stand for the name.
const minPart = 3

// Closest returns the candidate that is closest to what was written, empty if
// none is close. Case does not count. Of several that are as close, it is the
// first in bytewise order, whatever the order of the candidates. A plural is closer
// to its singular than to anything else. If none is written nearly like it, one may
// be of which a part was written, or that is a part of what was.
func Closest(got string, candidates []string) string {
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if plural(got, c) || plural(c, got) {
			return c
		}
	}
	if near := Near(got, candidates, len(got)/3+1); near != "" || len(got) > maxWord {
		return near
	}
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		long, short := strings.ToLower(got), strings.ToLower(c)
		if len(long) < len(short) {
			long, short = short, long
		}
		if len(short) >= minPart && len(long) <= maxWord && (strings.HasPrefix(long, short) || strings.Contains(long, "-"+short)) {
			return c
		}
	}
	return ""
}

// plural reports whether a word is another one in the plural, or a verb with an s.
func plural(long, short string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(long), strings.ToLower(short))
	return ok && short != "" && (rest == "s" || rest == "es")
}

// Near is Closest of what is written with at most so many slips.
func Near(got string, candidates []string, slips int) string {
	if len(got) > maxWord {
		return ""
	}
	best, bestDistance := "", slips+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if len(c) > maxWord {
			continue
		}
		if d := distance(strings.ToLower(got), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// DidYouMean names the closest candidate, as a ready-made addition to a
// message: it begins with a blank, and is empty if none is close.
func DidYouMean(got string, candidates []string) string {
	best := Closest(got, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance counts the bytes to insert, delete, replace or swap with their
// neighbour that make b of a (optimal string alignment).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	next := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
