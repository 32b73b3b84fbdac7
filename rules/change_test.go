package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// changeOf is what a rule with this patch changes on an object.
func changeOf(t *testing.T, spec, object string) *Change {
	t.Helper()
	v := onlyVerdict(t, evaluate(t, load(t, rule("r", spec)), object))
	if v.Outcome != Patch || v.Change == nil {
		t.Fatalf("no change: %+v", v)
	}
	return v.Change
}

func TestTheSameChangeHasTheSameDigest(t *testing.T) {
	const (
		scaled = "patch: {subresource: scale, merge: {spec: {replicas: 5}}}"
		team   = "patch: {merge: {metadata: {labels: {team: web, tier: front}}}}"
		image  = "patch: {json: [{op: test, path: /spec/live, value: true}, {op: %s, path: /spec/image, value: b}]}"
	)
	add, replace := strings.Replace(image, "%s", "add", 1), strings.Replace(image, "%s", "replace", 1)
	for name, tc := range map[string]struct {
		spec, object           string
		otherSpec, otherObject string
		same                   bool
	}{
		"whatever was there":          {scaled, "{spec: {replicas: 3}}", scaled, "{spec: {replicas: 4}}", true},
		"whatever else is there":      {team, "{metadata: {labels: {team: x}}}", team, "{metadata: {labels: {team: y, z: z}}, spec: {}}", true},
		"whatever way it is put":      {add, "{spec: {image: a, live: true}}", replace, "{spec: {image: c, live: true}}", true},
		"another value":               {scaled, "{spec: {replicas: 3}}", "patch: {subresource: scale, merge: {spec: {replicas: 6}}}", "{spec: {replicas: 3}}", false},
		"another value by a template": {"patch: {merge: {spec: {a: \"${object.spec.want}\"}}}", "{spec: {want: 1}}", "patch: {merge: {spec: {a: \"${object.spec.want}\"}}}", "{spec: {want: 2}}", false},
		"another place":               {scaled, "{spec: {replicas: 3}}", "patch: {merge: {spec: {replicas: 5}}}", "{spec: {replicas: 3}}", false},
		"another part of it":          {team, "{metadata: {labels: {team: x}}}", team, "{metadata: {labels: {team: web, tier: x}}}", false},
		"a removal":                   {"patch: {merge: {spec: {a: null}}}", "{spec: {a: 1}}", "patch: {merge: {spec: {a: 0}}}", "{spec: {a: 1}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := changeOf(t, tc.spec, tc.object), changeOf(t, tc.otherSpec, tc.otherObject)
			if same := one.Digest() == other.Digest(); same != tc.same {
				t.Errorf("the same: %t, want %t", same, tc.same)
			}
		})
	}
}

// What a rule changes is its own, whatever other rules change beside it.
func TestAChangeIsOfOneRule(t *testing.T) {
	const a, b = "patch: {merge: {metadata: {labels: {a: x}}}}", "patch: {merge: {metadata: {labels: {b: z}}}}"
	alone := changeOf(t, a, "{metadata: {labels: {}}}")
	together := evaluate(t, load(t, rule("a", a), rule("b", b)), "{metadata: {labels: {}}}")
	if len(together.Requests) != 1 || together.Verdicts[0].Change.Digest() != alone.Digest() {
		t.Error("what another rule changes shows in the digest")
	}
	if together.Verdicts[1].Change.Digest() == alone.Digest() {
		t.Error("two rules that change different things have one digest")
	}
}

func TestWhereAChangeIs(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, object  string
		paths, fields []string
	}{
		"merge": {
			"patch: {merge: {metadata: {labels: {a/b: x}}, spec: {gone: null, list: [1]}}}",
			"{metadata: {labels: {}}, spec: {gone: 1}}",
			[]string{"metadata labels a/b", "spec gone", "spec list"}, []string{"metadata.labels['a/b']", "spec.gone", "spec.list"},
		},
		"merge, only what differs": {
			"patch: {merge: {spec: {a: 1, b: 2}}}", "{spec: {a: 1, b: 1}}",
			[]string{"spec b"}, []string{"spec.b"},
		},
		"scale": {
			"patch: {subresource: scale, merge: {spec: {replicas: 5}}}", "{spec: {replicas: 1}}",
			[]string{"spec replicas"}, []string{"spec.replicas"},
		},
		"json": {
			"patch: {json: [{op: test, path: /spec/live, value: true}, {op: remove, path: /spec/list/0}, {op: move, from: /spec/live, path: /spec/old}]}",
			"{spec: {live: true, list: [x]}}",
			[]string{"spec list 0", "spec live", "spec old"}, []string{"spec.list.0", "spec.live", "spec.old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := changeOf(t, tc.spec, tc.object)
			var paths []string
			for _, p := range c.Paths() {
				paths = append(paths, strings.Join(p, " "))
			}
			slices.Sort(paths)
			if diff := cmp.Diff(tc.paths, paths); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.fields, c.Fields()); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// A key that comes from a Secret is no name of a field to be told.
func TestFieldsOfSecretsAreThoseOfTheText(t *testing.T) {
	secrets := strings.Replace(configMapRule("r", `patch: {merge: {metadata: {labels: {"${object.data.password}": x}}}}`), "configmaps", "secrets", 1)
	c := onlyVerdict(t, evaluate(t, load(t, secrets), "{data: {password: czNjcjN0}}")).Change
	if diff := cmp.Diff([]string{"metadata.labels"}, c.Fields()); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
