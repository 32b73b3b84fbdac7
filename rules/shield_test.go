package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// loadSpecs makes a set of rules out of their specs by name.
func loadSpecs(t *testing.T, specs map[string]string) *Set {
	t.Helper()
	var files []Source
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		text := "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n  match: {names: [x]}\n  " +
			strings.ReplaceAll(strings.TrimSpace(specs[name]), "\n", "\n  ") + "\n"
		files = append(files, Source{Name: name, Data: []byte(text)})
	}
	set, problems := Load(files...)
	for _, p := range problems {
		t.Fatal(p.Detail())
	}
	return set
}

func TestShield(t *testing.T) {
	set := loadSpecs(t, map[string]string{
		"lookup-yes": `
resource: {version: v1, resource: configmaps}
lookups: [{name: token, resource: {version: v1, resource: secrets}, namespace: "${object.metadata.namespace}"}]
patch: {merge: {data: {password: "${lookups.token.size() == 0 ? '' : lookups.token[0].data.password}"}}}`,
		"copied-on-yes": `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {annotations: {copy: "${object.data.password}"}}}}`,
		"copied-twice-yes": `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {again: "${object.metadata.annotations.copy}"}}}`,
		"copied-by-operation-yes": `
resource: {version: v1, resource: configmaps}
patch: {json: [{op: copy, from: /data/again, path: /data/last}]}`,
		"looked-up-yes": `
resource: {group: apps, version: v1, resource: deployments}
lookups: [{name: config, resource: {version: v1, resource: configmaps}, namespace: "${object.metadata.namespace}"}]
patch: {merge: {metadata: {annotations: {x: "${string(lookups.config.size())}"}}}}`,
		"part-yes": `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {user: "u-${object.data.user.substring(0, 4)}"}}}}`,
		"label-no": `
resources: [{version: v1, resource: secrets}, {version: v1, resource: configmaps}]
patch: {merge: {metadata: {labels: {team: a}}}}`,
		"elsewhere-no": `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {other: "${object.data.?mode.orValue('')}"}}}`,
		"other-operation-no": `
resource: {version: v1, resource: configmaps}
patch: {json: [{op: copy, from: /metadata/labels/team, path: /metadata/labels/team2}]}`,
		"another-resource-no": `
resource: {version: v1, resource: services}
patch: {merge: {metadata: {annotations: {copy: "${object.metadata.annotations.other}"}}}}`,
	})
	s := NewShield(set)
	for _, r := range set.All() {
		if want := strings.HasSuffix(r.Name, "-yes"); s.Covers(r) != want {
			t.Errorf("rule %s is shielded: %v", r.Name, s.Covers(r))
		}
	}
}

// However a rule says it: what it copies out of a Secret comes from a Secret.
func TestOperationsThatReadSecretData(t *testing.T) {
	for patch, want := range map[string]bool{
		`json: [{op: copy, from: /data/password, path: /metadata/labels/copy}]`:                                             true,
		`json: [{op: move, from: /data/password, path: /metadata/labels/copy}]`:                                             true,
		`json: [{op: copy, from: /stringData/a, path: /metadata/labels/copy}]`:                                              true,
		`json: [{op: copy, from: /data, path: /data2}]`:                                                                     true,
		`json: [{op: copy, from: /metadata/annotations, path: /metadata/labels}]`:                                           true, // it may hold the last-applied one
		`json: [{op: copy, from: "/data/${object.metadata.name}", path: /metadata/labels/copy}]`:                            true,
		`json: [{op: copy, from: "${'/data/' + object.metadata.name}", path: /metadata/labels/copy}]`:                       true,
		`json: [{op: "${'co' + 'py'}", from: /data/password, path: /metadata/labels/copy}]`:                                 true,
		`json: "${[{'op': 'copy', 'from': '/data/password', 'path': '/metadata/labels/copy'}]}"`:                            true,
		`json: ["${{'op': 'move', 'from': '/data/password', 'path': '/metadata/labels/copy'}}"]`:                            true,
		`json: "${object.metadata.annotations.map(k, {'op': 'copy', 'from': '/data/' + k, 'path': '/metadata/labels/x'})}"`: true,
		`json: "${object.metadata.operations}"`:                                                                             true,
		`json: [{op: copy, from: /metadata/labels/a, path: /metadata/labels/b}]`:                                            false,
		`json: "${[{'op': 'copy', 'from': '/metadata/labels/a', 'path': '/metadata/labels/b'}]}"`:                           false,
		`json: [{op: test, path: /data/a, value: eA==}, {op: add, path: /metadata/labels/b, value: x}]`:                     false,
		`json: "${['a'].map(k, {'op': 'add', 'path': '/metadata/labels/' + k, 'value': 'x'})}"`:                             false,
		`merge: {metadata: {labels: {copy: "${object.data.password}"}}}`:                                                    true,
		`merge: {data: {password: eA==}}`:                                                                                   false,
	} {
		set := loadSpecs(t, map[string]string{"r": "resource: {version: v1, resource: secrets}\npatch:\n  " + patch})
		if got := set.All()[0].ReadsSecretData(); got != want {
			t.Errorf("%s: it reads data: %v", patch, got)
		}
	}
}

// What one rule has copied out of a Secret is not told by another one.
func TestMessagesOverCopiesAreNotTold(t *testing.T) {
	for _, tc := range []struct {
		name, resource, message string
		told                    bool
	}{
		{"the copy", "secrets", "was ${object.metadata.labels.copy}", false},
		{"all labels", "secrets", "has ${string(object.metadata.labels.size())}: ${object.metadata.labels.map(k, object.metadata.labels[k]).join(' ')}", false},
		{"through a variable", "secrets", "was ${variables.labels.copy}", false},
		{"a copy that is looked up", "configmaps", "is ${lookups.secret[0].metadata.labels.copy}", false},
		{"another label", "secrets", "team ${object.metadata.labels.team}", true},
		{"the name", "secrets", "on ${object.metadata.name}", true},
		{"no value", "secrets", "labels are set", true},
		{"the name of what is looked up", "configmaps", "as ${lookups.secret[0].metadata.name} says", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := "resource: {version: v1, resource: " + tc.resource + "}\nvariables: [{name: labels, expression: object.metadata.labels}]\n" +
				"patch: {merge: {metadata: {annotations: {seen: 'yes'}}}}\nevent: {message: \"" + tc.message + "\"}"
			if tc.resource == "configmaps" {
				spec += "\nlookups: [{name: secret, resource: {version: v1, resource: secrets}, namespace: \"${object.metadata.namespace}\"}]"
			}
			set := loadSpecs(t, map[string]string{
				"a": "resource: {version: v1, resource: secrets}\npatch: {json: [{op: copy, from: /data/password, path: /metadata/labels/copy}]}",
				"b": spec,
			})
			b := set.All()[1]
			v := Verdict{Rule: b, Event: Event{Message: "with values"}}
			want := "changed by rule b"
			if tc.told {
				want = "with values"
			}
			if got := NewShield(set).Message(v); got != want {
				t.Errorf("told is %q, want %q", got, want)
			}
		})
	}
}

func TestErrorsOverCopiesAreNotTold(t *testing.T) {
	set := loadSpecs(t, map[string]string{
		"a": "resource: {version: v1, resource: secrets}\npatch: {json: [{op: copy, from: /data/password, path: /metadata/labels/copy}]}",
		"b": "resource: {version: v1, resource: secrets}\ncondition: int(object.metadata.labels.copy) > 1\npatch: {merge: {metadata: {labels: {b: b}}}}",
		"c": "resource: {version: v1, resource: configmaps}\npatch: {merge: {metadata: {labels: {b: b}}}}",
	})
	s, err := NewShield(set), &EvaluationError{Part: "condition", Err: errors.New("it is czNjcjN0")}
	if got := s.Error(set.All()[1], fmt.Errorf("rule b: %w", err)); strings.Contains(got, "czNj") || !strings.Contains(got, "condition") {
		t.Errorf("told is %q", got)
	}
	if got := s.Error(set.All()[2], err); got != err.Error() {
		t.Errorf("of a rule that is not shielded, told is %q", got)
	}
}
