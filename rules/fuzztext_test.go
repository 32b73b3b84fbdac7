package rules_test

import (
	"encoding/json"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rectifier-dev/rectifier/rules"
)

func quoted(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string can be written
	}
	return string(data)
}

// Any text, where a template may stand: as a value, a key and a message. With its
// ${ doubled it is what it is; as it is, it compiles or is refused at a place.
func FuzzTemplates(f *testing.F) {
	for _, text := range []string{
		"", "x", "${1}", "a${object.metadata.name}b", "$${a}", "$$${a}", "${", "${'}'}", "${{'a': 1}}", "${'${'}", "${\"\\\"}\"}", "${r'\\'}", "${'''a'b'''}", "}${}",
		"${object.?x}", "${null}", "${1", "${/*}*/1}", "${1 // }\n}", "\u2028${1}", "${\u00e9}", "${b'\\xff'}", "${[1,2].map(x, x)}", "$", "$${", "${'$${'}", "${timestamp(0)}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 10_000 {
			return
		}
		in := inventInput(t, seeded(1))
		escaped := strings.ReplaceAll(text, "${", "$${")
		// A key is a name, and the text may be one that YAML, or the loader, will not have.
		set, problems := loadText(rule("r", "patch: {merge: {spec: {text: "+quoted(escaped)+"}}}\n\tevent: {message: "+quoted("m "+escaped)+"}"))
		if len(problems) == 0 {
			res := rules.Evaluate(set.All(), in)
			if got, _ := res.Object["spec"].(map[string]any)["text"].(string); got != text {
				t.Errorf("%q was written as %q and became %q", text, escaped, got)
			}
		} else if !strings.ContainsFunc(text, unprintable) {
			t.Errorf("%q is refused: %v", escaped, problems[0])
		}
		set, problems = loadText(rule("r", "patch: {merge: {spec: {a: "+quoted(text)+", "+quoted(text)+": b, l: ["+quoted(text)+"]}, metadata: {labels: {x: "+quoted(text)+"}}}}\n\tevent: {message: "+quoted(text)+"}"))
		for _, p := range problems {
			if p.Detail() == "" || p.Pos.Line < 1 || p.Pos.Column < 1 {
				t.Errorf("problem %+v", p)
			}
		}
		checkEvaluation(t, set.All(), in)
	})
}

// unprintable finds what YAML does not take, even quoted.
func unprintable(r rune) bool {
	return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0xfffe
}

// Any pattern and selector: what loads matches as its library says.
func FuzzMatch(f *testing.F) {
	f.Add("w*", "a=x", "spec.a=1")
	f.Add("[a-", "!a,b in (x,y)", "spec.a!=")
	f.Add("\\", "a notin (x", "metadata.name==web,spec.paused!=true")
	f.Add("[^w]*", "a", "..=")
	f.Fuzz(func(t *testing.T, glob, selector, field string) {
		in := inventInput(t, seeded(2))
		meta := in.Object["metadata"].(map[string]any)
		delete(meta, "deletionTimestamp")
		meta["labels"] = map[string]any{"a": "x"}
		const patch = "\n\tpatch: {merge: {spec: {matched: true}}}"
		matches := func(spec string) (hit, loaded bool) {
			set, _ := loadText(rule("r", spec+patch))
			checkEvaluation(t, set.All(), in)
			res := rules.Evaluate(set.All(), in)
			return len(res.Requests) > 0, len(set.All()) > 0
		}
		if hit, ok := matches("match: {names: [" + quoted(glob) + "]}"); ok {
			if want, err := path.Match(glob, meta["name"].(string)); hit != want || err != nil {
				t.Errorf("%q matches %v: %v, want %v, %v", glob, meta["name"], hit, want, err)
			}
		}
		if hit, ok := matches("match: {excludeNames: [" + quoted(glob) + "]}"); ok {
			if excluded, _ := path.Match(glob, meta["name"].(string)); hit == excluded {
				t.Errorf("%q excludes %v: %v, want %v", glob, meta["name"], !hit, excluded)
			}
		}
		key, value, _ := strings.Cut(selector, "=")
		if hit, ok := matches("match: {labelSelector: {matchLabels: {" + quoted(key) + ": " + quoted(value) + "}}}"); ok {
			if want := (labels.Set{"a": "x"}).Get(key) == value && (key == "a"); hit != want {
				t.Errorf("%q=%q selects: %v, want %v", key, value, hit, want)
			}
		}
		matches("match: {fieldSelector: " + quoted(field) + "}")
	})
}
