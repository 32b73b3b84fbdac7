package lint

import (
	"context"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/rules/expression"
)

// builtinShapes are all objects in the schemas of the built-in kinds, by the
// name of their definition.
func builtinShapes(t *testing.T) map[string][]*shape {
	t.Helper()
	out, seen := map[string][]*shape{}, map[string]bool{}
	var visit func(*shape)
	visit = func(s *shape) {
		switch s.kind {
		case expression.ListShape, expression.MapShape:
			visit(s.element())
		case expression.ObjectShape:
			if seen[s.id] {
				return
			}
			seen[s.id] = true
			out[s.name] = append(out[s.name], s)
			for _, name := range s.Fields() {
				visit(s.field(name))
			}
		}
	}
	for _, gvk := range openapi.BuiltinKinds() {
		typ, err := openapi.Builtin().Type(context.Background(), gvk)
		if err != nil {
			t.Fatal(err)
		}
		root, err := rootShape(typ)
		if err != nil {
			t.Fatal(err)
		}
		visit(root)
	}
	return out
}

func TestBuiltinEnumsAreOfFieldsThatExist(t *testing.T) {
	shapes := builtinShapes(t)
	if len(shapes) < 300 {
		t.Fatalf("%d definitions only", len(shapes))
	}
	for key, words := range builtinEnums {
		definition, field, _ := strings.Cut(key, ".")
		found := 0
		for _, s := range shapes[definition] {
			if f := s.field(field); f != nil {
				found++
				if strings.Join(f.Enum(), " ") != words {
					t.Errorf("%s.%s has the words %q", s.id, field, f.Enum())
				}
			}
		}
		if found == 0 {
			t.Errorf("there is no %s", key)
		}
	}
	if got := builtinEnum("example.io.v1.ServiceSpec.type"); got != nil {
		t.Errorf("a custom resource has the words %q", got)
	}
}
