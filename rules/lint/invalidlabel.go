package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

// invalidLabel finds what the API server refuses whatever the object is.
var invalidLabel = &Check{
	ID: "invalid-label", Severity: Error, Summary: "A label or an annotation is written that the API server refuses",
	Run: func(p *Pass) {
		p.eachResource(func(one *typed, report func(yamldoc.Position, string)) {
			p.eachTarget(one, func(t *target) { checkLabel(t, report) })
		})
	},
}

func checkLabel(t *target, report func(yamldoc.Position, string)) {
	field, key, ok := labelOf(t)
	if !ok || t.through || t.value == nil || t.op == "test" {
		return
	}
	for _, v := range t.value.alternatives() {
		if v.kind == literal && v.literal == nil { // it is removed
			continue
		}
		if msg := refusedKey(field, key); msg != "" {
			report(t.at, msg)
			return // once, whatever its values are
		}
		if field == "labels" && refusedValue(v) {
			report(v.at, fmt.Sprintf("%s is not set to a label value: at most %d letters, digits, -, _ and ., with a letter or digit at both ends",
				t.name(), validation.LabelValueMaxLength))
		}
	}
}

// labelOf tells whether a target is a label or an annotation of the object, or
// of an object within it that the server checks: that of a pod template.
func labelOf(t *target) (field, key string, ok bool) {
	n := len(t.path)
	if n < 3 || t.path[n-3] != "metadata" || t.path[n-2] != "labels" && t.path[n-2] != "annotations" {
		return "", "", false
	}
	field, key = t.path[n-2], t.path[n-1]
	return field, key, n == 3 || strings.HasSuffix(t.parent.id, ".ObjectMeta."+field)
}

// refusedKey says what is wrong with a key. One that is computed is not known.
func refusedKey(field, key string) string {
	what, checked := "a label", key
	if field == "annotations" {
		what, checked = "an annotation", strings.ToLower(key)
	}
	if key == "*" || len(validation.IsQualifiedName(checked)) == 0 {
		return ""
	}
	return fmt.Sprintf("%q is not the key of %s: NAME or PREFIX/NAME, the name of at most 63 letters, digits, -, _ and ., with a letter or digit at both ends, the prefix such as example.com", key, what)
}

var labelText = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// refusedValue reports whether a text is certainly no value of a label. Of one
// that is partly computed, what is written out tells.
func refusedValue(v *value) bool {
	if text, ok := v.text(); ok {
		return len(validation.IsValidLabelValue(text)) > 0
	}
	return v.kind == mixedText && slices.ContainsFunc(v.parts, func(p part) bool {
		return !p.computed && (len(p.text) > validation.LabelValueMaxLength || !labelText.MatchString(p.text))
	})
}
