package expression

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dump writes a tree as one line: each node with the text that follows its
// offset, up to eight characters.
func dump(n *Node, source string) string {
	what := n.Name
	switch {
	case n.Kind == Literal:
		what = fmt.Sprintf("%#v", n.Value)
	case n.Kind == Macro:
		what += "(" + strings.Join(n.Vars, ",") + ")"
	case n.Kind == Struct:
		what += "{" + strings.Join(n.Fields, ",") + "}"
	}
	if n.Optional {
		what += "?"
	}
	if n.Test {
		what += "!"
	}
	if n.Declared {
		what += "$"
	}
	at := source[n.Offset:]
	out := fmt.Sprintf("%s %s:%s@%q", n.Kind, what, n.Type, at[:min(len(at), 4)])
	var below []string
	for _, c := range n.Children() {
		below = append(below, dump(c, source))
	}
	if below != nil {
		out += " [" + strings.Join(below, ", ") + "]"
	}
	return out
}

func syntax(t *testing.T, source string) *Node {
	t.Helper()
	e, err := env(t, "object", "variables.expected", "now").WithPatchTypes()
	if err != nil {
		t.Fatal(err)
	}
	p, issues := e.Compile(source)
	if issues != nil {
		t.Fatalf("compile %s: %v", source, issues[0])
	}
	return p.Syntax()
}

func TestSyntax(t *testing.T) {
	for source, want := range map[string]string{
		`object.exists(object, .object == object)`: `macro exists(object):bool@"exis" [ident object$:dyn@"obje", call ==:bool@"== o" [ident object$:dyn@"obje", ident object:dyn@"obje"]]`,
		`object.spec.replicas`:                     `select replicas:dyn@"repl" [select spec:dyn@"spec" [ident object$:dyn@"obje"]]`,
		`object . ? spec`:                          `select spec?:optional_type(dyn)@"spec" [ident object$:dyn@"obje"]`,
		`has(object.spec)`:                         `select spec!:bool@"has(" [ident object$:dyn@"obje"]`,
		`object["é"].b`:                            `select b:dyn@"b" [index :dyn@"[\"é" [ident object$:dyn@"obje", literal "é":string@"\"é\""]]`,
		`object[?1]`:                               `index ?:dyn@"[?1]" [ident object$:dyn@"obje", literal 1:int@"1]"]`,
		`variables.expected+1`:                     `call +:int@"+1" [ident variables.expected$:dyn@"vari", literal 1:int@"1"]`,
		`size(object) > 0u`:                        `call >:bool@"> 0u" [call size:int@"size" [ident object$:dyn@"obje"], literal 0x0:uint@"0u"]`,
		`!('a' in object)`:                         `call !:bool@"!('a" [call in:bool@"in o" [literal "a":string@"'a' ", ident object$:dyn@"obje"]]`,
		`-object`:                                  `call -:dyn@"-obj" [ident object$:dyn@"obje"]`,
		`type(object) == int`:                      `call ==:bool@"== i" [call type:type(dyn)@"type" [ident object$:dyn@"obje"], ident int:type(int)@"int"]`,
		`sets.contains([1], [])`:                   `call sets.contains:bool@"cont" [list :list(int)@"[1]," [literal 1:int@"1], "], list :list(int)@"[])"]`,
		`object.matches('a')`:                      `call matches:bool@"matc" [ident object$:dyn@"obje", literal "a":string@"'a')"]`,
		`{'a': object}`:                            `map :map(string, dyn)@"{'a'" [literal "a":string@"'a':", ident object$:dyn@"obje"]`,
		`Object{spec: Object.spec{a: 1}}`:          `struct Object{spec}:Object@"{spe" [struct Object.spec{a}:Object.spec@"{a: " [literal 1:int@"1}}"]]`,

		`object.all(c, c.x)`:                           `macro all(c):bool@"all(" [ident object$:dyn@"obje", select x:dyn@"x)" [ident c:dyn@"c.x)"]]`,
		`[1].map(x, x > 0, [x].exists(y, y == x))`:     `macro map(x):list(bool)@"map(" [list :list(int)@"[1]." [literal 1:int@"1].m"], call >:bool@"> 0," [ident x:int@"x > ", literal 0:int@"0, ["], macro exists(y):bool@"exis" [list :list(int)@"[x]." [ident x:int@"x].e"], call ==:bool@"== x" [ident y:int@"y ==", ident x:int@"x))"]]]`,
		`object.transformMap(k, v, v + 1)`:             `macro transformMap(k,v):map(dyn, int)@"tran" [ident object$:dyn@"obje", call +:int@"+ 1)" [ident v:dyn@"v + ", literal 1:int@"1)"]]`,
		`object.exists(i, v, v.a)`:                     `macro exists(i,v):bool@"exis" [ident object$:dyn@"obje", select a:dyn@"a)" [ident v:dyn@"v.a)"]]`,
		`object.?a.optMap(a, a.b)`:                     `macro optMap(a):optional_type(dyn)@"optM" [select a?:optional_type(dyn)@"a.op" [ident object$:dyn@"obje"], select b:dyn@"b)" [ident a:dyn@"a.b)"]]`,
		`[object].sortBy(e, e.n)[0]`:                   `index :dyn@"[0]" [macro sortBy(e):list(dyn)@"sort" [list :list(dyn)@"[obj" [ident object$:dyn@"obje"], select n:dyn@"n)[0" [ident e:dyn@"e.n)"]], literal 0:int@"0]"]`,
		`has(object.a) ? object.?b.hasValue() : false`: `call ?::bool@"? ob" [select a!:bool@"has(" [ident object$:dyn@"obje"], call hasValue:bool@"hasV" [select b?:optional_type(dyn)@"b.ha" [ident object$:dyn@"obje"]], literal false:bool@"fals"]`,
	} {
		if diff := cmp.Diff(want, dump(syntax(t, source), source)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

// Each part of an expression is found, whatever macros the parser replaces.
func TestSyntaxKeepsOffsetsWithinTheSource(t *testing.T) {
	source := "'é' in object && object['ü']\n  .exists(c, has(c.x)) // done"
	n := syntax(t, source)
	var got []string
	n.Walk(func(n *Node) bool {
		got = append(got, source[n.Start:][:1]+source[n.Offset:][:1])
		return n.Kind != Macro
	})
	if diff := cmp.Diff([]string{"'&", "'i", "''", "oo", "oe"}, got); diff != "" {
		t.Errorf("starts and offsets (-want +got):\n%s", diff)
	}
}

func TestOperands(t *testing.T) {
	n := syntax(t, "object.a && object.b && (object.c || object.d) && object.e && object.f")
	var got []string
	for _, o := range n.Operands("&&") {
		got = append(got, o.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "||", "e", "f"}, got); diff != "" {
		t.Error(diff)
	}
	if one := n.Operands("||"); len(one) != 1 || one[0] != n {
		t.Errorf("a chain of && is no chain of ||: %v", one)
	}
}

func TestPath(t *testing.T) {
	for source, want := range map[string]string{
		"object.metadata.?labels['a/b']":  "object/metadata/labels/a/b",
		"has(object.spec.a)":              "object/spec/a",
		"variables.expected.x":            "variables.expected/x",
		"object.a[0].b":                   "/b", // a list: the path begins below it
		"object.a.map(x, x.b)[0]['c']":    "/c",
		"object.spec.?a[?'b'].orValue(1)": "orValue",
	} {
		root, path := syntax(t, source).Path()
		if got := strings.Join(append([]string{root.Name}, path...), "/"); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
