package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/internal/strictyaml"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/expression"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// block is a fenced block of a Markdown file.
type block struct {
	file string
	line int
	text string
}

// blocks returns all blocks of one language in docs.
func blocks(t *testing.T, language string) []block {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var out []block
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var open *block
		for i, line := range strings.Split(string(data), "\n") {
			fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
			switch {
			case isFence && open != nil:
				out = append(out, *open)
				open = nil
			case isFence:
				open = &block{file: filepath.Base(file) + ":" + fence, line: i + 2}
			case open != nil:
				open.text += line + "\n"
			}
		}
	}
	var wanted []block
	for _, b := range out {
		if name, found := strings.CutSuffix(b.file, ":"+language); found {
			b.file = name
			wanted = append(wanted, b)
		}
	}
	return wanted
}

func TestRulesInTheDocsLoad(t *testing.T) {
	found := 0
	for _, b := range blocks(t, "yaml") {
		if !regexp.MustCompile(`(?m)^kind: Rule$`).MatchString(b.text) {
			continue
		}
		found++
		// Empty lines in front: positions are those in the file.
		set, problems := Load(Source{Name: b.file, Data: []byte(strings.Repeat("\n", b.line-1) + b.text)})
		for _, p := range problems {
			t.Errorf("%s", p.Detail())
		}
		if len(problems) == 0 && len(set.All()) == 0 {
			t.Errorf("%s:%d: no rule", b.file, b.line)
		}
		// On an object that has nothing, a rule may fail; it may not panic.
		evaluateInput(t, set.All(), Input{Object: map[string]any{"metadata": map[string]any{"name": "x"}}, ReplicasPath: []string{"spec", "replicas"}})
	}
	if found < 5 {
		t.Errorf("only %d rules were found", found)
	}
}

// A cel block holds snippets with empty lines between them. A snippet is an
// expression; a first line `// {…}` is the object to evaluate it on, a last
// line `// → …` the result, or the error.
func TestExpressionsInTheDocsGiveWhatTheySay(t *testing.T) {
	found := 0
	for _, b := range blocks(t, "cel") {
		for _, snippet := range strings.Split(b.text, "\n\n") {
			found++
			t.Run(fmt.Sprintf("%s:%d/%d", b.file, b.line, found), func(t *testing.T) { checkSnippet(t, snippet) })
		}
	}
	if found < 20 {
		t.Errorf("only %d expressions were found", found)
	}
}

type objectAndNow map[string]any

func (o objectAndNow) Resolve(name string) (any, error) {
	if name == nowName {
		return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), nil
	}
	return map[string]any(o), nil
}

func checkSnippet(t *testing.T, snippet string) {
	var on, want string
	var source []string
	for _, line := range strings.Split(strings.TrimSpace(snippet), "\n") {
		if s, ok := strings.CutPrefix(line, "// → "); ok {
			want = s
		} else if s, ok := strings.CutPrefix(line, "// {"); ok {
			on = "{" + s
		} else {
			source = append(source, line)
		}
	}
	env, err := expression.NewEnv().Declare("object", expression.Dyn)
	if err != nil {
		t.Fatal(err)
	}
	if env, err = env.Declare(nowName, expression.Timestamp); err != nil {
		t.Fatal(err)
	}
	program, issues := env.Compile(strings.Join(source, "\n"))
	if len(issues) > 0 {
		t.Fatalf("%s\n%s", snippet, issues[0].Msg)
	}
	if on == "" {
		return
	}
	var got any
	value, err := program.Eval(objectAndNow(object(t, on)))
	if err == nil {
		got, err = value.Native()
	}
	if text, isError := strings.CutPrefix(want, "error: "); isError || err != nil {
		if err == nil || !isError || !strings.Contains(err.Error(), text) {
			t.Errorf("%s\ngives %v, error %v", snippet, got, err)
		}
		return
	}
	docs, err := yamldoc.Parse("want", []byte(want), yamldoc.Limits{})
	if err != nil || len(docs) != 1 {
		t.Fatalf("%q: %v", want, err)
	}
	expected, err := docs[0].Value()
	if err != nil {
		t.Fatal(err)
	}
	if !patch.Equal(expected, got) {
		t.Errorf("%s (-want +got):\n%s", snippet, cmp.Diff(expected, got))
	}
}

// isLeaf reports whether a type reads its node itself.
func isLeaf(typ reflect.Type) bool {
	leaf, instead := schemaLeaf(typ)
	return leaf != nil || instead != nil
}

// docs/rules.md explains every field of the format.
func TestDocsNameEveryField(t *testing.T) {
	data, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || isLeaf(typ) {
			return
		}
		fields, names := strictyaml.Fields(typ)
		for _, name := range names {
			if !regexp.MustCompile("[`.]" + name + "\\b|\\b" + name + ":").Match(data) {
				t.Errorf("docs/rules.md does not explain %s", name)
			}
			walk(fields[name].Type)
		}
	}
	walk(reflect.TypeFor[document]())
}
