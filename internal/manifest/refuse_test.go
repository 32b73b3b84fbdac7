package manifest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

func TestWhatIsNoManifest(t *testing.T) {
	const head = "apiVersion: v1\nkind: A\n"
	const template = " ({{ looks like a template, which has to be rendered first)"
	for _, tc := range []struct{ name, file, text, want string }{
		{"a comma too many", "m.json", "{\"apiVersion\":\"v1\",\n \"kind\":\"Ä\",}\n", "m.json:2:13: invalid JSON: invalid character '}' looking for beginning of object key string"},
		{"keys without quotes", "m.JSON", "\n{apiVersion: v1, kind: A}\n", "m.JSON:2:2: invalid JSON: invalid character 'a' looking for beginning of object key string"},
		{"a comment", "m.json", "{\"apiVersion\":\"v1\", # why\n\"kind\":\"A\"}", "m.json:1:21: invalid JSON: invalid character '#' looking for beginning of object key string"},
		{"YAML", "m.json", "---\n# c\n" + head, "m.json:3:1: invalid JSON: invalid character 'a' looking for beginning of value"},
		{"the second document", "m.json", "{\"apiVersion\":\"v1\",\"kind\":\"A\"}\n---\n{\"apiVersion\":\"v1\",\"kind\":'A'}", "m.json:3:27: invalid JSON: invalid character '\\'' looking for beginning of value"},
		{"the same as YAML", "m.yaml", "{\"apiVersion\":\"v1\",\"kind\":\"A\",}\n", ""},
		{"JSON", "m.json", "\ufeff\n{\"apiVersion\":\"v1\",\"kind\":\"A\"}\n{\"apiVersion\":\"v1\",\"kind\":\"A\"}", ""},
		{"JSON without a value", "m.json", "\n", ""},
		{"a template for a value", "m.yaml", head + "x: {{ .Values.x }}\n", "m.yaml:3:5: a key must be a string, not a list or a mapping" + template},
		{"a template with arguments", "m.yaml", head + "x:\n  {{- include \"x\" . | nindent 4 }}\n", "m.yaml:4:3: invalid YAML: did not find expected node content" + template},
		{"a template in a JSON file", "m.json", "{\"apiVersion\":\"v1\",\"kind\": {{ .x }}}", "m.json:1:29: a key must be a string, not a list or a mapping" + template},
		{"a template in quotes elsewhere", "m.yaml", head + "x: \"{{ .x }}\"\n? [a]\n: 1\n", "m.yaml:4:3: a key must be a string, not a list or a mapping"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(tc.file, []byte(tc.text))
			if tc.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			var e *yamldoc.Error
			if !errors.As(err, &e) || strings.TrimSpace(err.Error()) != tc.want {
				t.Errorf("\n got %v\nwant %s", err, tc.want)
			}
		})
	}
}
