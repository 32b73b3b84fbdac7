package ruletest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

var testSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := JSONSchema()
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("ruletest.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("ruletest.schema.json") // checks it against the meta-schema
})

// validate holds all tests of a file against the schema; it returns how many
// there are, and what is wrong with the first that does not fit.
func validate(t testing.TB, name string, data []byte) (int, error) {
	t.Helper()
	s, err := testSchema()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := yamldoc.Parse(name, data, limits)
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
	const file = "../../docs/ruletest.schema.json"
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
		t.Errorf("run: go test ./rules/ruletest -run TestCheckedInSchema -update (-file +types):\n%s", diff)
	}
}

func TestTestsOfTheRepositoryFitTheSchema(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found, err := validate(t, "valid", []byte(valid))
	if err != nil {
		t.Error(err)
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
	if found < 20 {
		t.Errorf("only %d tests were found", found)
	}
}

// beyondShape are the files of testdata/bad with mistakes that a schema does not
// see: YAML, other kinds, names that must be unique, pointers, times, regular
// expressions.
var beyondShape = strings.Fields(`
	alias-of-itself bad-operation bad-pointer big-number empty misspelled-kind no-test same-case-twice same-test-twice syntax
	yaml-words-and-numbers
`)

// Every bad file is refused by the schema, or said to be beyond it.
func TestBadFilesDoNotFitTheSchema(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var beyond []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := validate(t, file, data); err == nil {
			beyond = append(beyond, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		}
	}
	slices.Sort(beyond)
	if diff := cmp.Diff(beyondShape, beyond); diff != "" {
		t.Errorf("files that fit the schema (-expected +found):\n%s", diff)
	}
}
