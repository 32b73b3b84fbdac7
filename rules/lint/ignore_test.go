package lint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/lint"
)

func TestIgnore(t *testing.T) {
	const head = "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: r}\nspec:\n  resource: {group: apps, version: v1, resource: deployments}\n"
	const patch = "  patch: {merge: {metadata: {labels: {a: b}}}}\n"
	comment := "# rectifier:ignore optional-field it is always there"
	for _, tc := range []struct {
		name, text string
		want       []string // line: ID, or line: message
		ignored    int
	}{
		{"no comment", head + "  condition: object.spec.replicas == 1\n" + patch, []string{"6: optional-field"}, 0},
		{"at the end of the line", head + "  condition: object.spec.replicas == 1 " + comment + "\n" + patch, nil, 1},
		{"above the line", head + "  " + comment + "\n  condition: object.spec.replicas == 1\n" + patch, nil, 1},
		{"above other comments", head + "  " + comment + "\n  # Another one.\n  #\n  condition: object.spec.replicas == 1\n" + patch, nil, 1},
		{"above the key of a block", head + "  " + comment + "\n  condition: >-\n    object.spec.?paused.hasValue() &&\n\n    object.spec.replicas == 1\n" + patch, nil, 1},
		{"behind the mark of a block", head + "  condition: >- " + comment + "\n    object.spec.?paused.hasValue() &&\n    object.spec.replicas == 1\n" + patch, nil, 1},
		{"above the key of a quoted text", head + "  " + comment + "\n  condition: \"object.spec.?paused.hasValue() &&\n    object.spec.replicas == 1\"\n" + patch, nil, 1},
		{"above an item of a list", head + "  variables:\n    " + comment + "\n    - {name: replicas, expression: object.spec.replicas}\n  condition: variables.replicas == 1\n" + patch, nil, 1},
		{"above the rule", comment + "\n" + head + "  condition: object.spec.replicas == 1\n" + patch, nil, 1},
		{"above the rule and an empty line", comment + "\n\n# More.\n" + head + "  condition: object.spec.replicas == 1\n" + patch, nil, 1},
		{"above the marker of the document", comment + "\n---\n" + head + "  condition: object.spec.replicas == 1\n" + patch, nil, 1},
		{"of the document before", "# nothing\n---\n" + comment + "\n" + head + "  condition: object.spec.replicas == 1\n" + patch +
			"---\n" + strings.Replace(head, "name: r", "name: s", 1) + "  condition: object.spec.replicas == 1\n" + patch, []string{"17: optional-field"}, 1},
		{"of a List", comment + "\napiVersion: v1\nkind: List\nitems:\n- " + indent(head+"  condition: object.spec.replicas == 1\n"+patch) +
			"- " + indent(strings.Replace(head, "name: r", "name: s", 1)+"  condition: object.spec.replicas == 1\n"+patch), nil, 2},
		{"of an item of a List", "apiVersion: v1\nkind: List\nitems:\n" + comment + "\n- " + indent(head+"  condition: object.spec.replicas == 1\n"+patch) +
			"- " + indent(strings.Replace(head, "name: r", "name: s", 1)+"  condition: object.spec.replicas == 1\n"+patch), []string{"17: optional-field"}, 1},
		{"Windows line ends", strings.ReplaceAll("\ufeff"+head+"  "+comment+"\n  condition: object.spec.replicas == 1\n"+patch, "\n", "\r\n"), nil, 1},
		{"two on one line", head + "  # rectifier:ignore constant-condition on purpose\n  " + comment + "\n  condition: object.spec.replicas == 1 && true\n" + patch, nil, 2},

		{"two lines above", head + "  " + comment + "\n\n  condition: object.spec.replicas == 1\n" + patch, []string{"6: ignore-comment", "8: optional-field"}, 0},
		{"at the end of the line above", strings.TrimSuffix(head, "\n") + " " + comment + "\n  condition: object.spec.replicas == 1\n" + patch, []string{"5: ignore-comment", "6: optional-field"}, 0},
		{"another check", head + "  # rectifier:ignore cost it is small\n  condition: object.spec.replicas == 1\n" + patch, []string{"6: ignore-comment", "7: optional-field"}, 0},
		{"in a block: it is text", head + "  event:\n    message: |\n      " + comment + "\n  condition: object.spec.replicas == 1\n" + patch, []string{"9: optional-field"}, 0},
		{"in a quoted text", head + "  description: 'x " + comment + "'\n  condition: object.spec.replicas == 1\n" + patch, []string{"7: optional-field"}, 0},
		{"in CEL", head + "  condition: |-\n    object.spec.replicas == 1 // " + comment + "\n" + patch, []string{"7: optional-field"}, 0},
		{"of a rule that does not load", head + "  " + comment + "\n  condition: object.spec.replicas ==\n" + patch, []string{"7: cel-compile"}, 0},
		{"in the middle of a word", head + "  description: a#rectifier:ignore\n  condition: object.spec.?replicas == optional.of(1)\n" + patch, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report := lint.Run(knowing(t, ""), rules.Source{Name: "f.yaml", Data: []byte(tc.text)})
			var got []string
			for _, f := range report.Findings {
				got = append(got, strings.Split(f.Problem.Pos.String(), ":")[1]+": "+f.Check.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || report.Ignored != tc.ignored {
				t.Errorf("%d ignored, want %d (-want +got):\n%s\n%s", report.Ignored, tc.ignored, diff, tc.text)
			}
		})
	}
}

func indent(s string) string {
	return strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ") + "\n"
}

// What is wrong with a comment is told, and nothing is silenced.
func TestCommentsThatIgnoreNothing(t *testing.T) {
	for comment, want := range map[string]string{
		"# rectifier:ignore":                              "which check is to be ignored, and why? write # rectifier:ignore ID reason",
		"# rectifier:ignore optional-field":               "why is optional-field to be ignored? write # rectifier:ignore ID reason",
		"# rectifier:ignore optional-feld because":        `there is no check "optional-feld" (did you mean "optional-field"?): write # rectifier:ignore ID reason`,
		"# rectifier:ignore all of it":                    `there is no check "all": write # rectifier:ignore ID reason`,
		"# rectifier:ignore cel-compile it works":         "cel-compile cannot be ignored: what it finds keeps a rule from being used at all",
		"# rectifier:ignore ignore-comment quiet":         "ignore-comment cannot be ignored: remove the comment that has no effect",
		"# rectifier:ignore event-rule there is none":     "there is nothing to ignore: event-rule finds nothing on this line",
		"# rectifier: ignore optional-field yes":          "this looks like a comment that silences lint, but is none: write # rectifier:ignore ID reason",
		"#rectifier-ignore optional-field yes":            "this looks like a comment that silences lint, but is none: write # rectifier:ignore ID reason",
		"# rectifier:ignore: optional-field yes":          "this looks like a comment that silences lint, but is none: write # rectifier:ignore ID reason",
		"# rectifier:ignored things are not meant here":   "",
		"# see rectifier:ignore optional-field elsewhere": "",
	} {
		spec := comment + "\nresource: {version: v1, resource: pods}\npatch: {merge: {metadata: {labels: {a: b}}}}"
		var wanted []string
		if want != "" {
			wanted = []string{"5:3: " + want + " [ignore-comment]"}
		}
		if diff := cmp.Diff(wanted, found(lint.Run(knowing(t, ""), rule(spec)), "ignore-comment")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", comment, diff)
		}
	}
}
