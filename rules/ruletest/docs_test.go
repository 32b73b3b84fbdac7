package ruletest

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/internal/input"
	"github.com/rectifier-dev/rectifier/internal/strictyaml"
)

func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The tests in docs/testing.md are read, and fit the schema. internal/doctest
// runs them.
func TestTestsInTheDocs(t *testing.T) {
	found := 0
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(page(t), -1) {
		if !strings.Contains(m[1], "\nkind: RuleTest\n") {
			continue
		}
		found++
		f := parse(input.File{Name: "docs/testing.md", Data: []byte(m[1])})
		for _, p := range f.Problems {
			t.Errorf("%s\nin:\n%s", p.Detail(), m[1])
		}
		if _, err := validate(t, "docs/testing.md", []byte(m[1])); err != nil || len(f.Tests) != 1 {
			t.Errorf("%d tests, %v in:\n%s", len(f.Tests), err, m[1])
		}
	}
	if found < 4 {
		t.Errorf("only %d tests were found", found)
	}
}

// docs/testing.md explains every field of the format, and its skeleton shows it.
func TestDocsNameEveryField(t *testing.T) {
	text := page(t)
	_, whole, _ := strings.Cut(text, "<!-- whole -->")
	whole, _, _ = strings.Cut(whole, "\n```\n")
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		leaf, _ := schemaFormat.Leaf(typ)
		if typ.Kind() != reflect.Struct || leaf != nil {
			return
		}
		fields, names := strictyaml.Fields(typ)
		for _, name := range names {
			if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "."+name+"`") {
				t.Errorf("docs/testing.md does not explain %s", name)
			}
			if typ != reflect.TypeFor[metadata]() && !strings.Contains(whole, name+":") {
				t.Errorf("the whole of a test does not show %s", name)
			}
			walk(fields[name].Type)
		}
	}
	walk(reflect.TypeFor[document]())
}
