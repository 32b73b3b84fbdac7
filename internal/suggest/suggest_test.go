package suggest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	candidates := []string{"condition", "patch", "match", "labelSelector"}
	for got, want := range map[string]string{
		"conditon": "condition", "Patch": "patch", "pacth": "patch", "matches": "match", "conditions": "condition", "labelselector": "labelSelector",
		"zzz": "", "x": "", "": "", strings.Repeat("condition", 1000): "",
	} {
		if want != "" {
			want = fmt.Sprintf(" (did you mean %q?)", want)
		}
		if s := DidYouMean(got, candidates); s != want {
			t.Errorf("%s: %q, want %q", got, s, want)
		}
	}
	if s := Closest("matches", []string{"patches", "match"}); s != "match" { // one letter is less than two, but no plural
		t.Errorf("matches: %q", s)
	}
	if s := DidYouMean("condition", nil); s != "" {
		t.Errorf("without candidates: %q", s)
	}
}

// Words of which several are as close give the same answer in any order.
func TestTheOrderOfCandidatesDoesNotCount(t *testing.T) {
	candidates := []string{"fit", "fix", "fin"}
	for range 3 {
		if got := Closest("fiz", candidates); got != "fin" {
			t.Errorf("%q: %s", candidates, got)
		}
		candidates = append(candidates[1:], candidates[0])
	}
	if !slices.Equal(candidates, []string{"fit", "fix", "fin"}) {
		t.Errorf("the candidates were modified: %q", candidates)
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"fix", "fix", 0},
		{"fxi", "fix", 1}, {"rules", "ruels", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"ab", "ba", 1},
	} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("%s, %s: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("fix", "fxi")
	f.Add("", "日本")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > maxWord || len(b) > maxWord {
			return
		}
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a)-len(b), len(b)-len(a)) {
			t.Errorf("%q, %q: %d, and the other way round %d", a, b, d, distance(b, a))
		}
	})
}

// A part of a name stands for the name where nothing is written nearly like it;
// a few letters do not.
func TestPartsOfNames(t *testing.T) {
	names := []string{"latest-always", "expected-replicas"}
	for got, want := range map[string]string{
		"latest": "latest-always", "ALWAYS": "latest-always", "replicas": "expected-replicas",
		"latest-always-for-all": "latest-always", "la": "", "est": "", "": "",
	} {
		if near := Closest(got, names); near != want {
			t.Errorf("Closest(%q) is %q, not %q", got, near, want)
		}
	}
}
