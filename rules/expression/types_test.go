package expression

import (
	"strings"
	"testing"
)

// What a type may be used for, known before evaluation.
func TestUsesOfTypes(t *testing.T) {
	uses := []struct {
		name string
		may  func(Type) bool
	}{
		{"bool", Type.MayBeBool}, {"text", Type.MayBeText}, {"string", Type.MayBeString}, {"scalars", Type.MayBeScalars},
		{"mapping", Type.MayBeMapping}, {"mappings", Type.MayBeMappings}, {"no-string", Type.NeverString}, {"optional", Type.Optional},
	}
	for source, want := range map[string]string{
		"true":                        "bool text scalars no-string",
		"1":                           "text scalars no-string",
		"'a'":                         "text string scalars",
		"now":                         "text string scalars no-string",
		"b'a'":                        "string scalars no-string",
		"null":                        "no-string",
		"['a']":                       "scalars no-string",
		"[[1]]":                       "no-string",
		"[{'a': 1}]":                  "mappings no-string",
		"[]":                          "scalars mappings no-string",
		"{'a': 1}":                    "mapping no-string",
		"Object{}":                    "mapping no-string",
		"object":                      "bool text string scalars mapping mappings",
		"[object]":                    "scalars mappings no-string",
		"object.spec.?replicas":       "text scalars no-string optional",
		"object.spec.?ratio":          "text string scalars mapping mappings optional",
		"object.spec.?ports":          "mappings no-string optional",
		"optional.of(true)":           "text scalars no-string optional",
		"object.spec":                 "mapping no-string",
		"object.spec.?labels.?tier":   "text string scalars mapping mappings optional",
		"object.spec.ports.map(p, p)": "mappings no-string",
	} {
		typ := check(t, source).Type
		if source == "object" || source == "[object]" || source == "object.spec.?labels.?tier" {
			typ = compileType(t, source)
		}
		var got []string
		for _, use := range uses {
			if use.may(typ) {
				got = append(got, use.name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s (%s) may be %s, not %s", source, typ.Spell(), strings.Join(got, " "), want)
		}
	}
}

// compileType is the type of an expression where nothing is known of the object.
func compileType(t *testing.T, source string) Type {
	t.Helper()
	env, err := NewEnv().Declare("object", Dyn)
	if err != nil {
		t.Fatal(err)
	}
	p, issues := env.Compile(source)
	if issues != nil {
		t.Fatalf("%s: %v", source, issues[0])
	}
	return p.Result()
}
