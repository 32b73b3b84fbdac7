package rules

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func matchOf(t *testing.T, match string) *Rule {
	t.Helper()
	set, problems := Load(Source{Name: "r.yaml", Data: []byte("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r}\nspec:\n  resource: {version: v1, resource: pods}\n  match: " + match + "\n  patch: {merge: {metadata: {labels: {a: b}}}}\n")})
	if len(problems) > 0 {
		t.Fatal(problems[0].Detail())
	}
	return set.All()[0]
}

func TestDisjoint(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		want       bool
	}{
		{"nothing asked", `{}`, `{namespaces: [a]}`, false},
		{"other namespaces", `{namespaces: [a, b]}`, `{namespaces: [c]}`, true},
		{"one of them in both", `{namespaces: [a, b]}`, `{namespaces: [b]}`, false},
		{"other names", `{names: [a]}`, `{names: [b]}`, true},
		{"a name in a pattern", `{names: ["a*"]}`, `{names: [ab]}`, false},
		{"a name in none", `{names: ["a*"]}`, `{names: [ba]}`, true},
		{"patterns that begin otherwise", `{namespaces: ["dev-*", "test-?"]}`, `{namespaces: ["prod-*"]}`, true},
		{"one that begins as the other", `{namespaces: ["dev-*"]}`, `{namespaces: ["dev-eu-*"]}`, false},
		{"patterns that end otherwise", `{names: ["*-dev"]}`, `{names: ["*-prod"]}`, true},
		{"one that ends as the other", `{names: ["*-dev"]}`, `{names: ["*eu-dev"]}`, false},
		{"one of two begins alike", `{names: ["dev-*", "p*"]}`, `{names: ["prod-*"]}`, false},
		{"a beginning and an end", `{names: ["dev-*"]}`, `{names: ["*-web"]}`, false},
		{"a class", `{names: ["[dp]ev-*"]}`, `{names: ["prod-*"]}`, false},
		{"a class behind a beginning", `{names: ["dev-[ab]*"]}`, `{names: ["prod-[ab]"]}`, true},
		{"a class with an end in it", `{names: ["a[*x]"]}`, `{names: ["a*y]", "?*"]}`, false},
		{"an end in a class", `{names: ["a[*x]"]}`, `{names: ["*x"]}`, false},
		{"what is escaped", `{names: ['\\dev*']}`, `{names: ['de?*']}`, false},
		{"excluded", `{names: [a]}`, `{excludeNames: ["*"]}`, true},
		{"a pattern that is excluded", `{namespaces: ["dev-*"]}`, `{excludeNamespaces: ["dev-*"]}`, true},
		{"a part of a pattern is excluded", `{namespaces: ["dev-*"]}`, `{excludeNamespaces: ["dev-a*", dev-b]}`, false},
		{"other labels are no other place", `{labelSelector: {matchLabels: {a: b}}}`, `{labelSelector: {matchLabels: {a: c}}}`, false},
		{"nor are other labels of the namespace", `{namespaceSelector: {matchLabels: {a: b}}}`, `{namespaceSelector: {matchLabels: {a: c}}}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := matchOf(t, tc.a), matchOf(t, tc.b)
			if got, back := a.Disjoint(b), b.Disjoint(a); got != tc.want || back != tc.want {
				t.Errorf("got %t, the other way round %t, want %t", got, back, tc.want)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	a := matchOf(t, `{labelSelector: {matchLabels: {tier: web, same: x}, matchExpressions: [{key: gone, operator: DoesNotExist}]}, fieldSelector: "spec.a=1,spec.b!=2,spec.c=3", namespaceSelector: {matchLabels: {env: dev}}}`)
	b := matchOf(t, `{labelSelector: {matchLabels: {tier: db, same: x}, matchExpressions: [{key: gone, operator: Exists}]}, fieldSelector: "spec.a=2,spec.b=2,spec.c!=4", namespaceSelector: {matchLabels: {env: prod}}}`)
	want := [][]string{{"metadata", "labels", "gone"}, {"metadata", "labels", "tier"}, {"spec", "a"}, {"spec", "b"}}
	for _, got := range [][][]string{a.Differences(b), b.Differences(a)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([][]string{{"metadata", "labels", "env"}}, a.NamespaceDifferences(b)); diff != "" {
		t.Errorf("of the namespace (-want +got):\n%s", diff)
	}
	if got := append(a.Differences(matchOf(t, `{}`)), a.NamespaceDifferences(a)...); len(got) > 0 {
		t.Errorf("rules that may meet differ by %v", got)
	}
}
