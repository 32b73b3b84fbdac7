package rules

import (
	"strings"
	"testing"
)

func TestGlobs(t *testing.T) {
	for _, tc := range []struct {
		patterns []string
		name     string
		want     string // the pattern that matches; empty: none
	}{
		{nil, "kube-system", ""},
		{[]string{"kube-system"}, "kube-system", "kube-system"},
		{[]string{"kube-system"}, "kube-system-2", ""},
		{[]string{"team-?", "kube-*"}, "kube-system", "kube-*"},
		{[]string{"team-[ab]"}, "team-a", "team-[ab]"},
		{[]string{"team-[ab]"}, "team-c", ""},
		{[]string{"*"}, "", "*"}, // cluster-scoped objects are the engine's to leave out
	} {
		g, err := NewGlobs(tc.patterns...)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := g.Match(tc.name); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%q, %q: %q, %v", tc.patterns, tc.name, got, ok)
		}
	}
	if _, err := NewGlobs("kube-*", "team-[a"); err == nil || err.Error() != `"team-[a" is not a pattern: syntax error in pattern` {
		t.Errorf("a bad pattern: %v", err)
	}
	if _, err := NewGlobs("team-[!a]"); err == nil || !strings.Contains(err.Error(), "write [^…]") {
		t.Errorf("a pattern that means the opposite to shells: %v", err)
	}
}

func TestARuleThatMatchesOnlyInGlobs(t *testing.T) {
	for _, tc := range []struct {
		match string
		want  bool
	}{
		{"{}", false},
		{"{namespaces: [kube-system]}", true},
		{"{namespaces: [kube-system, 'kube-*']}", true},
		{"{namespaces: [kube-system, shop]}", false},
		{"{namespaces: ['*']}", false},
		{"{namespaces: ['k*']}", false},
	} {
		set, problems := Load(Source{Name: "r.yaml", Data: []byte("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r}\nspec:\n" +
			"  resource: {version: v1, resource: configmaps}\n  match: " + tc.match + "\n  patch: {merge: {data: {a: b}}}\n")})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		g, err := NewGlobs("kube-*")
		if err != nil {
			t.Fatal(err)
		}
		if got := set.All()[0].MatchesOnlyIn(g); got != tc.want {
			t.Errorf("%s: %v", tc.match, got)
		}
	}
}
