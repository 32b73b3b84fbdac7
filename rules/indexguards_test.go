package rules

import (
	"fmt"
	"testing"
)

// A rule is passed over where a guard of it is false, and evaluated where one is an
// error, or holds, or where nothing shows what it asks for.
func TestWhatAnIndexPassesOver(t *testing.T) {
	for _, tc := range []struct {
		condition, object string
		evaluated         bool
	}{
		{"'a' in object.metadata.annotations", "{metadata: {annotations: {b: x}}}", false},
		{"'a' in object.metadata.annotations", "{metadata: {annotations: {a: x}}}", true},
		{"'a' in object.metadata.annotations", "{metadata: {}}", true},                  // an error
		{"'a' in object.metadata.annotations", "{metadata: {annotations: null}}", true}, // an error
		{"'a' in object.metadata.annotations", "{}", true},                              // an error
		{"has(object.metadata.annotations) && 'a' in object.metadata.annotations", "{metadata: {}}", false},
		{"'a' in object.metadata.annotations && has(object.metadata.annotations)", "{metadata: {}}", false},
		{"has(object.metadata.annotations) || 'a' in object.metadata.annotations", "{metadata: {annotations: {}}}", true},
		{"'a' in object.metadata.?annotations.orValue({})", "{metadata: {}}", false},
		{"'a' in object.metadata.?annotations.orValue({'a': 'x'})", "{metadata: {}}", true},
		{"'a' in object.spec.finalizers", "{spec: {finalizers: [b, c]}}", false},
		{"'a' in object.spec.finalizers", "{spec: {finalizers: [b, a]}}", true},
		{"'a' in object.spec.finalizers", "{spec: {finalizers: a}}", true}, // an error
		{"has(object.spec.a.b)", "{spec: {a: {}}}", false},
		{"has(object.spec.a.b)", "{spec: {a: {b: null}}}", true},
		{"has(object.spec.a.b)", "{spec: {a: []}}", true},
		{"has(object.spec.a.b)", "{spec: {}}", true}, // an error
		{"object.metadata.?labels[?'example.io/a'].hasValue()", "{metadata: {}}", false},
		{"object.metadata.?labels[?'example.io/a'].hasValue()", "{metadata: {labels: {example.io/a: x}}}", true},
		{"object.metadata.?labels.?a.orValue('') == 'x'", "{metadata: {}}", false},
		{"object.metadata.?labels.?a.orValue('x') == 'x'", "{metadata: {}}", true},
		{"object.metadata.?labels.?a.orValue('x') == 'x'", "{metadata: {labels: {a: z}}}", false},
		{"object.metadata.labels.a == 'x'", "{metadata: {labels: {}}}", true}, // an error
		{"'a' in object.metadata.labels && object.metadata.labels.a == 'x'", "{metadata: {labels: {}}}", false},
		{"object.spec.a in ['x', 'z']", "{spec: {a: w}}", false},
		{"object.spec.a in ['x', 'z']", "{spec: {a: z}}", true},
		{"object.spec.a in ['x', object.spec.b]", "{spec: {a: w}}", true},
		{"object.spec.a == 3", "{spec: {a: 4}}", false},
		{"object.spec.a == 3", "{spec: {a: 3}}", true},
		{"object.spec.a == 3", "{spec: {a: 3.5}}", true}, // numbers are compared as such: 3.0 is 3
		{"object.spec.a == 3", "{spec: {a: '3'}}", false},
		{"object.spec.?a.orValue(false)", "{spec: {a: false}}", false},
		{"object.spec.?a.orValue(false)", "{spec: {}}", false},
		{"object.spec.?a.orValue(true)", "{spec: {}}", true},
		{"object.spec.?a.orValue(false)", "{spec: {a: x}}", true}, // an error
		{"variables.labels.a == variables.x", "{metadata: {labels: {a: z}}}", false},
		{"variables.labels.a == variables.x", "{metadata: {labels: {a: x}}}", true},
		{"variables.labelled", "{metadata: {labels: {b: x}}}", false},
		{"variables.labelled", "{metadata: {}}", false},

		{"!has(object.spec.a)", "{spec: {a: x}}", false},
		{"!has(object.spec.a)", "{spec: {a: null}}", false},
		{"!has(object.spec.a)", "{spec: {}}", true},
		{"!has(object.spec.a)", "{spec: []}", true}, // an error
		{"!has(object.spec.a)", "{}", true},         // an error
		{"has(object.spec) && !has(object.spec.a)", "{}", false},
		{"has(object.spec) && !has(object.spec.a)", "{spec: {}}", true},
		{"has(object.spec.a) && !has(object.spec.a.b)", "{spec: {a: {b: x}}}", false},
		{"!('a' in object.metadata.annotations)", "{metadata: {annotations: {a: x}}}", false},
		{"!('a' in object.metadata.annotations)", "{metadata: {annotations: {b: x}}}", true},
		{"!('a' in object.metadata.annotations)", "{metadata: {}}", true}, // an error
		{"!('a' in object.metadata.?annotations.orValue({}))", "{metadata: {}}", true},
		{"!('a' in object.metadata.?annotations.orValue({}))", "{metadata: {annotations: {a: x}}}", false},
		{"!('a' in object.spec.finalizers)", "{spec: {finalizers: [b, a]}}", false},
		{"!('a' in object.spec.finalizers)", "{spec: {finalizers: [b, 1]}}", true},
		{"!('a' in object.spec.finalizers)", "{spec: {finalizers: a}}", true}, // an error
		{"!object.metadata.?labels[?'a'].hasValue()", "{metadata: {labels: {a: x}}}", false},
		{"!object.metadata.?labels[?'a'].hasValue()", "{metadata: {}}", true},
		{"!(has(object.spec.a) || has(object.spec.b))", "{spec: {b: x}}", false},
		{"!(has(object.spec.a) || has(object.spec.b))", "{spec: {c: x}}", true},
		{"!(has(object.spec.a) && has(object.spec.b))", "{spec: {a: x, b: x}}", true}, // no guard
		{"!!has(object.spec.a)", "{spec: {}}", false},
		{"!object.spec.a", "{spec: {a: true}}", false},
		{"!object.spec.a", "{spec: {a: false}}", true},
		{"!object.spec.a", "{spec: {a: x}}", true}, // an error
		{"!object.spec.?a.orValue(false)", "{spec: {}}", true},
		{"!object.spec.?a.orValue(true)", "{spec: {}}", false},

		{"object.spec.a != 'x'", "{spec: {a: x}}", false},
		{"object.spec.a != 'x'", "{spec: {a: z}}", true},
		{"object.spec.a != 'x'", "{spec: {a: 3}}", true},
		{"object.spec.a != 'x'", "{spec: {}}", true}, // an error
		{"'x' != object.spec.a", "{spec: {a: x}}", false},
		{"!(object.spec.a == 'x')", "{spec: {a: x}}", false},
		{"!(object.spec.a != 'x')", "{spec: {a: z}}", false},
		{"!(object.spec.a in ['x', 'z'])", "{spec: {a: z}}", false},
		{"!(object.spec.a in ['x', 'z'])", "{spec: {a: w}}", true},
		{"object.spec.a != 3", "{spec: {a: 3}}", false},
		{"object.spec.a != 3", "{spec: {a: 4}}", true},
		{"object.spec.a != 3", "{spec: {a: 3.5}}", true},
		{"object.spec.a != true", "{spec: {a: true}}", false},
		{"object.spec.a != true", "{spec: {a: false}}", true},
		{"object.spec.?a.orValue('x') != 'x'", "{spec: {}}", false},
		{"object.spec.?a.orValue('') != 'x'", "{spec: {}}", true},
		{"object.spec.?a.orValue(object.spec.b) != 'x'", "{spec: {a: x}}", true},
		{"has(object.spec.a) && object.spec.a != 'x'", "{spec: {}}", false},

		{"object.spec.a > 3", "{spec: {a: 3}}", false},
		{"object.spec.a > 3", "{spec: {a: 4}}", true},
		{"object.spec.a > 3", "{spec: {a: 2.5}}", false},
		{"object.spec.a > 3", "{spec: {a: 3.5}}", true},
		{"object.spec.a > 3", "{spec: {a: '2'}}", true},  // an error
		{"object.spec.a > 3", "{spec: {a: true}}", true}, // an error
		{"object.spec.a > 3", "{spec: {a: null}}", true}, // an error
		{"object.spec.a > 3", "{spec: {a: [1]}}", true},  // an error
		{"object.spec.a > 3", "{spec: {}}", true},        // an error
		{"object.spec.a >= 3", "{spec: {a: 2}}", false},
		{"object.spec.a >= 3", "{spec: {a: 3}}", true},
		{"object.spec.a < 3", "{spec: {a: 3}}", false},
		{"object.spec.a < 3", "{spec: {a: 2}}", true},
		{"object.spec.a <= 3", "{spec: {a: 4}}", false},
		{"object.spec.a <= 3", "{spec: {a: 3}}", true},
		{"3 < object.spec.a", "{spec: {a: 3}}", false},
		{"3 < object.spec.a", "{spec: {a: 4}}", true},
		{"3 >= object.spec.a", "{spec: {a: 4}}", false},
		{"!(object.spec.a < 3)", "{spec: {a: 2}}", false},
		{"!(object.spec.a < 3)", "{spec: {a: 3}}", true},
		{"object.spec.a > 1000 + 37", "{spec: {a: 1037}}", false},
		{"object.spec.a > 1000 + 37", "{spec: {a: 1038}}", true},
		{"object.spec.a > int('3') && true", "{spec: {a: 3}}", false},
		{"object.spec.a > -3", "{spec: {a: -3}}", false},
		{"object.spec.a > [1, 3].size()", "{spec: {a: 2}}", false},
		{"object.spec.a > 1 / 0", "{spec: {a: 2}}", true}, // an error
		{"object.spec.a > 3u", "{spec: {a: -1}}", false},
		{"object.spec.a > 3u", "{spec: {a: 4}}", true},
		{"object.spec.a > 2.5", "{spec: {a: 2}}", false},
		{"object.spec.a > 2.5", "{spec: {a: 3}}", true},
		{"object.spec.a > 2.5", "{spec: {a: 2.5}}", false},
		{"object.spec.a > double('NaN')", "{spec: {a: 2}}", true},         // an error
		{"object.spec.a > 18446744073709551615u", "{spec: {a: 2}}", true}, // no guard
		{"object.spec.a > 9007199254740992", "{spec: {a: 9007199254740992}}", false},
		{"object.spec.a > 9007199254740992", "{spec: {a: 9007199254740993}}", true},
		{"object.spec.a > 9007199254740992.0", "{spec: {a: 9007199254740993}}", false}, // as a double
		{"object.spec.a > 9007199254740992", "{spec: {a: 1e30}}", true},
		{"object.spec.a < 9007199254740992", "{spec: {a: 1e30}}", true}, // not sorted for such
		{"object.spec.?a.orValue(0) > 3", "{spec: {}}", false},
		{"object.spec.?a.orValue(4) > 3", "{spec: {}}", true},
		{"object.spec.?a.orValue('') > 3", "{spec: {}}", true}, // an error
		{"has(object.spec.a) && object.spec.a > 3", "{spec: {}}", false},
		{"object.spec.a > 'm'", "{spec: {a: k}}", false},
		{"object.spec.a > 'm'", "{spec: {a: nn}}", true},
		{"object.spec.a > 'm'", "{spec: {a: 3}}", true}, // an error
		{"object.spec.a <= 'm'", "{spec: {a: nn}}", false},
		{"object.spec.a > object.spec.b", "{spec: {a: 1, b: 2}}", true}, // no guard

		{"object.spec.a.startsWith('x-')", "{spec: {a: y-x-}}", false},
		{"object.spec.a.startsWith('x-')", "{spec: {a: x-y}}", true},
		{"object.spec.a.startsWith('x-')", "{spec: {a: 3}}", true}, // an error
		{"object.spec.a.startsWith('x-')", "{spec: {}}", true},     // an error
		{"object.spec.a.endsWith('-' + 'x')", "{spec: {a: x-y}}", false},
		{"object.spec.a.endsWith('-' + 'x')", "{spec: {a: y-x}}", true},
		{"object.spec.a.contains('x')", "{spec: {a: zz}}", false},
		{"object.spec.a.contains('x')", "{spec: {a: yxy}}", true},
		{"!object.spec.a.contains('x')", "{spec: {a: yxy}}", false},
		{"!object.spec.a.contains('x')", "{spec: {a: zz}}", true},
		{"object.spec.?a.orValue('').contains('x')", "{spec: {}}", false},
		{"!object.spec.?a.orValue('').contains('x')", "{spec: {}}", true},
		{"namespaceObject.metadata.name == 'x'", "{spec: {}}", true},
		{"object.kind == 'x'", "{kind: z}", true}, // all objects of a resource have the same
	} {
		set := load(t, rule("r", fmt.Sprintf(`
	variables:
	- {name: labels, expression: object.metadata.labels}
	- {name: labelled, expression: "has(object.metadata.labels) && 'a' in variables.labels"}
	- {name: x, expression: "'x'"}
	condition: %q
	patch: {merge: {spec: {seen: true}}}`, tc.condition)))
		in := Input{Object: object(t, tc.object), Resource: set.Resources()[0]}
		x := NewIndex(set.All())
		if got := x.Candidates(in) == 1; got != tc.evaluated {
			t.Errorf("%s on %s: evaluated: %v", tc.condition, tc.object, got)
		}
		CheckCounts(t, x, Evaluate(set.All(), in), x.Evaluate(in))
	}
}

// A match block tells as much as a condition, where there are too many to look at
// each.
func TestAnIndexOfManyMatchBlocks(t *testing.T) {
	var texts []string
	for i := range 200 {
		texts = append(texts, rule(fmt.Sprintf("r%03d", i), fmt.Sprintf("match: {%s}\n\tpatch: {merge: {spec: {seen: true}}}", []string{
			fmt.Sprintf("labelSelector: {matchLabels: {team: t%d}}", i), fmt.Sprintf("names: [n%d]", i), fmt.Sprintf("namespaces: [s%d]", i),
			fmt.Sprintf("labelSelector: {matchExpressions: [{key: team, operator: In, values: [t%d, t0]}]}", i),
			fmt.Sprintf("labelSelector: {matchExpressions: [{key: k%d, operator: Exists}]}", i),
		}[i%5])))
	}
	x := NewIndex(load(t, texts...).All())
	for text, want := range map[string]int{
		"{metadata: {name: a, namespace: b}}":                    0,
		"{metadata: {name: n101, namespace: b}}":                 1,
		"{metadata: {name: n101, namespace: s102}}":              2,
		"{metadata: {name: a, labels: {team: t105, k199: '1'}}}": 2,
		"{metadata: {name: a, labels: {team: t0}}}":              41,
	} {
		in := Input{Object: object(t, text), Resource: x.rules[0].Resources[0]}
		in.Object["spec"] = map[string]any{"seen": true}
		if got := x.Candidates(in); got != want {
			t.Errorf("%s: %d rules are evaluated, want %d", text, got, want)
		}
		CheckCounts(t, x, Evaluate(x.rules, in), x.Evaluate(in))
	}
}
