package rules

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

var ruleSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := JSONSchema()
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("rule.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("rule.schema.json") // checks it against the meta-schema
})

// validate holds all rules of a file against the schema; it returns how many
// there are, and what is wrong with the first that does not fit.
func validate(t testing.TB, name string, data []byte) (int, error) {
	t.Helper()
	s, err := ruleSchema()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := yamldoc.Parse(name, data, yamldoc.Limits{})
	if err != nil {
		return 0, nil // not a matter of the schema
	}
	found := 0
	for _, doc := range docs {
		v, err := doc.Value()
		if err != nil {
			return found, nil
		}
		if m, ok := v.(map[string]any); !ok || m["kind"] != Kind {
			continue
		}
		found++
		if err := s.Validate(v); err != nil {
			return found, err
		}
	}
	return found, nil
}

// The schema that is checked in for editors is the one of these types.
func TestCheckedInSchema(t *testing.T) {
	const file = "../docs/rule.schema.json"
	got, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run: go test ./rules -run TestCheckedInSchema -update (-file +types):\n%s", diff)
	}
}

func TestRulesOfTheRepositoryFitTheSchema(t *testing.T) {
	found := 0
	for _, pattern := range []string{"builtin/*.yaml", "../examples/*/*.yaml", "../deploy/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n, err := validate(t, file, data)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			found += n
		}
	}
	for _, b := range blocks(t, "yaml") {
		if !regexp.MustCompile(`(?m)^kind: Rule$`).MatchString(b.text) {
			continue
		}
		n, err := validate(t, b.file, []byte(b.text))
		if err != nil {
			t.Errorf("%s:%d: %v", b.file, b.line, err)
		}
		found += n
	}
	if found < 15 {
		t.Errorf("only %d rules were found", found)
	}
}

// beyondShape are the files of testdata/bad with mistakes that a schema does not
// see: YAML, names that must be unique, CEL, pointers, selectors, and places
// that no rule may write.
var beyondShape = strings.Fields(`
	alias-bomb apply-data-number apply-identity apply-status apply-unknown-object-type bad cel-double-quoted cel-folded
	cel-has-on-an-index cel-in-a-key cel-in-a-template cel-in-a-variable cel-literal cel-nested-too-deep cel-now-as-a-function
	cel-plain-multi-line cel-several-issues cel-single-line cel-single-quoted cel-syntax-error condition-not-bool condition-optional duplicate-key
	event-list-in-message event-secret expression-empty glob-of-a-shell label-number label-number-computed label-number-json list-items list-of-rules
	lookup-computed lookup-patch-types lookup-reads-a-lookup lookup-reads-a-variable lookup-unknown-name
	lookup-unknown-name-in-a-patch not-a-rule-configmap not-a-rule-list not-a-rule-text not-a-rule-untyped now-without-recheck
	now-without-recheck-in-a-lookup now-without-recheck-in-a-patch pointer-leading-zero pointer-negative-index pointer-raw-slash
	protected-apiversion protected-kind-namespace protected-metadata-null protected-name protected-uid recheck-too-short
	resource-is-singular resource-is-singular-y same-name same-name-one-broken same-name-three-times scale-outside selector-bad-glob
	selector-bad-key selector-field-dotted-key selector-field-leading-dot selector-field-no-path selector-field-set status-outside tab
	template-cut-by-colon template-cut-by-comment template-in-a-flow-map template-list-in-text template-unclosed
	yaml-bracket-first yaml-quoted-first yaml-quoted-first-in-a-flow-map yaml-sign-first yaml11-keys-beside-templates yaml11-keys-of-data
`)

// Every bad file is refused by the schema, or said to be beyond it.
func TestBadFilesDoNotFitTheSchema(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.*")
	if err != nil {
		t.Fatal(err)
	}
	var beyond []string
	for _, file := range files {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if _, err := validate(t, file, source(t, file).Data); err == nil {
			beyond = append(beyond, name)
		}
	}
	slices.Sort(beyond)
	if diff := cmp.Diff(beyondShape, beyond); diff != "" {
		t.Errorf("files that fit the schema (-expected +found):\n%s", diff)
	}
}

func TestSchemaOfAFieldThatNobodyDescribes(t *testing.T) {
	type unknown struct {
		Field string `json:"field"`
	}
	f := schemaFormat
	f.Document = reflect.TypeFor[unknown]()
	if _, err := f.Text(); err == nil || err.Error() != "the schema does not describe unknown.field" {
		t.Errorf("got %v", err)
	}
}
