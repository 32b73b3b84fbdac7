package ruletest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/rules/patch"
)

// secretive reports whether values of a case may be those of Secrets: its object
// is one, or a rule reads them. Then all that differs is shown by its length
// only: what a rule makes of a Secret's data may end up anywhere.
func secretive(object map[string]any, e Evaluation) bool {
	if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
		return true
	}
	for _, v := range e.Verdicts {
		if v.Rule.Secret {
			return true
		}
	}
	return false
}

// text is the value at a path as YAML, for people.
func (k *checker) text(v any, at path) string {
	if isAbsent(v) {
		return Nothing
	}
	if k.hide {
		v = hidden(v, at)
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// opsText lists operations, one a line.
func (k *checker) opsText(ops []patch.Op) string {
	if len(ops) == 0 {
		return Nothing
	}
	var lines []string
	for _, op := range ops {
		line := fmt.Sprintf("{op: %s, path: %s", op.Op, op.Path)
		if len(op.From) > 0 {
			line += ", from: " + op.From.String()
		}
		if op.HasValue {
			value := op.Value
			if k.hide {
				value = hidden(value, nil)
			}
			text, err := json.Marshal(value)
			if err != nil {
				text = fmt.Append(nil, value)
			}
			line += ", value: " + string(text)
		}
		lines = append(lines, "- "+line+"}")
	}
	return strings.Join(lines, "\n")
}

// hidden is the value at a path with its shape, but of scalars only the length.
// What an object is called is no secret.
func hidden(v any, at path) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = hidden(value, at.child(key))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = hidden(value, at.child(i))
		}
		return out
	case string:
		if slices.Contains(identity, at.String()) {
			return v
		}
		return fmt.Sprintf("*** (%s)", plural(len(v), "byte"))
	case nil:
		return nil
	}
	return "***"
}

var identity = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}
