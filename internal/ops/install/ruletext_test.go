package install

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oddTexts are what YAML or JSON could read as something else: line breaks of
// Unicode, marks of byte order, controls, quotes, what looks like a document.
var oddTexts = map[string]string{
	"next line":           "a\u0085# b",
	"line separator":      "a\u2028# b\u2029# c",
	"byte order mark":     "a\ufeffb",
	"spaces":              "a\u00a0b\u3000c\u200bd  ",
	"beyond 16 bits":      "\U0001f6a2 \U0010fffd",
	"replacement":         "\ufffd",
	"quotes":              `'a' "b" \n \\ \u0085 %q %!s(int=1) <a> & {{ .Values }} ${x}`,
	"tabs":                "a\tb\t",
	"letters":             "Ärger, 規則, правило",
	"letters with a mark": "e\u0301 \u05d0\u05d1",
}

// moreOddTexts are no YAML that the command would take; the chart gets them only
// from values that somebody else made, where they are escaped.
var moreOddTexts = map[string]string{
	"carriage return": "a\r\nb\rc\r\n",
	"controls":        "a\u007f\u0001\u001b\u0080\u009fb",
	"nul":             "a\u0000b",
	"not characters":  "\ufffe\uffff",
	"document":        "a\n---\nb: c\n...\n# Source: x\n",
	"only breaks":     "\n\n \u0085\n",
}

// What is in a rule file is in the ConfigMap, byte for byte: rbac.digest is made
// of the file, and would not tell the difference.
func TestRuleFilesStayAsTheyAre(t *testing.T) {
	for name, odd := range oddTexts {
		t.Run(name, func(t *testing.T) {
			text := labelRule("fixed") + "# " + odd + "\n"
			values, _ := fragment(t, map[string]string{"team.yaml": text}, "")
			wantRuleFile(t, values, text)
		})
	}
	for _, texts := range []map[string]string{oddTexts, moreOddTexts} {
		for name, odd := range texts {
			t.Run(name+" in values", func(t *testing.T) {
				wantRuleFile(t, "{rules: {team.yaml: "+strconv.QuoteToASCII(odd)+"}, rbac: {create: false}}", odd)
			})
		}
	}
}

func wantRuleFile(t *testing.T, values, text string) {
	t.Helper()
	// Not by into, which reads YAML a second time.
	got := render(t, values, "")["ConfigMap/rectifier-rules"].Object["data"]
	if diff := cmp.Diff(map[string]any{"team.yaml": text}, got); diff != "" {
		t.Errorf("ConfigMap (-file +chart):\n%s", diff)
	}
}

// The notes show what the pods look at, not more.
func TestNotesNameTheScope(t *testing.T) {
	for _, tc := range []struct{ values, want string }{
		{"{}", "rectifier diff --cluster --rules rules/ --exclude-namespace 'kube-system'"},
		{"{builtin: [], existingConfigMap: r, namespaces: [team-a, team-b], excludeNamespaces: [kube-*, team-b], rbac: {create: false}}",
			"rectifier diff --cluster --rules rules/ --builtin none --namespace team-a,team-b --exclude-namespace 'kube-*,team-b'"},
		{"{excludeNamespaces: []}", "rectifier diff --cluster --rules rules/"},
	} {
		out := newShell(t).mustWith(tc.values, "helm install "+release+" deploy/chart --namespace "+release+" --dry-run=client --values -")
		if !strings.Contains(out, "\n   "+tc.want+"\n") {
			t.Errorf("%s: the notes do not say\n%s\n%s", tc.values, tc.want, out[strings.Index(out, "NOTES:"):])
		}
	}
}
