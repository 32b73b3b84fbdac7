package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Variables that are twice the one before may come to very much: what they
// may be is given up in time.
func TestVariablesThatMultiply(t *testing.T) {
	for name, next := range map[string]string{
		"lists":        "variables.v%[1]d + variables.v%[1]d",
		"alternatives": "object.spec.a == %[1]d ? variables.v%[1]d : variables.v%[1]d",
		"maps":         "{'a': variables.v%[1]d, 'b': variables.v%[1]d}",
		"elements":     "[variables.v%[1]d, variables.v%[1]d].flatten()",
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("variables:\n\t- {name: v0, expression: \"[{'op': 'add', 'path': '/spec/a', 'value': 1}]\"}\n")
			for i := range 60 {
				fmt.Fprintf(&b, "\t- {name: v%d, expression: \"%s\"}\n", i+1, fmt.Sprintf(next, i))
			}
			b.WriteString("\tcondition: 1 == 2\n\tpatches: [{json: \"${variables.v60}\"}, {merge: \"${{'spec': variables.v60}}\"}]")
			start := time.Now()
			r := load(t, rule("r", b.String())).All()[0]
			if len(r.Writes()) > 2 {
				t.Errorf("%d writes", len(r.Writes()))
			}
			if object, _ := (Trial{Resource: r.Resources[0], Namespaced: true}).Restless(r); object != nil {
				t.Errorf("it does not rest on %v", object)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestTrialGivesUpSlowRules(t *testing.T) {
	r := load(t, rule("r", "condition: lists.range(10000).exists(i, lists.range(10000).exists(j, i + j == -1)) || object.spec.a == 1\n\tpatch: {merge: {spec: {b: \"${object.spec.?a.orValue(0) + 1}\"}}}")).All()[0]
	start := time.Now()
	Trial{Resource: r.Resources[0], Namespaced: true}.Restless(r)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
