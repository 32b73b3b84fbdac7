package rules

import (
	"strings"
	"testing"
)

const secretRule = `
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: secret}
spec:
  resource: {version: v1, resource: secrets}
  variables:
  - {name: pw, expression: object.data.password}
  - {name: all, expression: object}
  condition: CONDITION
  patch: {merge: {metadata: {labels: {checked: "yes"}}}}
  event: {message: "MESSAGE"}
`

// SEC-01: what a rule computes from a Secret is not published.
func TestMessagesOverSecretsAreRefused(t *testing.T) {
	for message, refused := range map[string]bool{
		"plain":                           false,
		"checked ${object.metadata.name}": false,
		"in ${object.metadata.?annotations['team'].orValue('?')}":                                  false,
		"it is ${object.data.password}":                                                            true,
		"it is ${variables.pw}":                                                                    true,
		"it is ${string(variables.all.data.size())}":                                               true,
		"it is ${object.metadata.annotations.map(k, k).join(',')}":                                 false,
		"it is ${object.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']}": true,
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(secretRule, "MESSAGE", message), "CONDITION", `"true"`)
		_, problems := Load(Source{Name: "r.yaml", Data: []byte(text)})
		got := len(problems) > 0
		if got != refused {
			t.Errorf("%s: refused is %v, want %v: %v", message, got, refused, problems)
		}
	}
}

func TestErrorsOverSecretsHoldNoData(t *testing.T) {
	text := strings.ReplaceAll(strings.ReplaceAll(secretRule, "MESSAGE", "${timestamp(object.metadata.name)}"), "CONDITION", `"{'': true}[object.data.password]"`)
	set, problems := Load(Source{Name: "r.yaml", Data: []byte(text)})
	if problems != nil {
		t.Fatal(problems[0])
	}
	res := evaluate(t, set, `{metadata: {name: s}, data: {password: czNjcjN0}}`)
	if len(res.Verdicts) != 1 || res.Verdicts[0].Outcome != Error {
		t.Fatalf("got %+v", res.Verdicts)
	}
	if text := res.Verdicts[0].Err.Error(); strings.Contains(text, "czNjcjN0") {
		t.Errorf("the error holds data of a Secret: %s", text)
	}
}
