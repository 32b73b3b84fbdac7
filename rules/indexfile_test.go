package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rectifier-dev/rectifier/rules/expression"
)

// guardConditions are conditions that ask each question there is, with %s for a value.
var guardConditions = map[string][]string{
	"presence":   {"has(object.spec.a)", "'a' in object.spec", "object.spec.?a.hasValue()", "'a' in object.spec.a"},
	"absence":    {"!has(object.spec.a)", "!('a' in object.spec)", "!object.spec.?a.hasValue()", "!('a' in object.spec.a)"},
	"oneOf":      {"object.spec.a == %s", "object.spec.a in [%s]", "object.spec.?a.orValue(%[1]s) == %[1]s"},
	"noneOf":     {"object.spec.a != %s", "!(object.spec.a in [%s])", "object.spec.?a.orValue(%[1]s) != %[1]s"},
	"comparison": {"object.spec.a %[2]s %[1]s", "!(%s %s object.spec.a)", "object.spec.?a.orValue(%[1]s) %[2]s %[1]s"},
	"textRelation": {
		"object.spec.a.%[2]s(%[1]s)", "!object.spec.a.%[2]s(%[1]s)", "object.spec.?a.orValue(%[1]s).%[2]s(%[1]s)",
	},
}

// guardOperators are the relations there are, by the operator or function of CEL.
var guardOperators = map[string]string{
	"less": "<", "lessOrEqual": "<=", "greater": ">", "greaterOrEqual": ">=", "begins": "startsWith", "ends": "endsWith", "holds": "contains",
}

// guardLiterals are constants of each kind that CEL has, with the kinds that Constant
// gives for them; nil: it gives none.
var guardLiterals = map[string]any{
	"'m'": "m", "3": int64(3), "3u": uint64(3), "2.5": 2.5, "true": true, "false": false, "null": nil, "b'm'": nil, "[1]": nil,
	"{'a': 1}": nil, "duration('1s')": nil, "timestamp('2026-01-01T00:00:00Z')": nil, "type(1)": nil, "optional.none()": nil,
}

// guardValues are what may stand at a place, of each kind.
var guardValues = []any{
	"", "a", "m", "am", "ma", "z", int64(2), int64(3), int64(4), 2.0, 2.5, 3.0, true, false, nil,
	[]any{}, []any{"a"}, []any{"b", int64(1)}, map[string]any{}, map[string]any{"a": "m"}, map[string]any{"b": nil},
}

// constantsOf lists the constants of a type of this package, in their order, as the
// source has them: a block that begins with one of the type.
func constantsOf(t *testing.T, typeName string) (out []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			block, ok := d.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			of := ""
			for _, spec := range block.Specs {
				spec, _ := spec.(*ast.ValueSpec)
				if is, ok := spec.Type.(*ast.Ident); ok {
					of = is.Name
				}
				for _, name := range spec.Names {
					if of == typeName {
						out = append(out, name.Name)
					}
				}
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no constant of type %s is found", typeName)
	}
	return out
}

// indexOf is an index of one rule with the guards.
func indexOf(guards ...guard) *Index {
	x := &Index{rules: make([]*Rule, 1), words: 1}
	x.always, x.withoutSecond = x.none(), x.none()
	x.file(0, guards)
	return x
}

// finds reports whether the places of an index lead to its one rule.
func (x *Index) finds(object map[string]any) bool {
	e := &evaluation{}
	e.begin(&Input{Object: object})
	s := x.find(e)
	return s.candidates[0] != 0
}

// specs are objects with each value at object.spec.a, and without one.
func specs() []map[string]any {
	out := []map[string]any{{"spec": map[string]any{}}}
	for _, v := range guardValues {
		out = append(out, map[string]any{"spec": map[string]any{"a": v}})
	}
	return out
}

// Whatever a condition asks, its guards are filed, and the rule is found wherever the
// condition is not false.
func TestEveryQuestionIsFiledAndFound(t *testing.T) {
	questions, operators := constantsOf(t, "question"), constantsOf(t, "relation")
	asked, related, kinds := map[question]bool{}, map[relation]bool{}, map[string]bool{}
	for _, name := range questions {
		if len(guardConditions[name]) == 0 {
			t.Errorf("guardConditions has none that asks for %s", name)
		}
		for _, form := range guardConditions[name] {
			for _, condition := range spelled(form, operators) {
				for _, g := range checkCondition(t, condition) {
					asked[g.asks], related[g.relation] = true, true
					for _, v := range g.values {
						kinds[fmt.Sprintf("%s %T", questions[g.asks], v)] = true
					}
				}
			}
		}
	}
	for q, name := range questions {
		if !asked[question(q)] {
			t.Errorf("no condition has a guard that asks for %s", name)
		}
	}
	for r, name := range operators {
		if !related[relation(r+1)] {
			t.Errorf("no condition has a guard with the relation %s: is it in guardOperators?", name)
		}
	}
	// What guard.values says.
	for kind := range strings.SplitSeq("oneOf string,oneOf int64,oneOf bool,noneOf string,noneOf int64,noneOf bool,comparison string,comparison int64,comparison float64,textRelation string", ",") {
		if !kinds[kind] {
			t.Errorf("no condition has a guard of the kind: %s", kind)
		}
		delete(kinds, kind)
	}
	for kind := range kinds {
		t.Errorf("a guard has values of a kind that is not documented: %s", kind)
	}
}

// spelled puts each operator and each literal into a condition.
func spelled(form string, operators []string) (out []string) {
	if !strings.Contains(form, "%") {
		return []string{form}
	}
	for literal := range guardLiterals {
		if !strings.Contains(form, "%[2]s") && strings.Count(form, "%s") < 2 {
			out = append(out, fmt.Sprintf(form, literal))
			continue
		}
		for _, name := range operators {
			out = append(out, fmt.Sprintf(form, literal, guardOperators[name]))
		}
	}
	return out
}

// checkCondition holds an index of one rule to its condition, and returns the guards of
// that; none if CEL does not have such a condition.
func checkCondition(t *testing.T, condition string) []guard {
	t.Helper()
	text := rule("r", fmt.Sprintf("condition: %q\n\tpatch: {merge: {spec: {seen: true}}}", condition))
	set, _ := Load(Source{Name: "r.yaml", Data: []byte(text)})
	if len(set.All()) == 0 {
		return nil
	}
	guards := conditionGuards(set.All()[0], 2)
	for _, g := range guards {
		if x := indexOf(g); x.always[0] != 0 {
			t.Errorf("%s: its guard is not filed: question %d, relation %d, values %v", condition, g.asks, g.relation, g.values)
		}
	}
	x := NewIndex(set.All())
	for _, object := range specs() {
		in := Input{Object: object, Resource: set.Resources()[0]}
		if v := Evaluate(set.All(), in).Verdicts; len(v) > 0 && x.Candidates(in) == 0 {
			t.Errorf("%s on %v: it is passed over, but it gives: %v %v", condition, object["spec"], v[0].Outcome, v[0].Err)
		}
	}
	return guards
}

// A guard of any kind, one that no condition has and one that an index knows nothing of
// among them, keeps no rule from an object that it is not false of: be it the first
// guard of the rule or the second.
func TestNoGuardDropsARule(t *testing.T) {
	literals := []any{nil, struct{}{}, []any{"m"}}
	for literal, want := range guardLiterals {
		got := valueOf(t, literal)
		if got != want {
			t.Errorf("%s is the constant %v, want %v", literal, got, want)
		}
		literals = append(literals, got)
	}
	path := []step{{"spec", true}, {"a", true}}
	known := guard{asks: presence, path: path[:1]}
	objects, filed, unfiled := specs(), 0, 0
	for asks := range question(len(constantsOf(t, "question")) + 1) {
		for r := range relation(len(constantsOf(t, "relation")) + 2) {
			for _, v := range literals {
				for flags := range 8 {
					g := guard{path: slices.Clone(path), asks: asks, relation: r, values: []any{v}, not: flags&1 > 0, element: flags&2 > 0}
					if asks == absence {
						unsafe(g.path)
					}
					if flags&4 > 0 {
						g.values = []any{v, "m"}
					}
					first, second := indexOf(g), indexOf(known, g)
					if first.always[0] == 0 {
						filed++
					} else {
						unfiled++
					}
					for _, object := range objects {
						spec, _ := object["spec"].(map[string]any)
						if g.isFalseOf(spec) {
							continue
						}
						if !first.finds(object) || !second.finds(object) {
							t.Fatalf("on %v, the rule with this guard is not found: question %d, relation %d, values %v, not %v, element %v", spec, g.asks, g.relation, g.values, g.not, g.element)
						}
					}
				}
			}
		}
	}
	if filed < 100 || unfiled < 100 {
		t.Errorf("of %d guards an index knows %d: this tests too little", filed+unfiled, filed)
	}
}

// isFalseOf reports whether the guard is known to be false of object.spec, where it asks
// about a.
func (g *guard) isFalseOf(spec map[string]any) bool {
	v, there := spec["a"]
	switch {
	case g.asks == presence:
		return !there
	case g.asks == absence:
		return there
	case !there: // the steps are safe; what nobody knows is not
		return indexOf(*g).always[0] == 0
	case g.asks == oneOf:
		return !slices.ContainsFunc(g.values, func(wanted any) bool { return mayEqual(v, wanted) })
	case g.asks == noneOf:
		return slices.ContainsFunc(g.values, func(other any) bool { return reflect.DeepEqual(v, other) })
	}
	return g.isFalse(v)
}

// mayEqual reports whether a value is equal to a constant, or it is an error to ask.
func mayEqual(v, constant any) bool {
	x, isNumber := double(v)
	y, areNumbers := double(constant)
	_, isBool := v.(bool)
	_, wantsBool := constant.(bool)
	return reflect.DeepEqual(v, constant) || isNumber && areNumbers && x == y || wantsBool && !isBool
}

// valueOf is what Constant gives for an expression.
func valueOf(t *testing.T, source string) any {
	t.Helper()
	p, issues := expression.NewEnv().Compile(source)
	if len(issues) > 0 {
		t.Fatalf("%s: %s", source, issues[0].Msg)
	}
	v, _ := p.Syntax().Constant()
	return v
}
