package rules

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Guards are told in CEL, and mean what they say: a rule with that as its condition
// has the same guard.
func TestGuardsAreToldInCEL(t *testing.T) {
	guardsOf := func(spec string) []string {
		t.Helper()
		return load(t, rule("r", spec+"\n\tpatch: {merge: {spec: {seen: true}}}")).All()[0].Guards()
	}
	for condition, want := range map[string][]string{
		"'example.io/a' in object.metadata.?annotations.orValue({}) && object.spec.replicas > 3": {"'example.io/a' in object.metadata.annotations", "object.spec.replicas > 3"},
		"object.metadata.?labels[?'example.io/a'].hasValue()":                                    {"'example.io/a' in object.metadata.labels"},
		"!object.metadata.?labels[?'example.io/a'].hasValue()":                                   {"!('example.io/a' in object.metadata.labels)"},
		"'a' in object.spec.finalizers":                                                          {"'a' in object.spec.finalizers"},
		"!('a' in object.spec.finalizers)":                                                       {"!('a' in object.spec.finalizers)"},
		"has(object.spec.a)":                                                                     {"has(object.spec.a)"},
		"!has(object.spec.a)":                                                                    {"!has(object.spec.a)"},
		"object.metadata.?labels[?'a/b'].orValue('') == 'x'":                                     {"object.metadata.labels['a/b'] == 'x'"},
		"object.spec.a in ['x', 'y']":                                                            {"object.spec.a in ['x', 'y']"},
		"!(object.spec.a in ['x', 'y'])":                                                         {"!(object.spec.a in ['x', 'y'])"},
		"object.spec.a != 'x'":                                                                   {"object.spec.a != 'x'"},
		"object.spec.a == 3":                                                                     {"object.spec.a == 3"},
		"object.spec.?a.orValue(false)":                                                          {"object.spec.a == true"},
		"!(object.spec.a < 3)":                                                                   {"object.spec.a >= 3"},
		"3.0 >= object.spec.a":                                                                   {"object.spec.a <= 3.0"},
		"object.spec.a > 1e30":                                                                   {"object.spec.a > 1e+30"},
		"object.spec.a.startsWith('x')":                                                          {"object.spec.a.startsWith('x')"},
		"!object.spec.a.endsWith('x')":                                                           {"!object.spec.a.endsWith('x')"},
		"object.spec.a.contains('x')":                                                            {"object.spec.a.contains('x')"},
		`object.spec.a == "it's \"\\ü\n"`:                                                        {`object.spec.a == 'it\'s "\\ü\n'`},

		"has(object.spec.a) || has(object.spec.b)": nil,
		"object.spec.a.exists(x, x == 'a')":        nil,
		"object.kind == 'x'":                       nil,
	} {
		got := guardsOf(fmt.Sprintf("condition: %q", condition))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", condition, diff)
		}
		for _, text := range got {
			if again := guardsOf(fmt.Sprintf("condition: %q", text)); !slices.Equal(again, []string{text}) {
				t.Errorf("%s: the guard of %s is %q", condition, text, again)
			}
		}
	}
	for _, spec := range []string{"recheckAfter: 1h\n\tcondition: has(object.spec.a)", "match: {names: [a]}"} {
		if got := guardsOf(spec); got != nil {
			t.Errorf("%s: %q", spec, got)
		}
	}
}
