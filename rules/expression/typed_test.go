package expression

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testShape is a schema as the tests write it.
type testShape struct {
	kind   ShapeKind
	name   string
	elem   Shape
	fields map[string]Shape
	open   bool
	enum   []string
}

func (s testShape) Kind() ShapeKind  { return s.kind }
func (s testShape) ID() string       { return s.name }
func (s testShape) Name() string     { return s.name }
func (s testShape) Elem() Shape      { return s.elem }
func (s testShape) Fields() []string { return slices.Sorted(maps.Keys(s.fields)) }
func (s testShape) Enum() []string   { return s.enum }
func (s testShape) Field(name string) (Shape, bool) {
	if f, ok := s.fields[name]; ok {
		return f, true
	}
	return testShape{}, s.open
}

func listOf(elem Shape) Shape { return testShape{kind: ListShape, elem: elem} }
func mapOf(elem Shape) Shape  { return testShape{kind: MapShape, elem: elem} }
func object(name string, fields map[string]Shape) Shape {
	return testShape{kind: ObjectShape, name: name, fields: fields}
}

var (
	text    = testShape{kind: StringShape}
	integer = testShape{kind: IntShape}
	boolean = testShape{kind: BoolShape}

	port = object("Port", map[string]Shape{
		"name": text, "port": integer, "targetPort": testShape{kind: IntOrStringShape},
		"protocol": testShape{kind: StringShape, enum: []string{"TCP", "UDP"}},
	})
	spec = object("Spec", map[string]Shape{
		"replicas": integer, "paused": boolean, "ratio": testShape{kind: NumberShape}, "ports": listOf(port), "args": listOf(text),
		"strategy":     object("Strategy", map[string]Shape{"type": text}),
		"selector":     mapOf(text),
		"nodeSelector": mapOf(text),
		"limits":       mapOf(testShape{kind: QuantityShape}),
		"x-dash":       text,
		"namespace":    text,
		"anything":     testShape{kind: AnyShape},
		"open":         testShape{kind: ObjectShape, name: "Open", fields: map[string]Shape{"a": integer}, open: true},
	})
	deployment = object("Deployment", map[string]Shape{
		"metadata": object("ObjectMeta", map[string]Shape{
			"name": text, "namespace": text, "labels": mapOf(text), "annotations": mapOf(text), "creationTimestamp": text, "finalizers": listOf(text),
		}),
		"spec": spec, "status": object("Status", map[string]Shape{"replicas": integer, "conditions": listOf(object("Condition", map[string]Shape{"type": text}))}),
		"schema": testShape{kind: ObjectShape, name: "Tree", fields: map[string]Shape{"not": testShape{kind: ListShape, elem: recursive{}}}},
	})
)

// recursive refers to itself.
type recursive struct{ testShape }

func (recursive) Kind() ShapeKind  { return ObjectShape }
func (recursive) ID() string       { return "TreeNode" }
func (recursive) Name() string     { return "TreeNode" }
func (recursive) Fields() []string { return []string{"below", "value"} }
func (t recursive) Field(name string) (Shape, bool) {
	switch name {
	case "below":
		return t, true
	case "value":
		return integer, true
	}
	return nil, false
}

// check compiles an expression as a rule would, and checks it by the schema.
func check(t *testing.T, source string) Checked {
	t.Helper()
	env := NewEnv()
	checker, err := NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []struct {
		name  string
		t     Type
		typed Type
		shape Shape
	}{
		{"object", Dyn, checker.TypeOf(deployment), deployment},
		{"namespaceObject", Dyn, checker.TypeOf(nil), nil},
		{"now", Timestamp, Timestamp, nil},
		{"lookups.all", ListOfDyn, checker.ListOf(deployment), nil},
		{"lookups.others", ListOfDyn, checker.ListOf(spec), nil},
		{"variables.port", Dyn, Dyn, testShape{kind: IntOrStringShape}},
		{"variables.spec", Dyn, checker.TypeOf(spec), spec},
	} {
		if env, err = env.Declare(name.name, name.t); err != nil {
			t.Fatal(err)
		}
		if err := checker.Declare(name.name, name.typed, name.shape); err != nil {
			t.Fatal(err)
		}
	}
	env, err = env.WithPatchTypes()
	if err != nil {
		t.Fatal(err)
	}
	p, issues := env.Compile(source)
	if issues != nil {
		t.Fatalf("%s does not compile: %v", source, issues[0])
	}
	return checker.Check(p)
}

func TestCheckFinds(t *testing.T) {
	for _, tc := range []struct {
		source string
		want   string // with a caret where it is found
	}{
		{"object.spec.replcas != 3", "object.spec.^replcas != 3: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object.spec .\n  replcas != 3", "object.spec .\n  ^replcas != 3: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"'ä' == 'ö' || object.spec.replcas != 3", "'ä' == 'ö' || object.spec.^replcas != 3: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object['spec']['replcas'] != 3", "object['spec'][^'replcas'] != 3: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"has(object.spec.replcas)", "has(object.spec.^replcas): undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object.spec.?replcas.orValue(1) == 1", "object.spec.?^replcas.orValue(1) == 1: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object.?status.?replcas.orValue(1) == 1", "object.?status.?^replcas.orValue(1) == 1: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object.?status[?'replcas'].orValue(1) == 1", "object.?status[?^'replcas'].orValue(1) == 1: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object.?status.orValue({}).?replcas.orValue(1) == 1", "object.?status.orValue({}).?^replcas.orValue(1) == 1: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"(has(object.status) ? object.status : {}).?replcas.orValue(1) == 1", "(has(object.status) ? object.status : {}).?^replcas.orValue(1) == 1: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object.spec.ports.exists(p, p.protocl == 'TCP')", "object.spec.ports.exists(p, p.^protocl == 'TCP'): undefined field 'protocl' (did you mean 'protocol'?)"},
		{"object.spec.ports.transformList(i, p, p.prt)", "object.spec.ports.transformList(i, p, p.^prt): undefined field 'prt' (did you mean 'port'?)"},
		{"object.spec.ports[0].prt == 1", "object.spec.ports[0].^prt == 1: undefined field 'prt' (did you mean 'port'?)"},
		{"lookups.all.exists(d, d.spce.replicas == 1)", "lookups.all.exists(d, d.^spce.replicas == 1): undefined field 'spce' (did you mean 'spec'?)"},
		{"variables.spec.replcas == 1", "variables.spec.^replcas == 1: undefined field 'replcas' (did you mean 'replicas'?)"},
		{"object.schema.not[0].below.below.valu == 1", "object.schema.not[0].below.below.^valu == 1: undefined field 'valu' (did you mean 'value'?)"},
		{"object.spec.qqqqqqqqqq == 1", "object.spec.^qqqqqqqqqq == 1: undefined field 'qqqqqqqqqq' of Spec"},
		{"object.spec.replicas.count == 1", "object.spec.replicas.^count == 1: int has no field 'count'"},
		{"object.spec.ports.name == 'x'", "object.spec.ports.^name == 'x': list(Port) has no field 'name'"},
		{"object.spec.replicas == '3'", "object.spec.replicas ^== '3': int and string cannot be compared with ==: found no matching overload for '_==_' applied to '(int, string)'"},
		{"'3' != object.spec.replicas", "'3' ^!= object.spec.replicas: string and int cannot be compared with !=: found no matching overload for '_!=_' applied to '(string, int)'"},
		{"object.spec.replicas < '3'", "object.spec.replicas ^< '3': int and string cannot be compared with <: found no matching overload for '_<_' applied to '(int, string)'"},
		{"object.spec.strategy == 'Recreate'", "object.spec.strategy ^== 'Recreate': Strategy and string cannot be compared with ==: found no matching overload for '_==_' applied to '(Strategy, string)'"},
		{"object.spec.replicas + '3' == ''", "object.spec.replicas ^+ '3' == '': int and string cannot be combined with +: found no matching overload for '_+_' applied to '(int, string)'"},
		{"object.spec.replicas * 1.5 > 3.0", "object.spec.replicas ^* 1.5 > 3.0: int and double cannot be combined with *: found no matching overload for '_*_' applied to '(int, double)'"},
		{"object.metadata.creationTimestamp < now", "object.metadata.creationTimestamp ^< now: string and timestamp cannot be compared with <: found no matching overload for '_<_' applied to '(string, timestamp)'"},
		{"object.spec.replicas.startsWith('3')", "object.spec.replicas.^startsWith('3'): int has no function startsWith(string): found no matching overload for 'startsWith' applied to 'int.(string)'"},
		{"size(object.spec.replicas) > 3", "^size(object.spec.replicas) > 3: size does not take (int): found no matching overload for 'size' applied to '(int)'"},
		{"object.spec.replicas && true", "object.spec.^replicas && true: bool is needed on both sides of && and ||, but this is int"},
		{"object.spec.ports.filter(p, p.port).size() > 0", "object.spec.ports.filter^(p, p.port).size() > 0: the condition must be bool, not int: found no matching overload for '_?_:_' applied to '(int, list(Port), list(Port))'"},
		{"object.spec.replicas ? 1 : 2", "object.spec.replicas ^? 1 : 2: the condition must be bool, not int: found no matching overload for '_?_:_' applied to '(int, int, int)'"},
		{"object.spec.replicas.exists(r, r > 1)", "object.spec.^replicas.exists(r, r > 1): int cannot be iterated: a list or map is needed"},
		{"!object.spec.replicas", "^!object.spec.replicas: int cannot be negated with !: found no matching overload for '!_' applied to '(int)'"},
		{"3 in object.spec.args", "3 ^in object.spec.args: int cannot be in list(string): found no matching overload for '@in' applied to '(int, list(string))'"},
		{"object.spec.args['a'] == 'b'", "object.spec.args[^'a'] == 'b': list(string) has no field 'a'"},
		{"object.spec[0] == 1", "object.spec^[0] == 1: Spec cannot be indexed with int: found no matching overload for '_[_]' applied to '(Spec, int)'"},
		{"string(object.spec) == ''", "^string(object.spec) == '': string does not take (Spec): found no matching overload for 'string' applied to '(Spec)'"},
		{"Object{spec: Object.spec{replicas: object.spec.replcas}}", "Object{spec: Object.spec{replicas: object.spec.^replcas}}: undefined field 'replcas' (did you mean 'replicas'?)"},
	} {
		got := check(t, tc.source)
		var all []string
		for _, issue := range got.Issues {
			at := issue.Offset
			// The field of an index is found with its quote.
			all = append(all, tc.source[:at]+"^"+tc.source[at:]+": "+issue.Msg)
		}
		if len(all) != 1 || all[0] != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.source, strings.Join(all, "\n     "), tc.want)
		}
		if len(got.Issues) > 0 && got.Type != Dyn {
			t.Errorf("%s: the type of what is wrong is %s", tc.source, got.Type)
		}
	}
}

// What works on plain maps is not found, though CEL's checker refuses it.
func TestCheckLeavesAlone(t *testing.T) {
	for _, source := range []string{
		"object.spec.replicas == 3", "object.spec.replicas > 2.5", "object.spec.replicas == 3.0", "object.spec.ratio * 2.0 > 1.5", "object.spec.ratio * 2 > 1",
		"'replicas' in object.spec", "object.spec.exists(k, k == 'replicas')", "object.spec.all(k, v, k != 'x')", "size(object.spec) > 2", "object.spec.size() > 2",
		"object.spec == object.status", "object.spec != {}", "object == {'a': 1}", "object.spec['re' + 'plicas'] == 1", "object.spec[?'re' + 'plicas'].hasValue()",
		"object.?status.orValue({}).?replicas.orValue(0) == 0", "object.?status.orValue({'replicas': 1}).replicas == 0", "(true ? object.spec : object.status).replicas == 1",
		"object.spec.?replicas.orValue('none') == 'none'", "string(object.spec.?replicas.orValue('none')) == ''", "object.spec.?replicas.or(optional.of('x')).orValue('') == 'y'",
		"object.spec.replicas == null", "has(object.metadata.labels) && object.metadata.labels != null", "object.spec == null", "namespaceObject == null || namespaceObject.metadata.x == 1",
		"[object.spec, object.status, {}].size() == 3", "(lookups.all + lookups.others).map(o, o.?spec.replicas)", "lookups.all == []", "object in lookups.all", "object.spec in lookups.all",
		"object.spec.ports[0].targetPort == '80' || object.spec.ports[0].targetPort < 90", "object.spec.limits.cpu == '1' && quantity(string(object.spec.limits['cpu'])).isGreaterThan(quantity('1'))",
		"object.spec['x-dash'] == 'a'", "object.spec.namespace == 'a'", "object.spec[?'x-dash'].orValue('') == 'a'", "object.metadata.labels['a/b'] == 'c'", "object.metadata.?labels[?'a/b'].orValue('') == 'c'",
		"object.spec.anything.what.ever[3] == 'x'", "object.spec.open.b.c == 1 && object.spec.open.a == 1", "has(object.spec.open.zzz)",
		"timestamp(object.metadata.creationTimestamp) < now", "now - timestamp(object.metadata.creationTimestamp) > duration('1h')",
		"object.schema.not[0].below.below.value == 1", "object.spec.ports.map(p, p.name).join(',') == ''", "object.spec.ports.map(p, {'op': 'add', 'path': '/x', 'value': p.port})[0].value == 1",
		"object.spec.ports.exists(object, object.port == 1)", "[3].exists(variables, variables > 2)", "sets.contains(object.spec.args, ['a'])", "lists.range(object.spec.ports.size()).filter(i, object.spec.ports[i].port == 1)",
		"Object{spec: Object.spec{replicas: object.spec.replicas + 1, ports: [Object.spec.ports{port: 1}]}}", "[JSONPatch{op: 'add', path: '/spec/replicas', value: object.spec.replicas}]",
		"object.spec.?strategy.optMap(s, s.type).orValue('') == 'x'", "object.spec.ports.sortBy(p, p.port).map(p, p.name)", "object.spec.selector == object.metadata.labels", "type(object.spec.replicas) == int",
		"object.spec.args + object.metadata.finalizers == []", "object.spec.args + [1] == []", "1 in [object.spec.ratio]", "1.0 in [object.spec.replicas]", "dyn(object.spec).replcas == 1", "{'': 0}['a' + object.metadata.name] == 0",
		"object.spec.transformMap(k, v, v) == {}", "object.spec.ports.all(p, p in object.spec.ports)", "[{}, object.spec][0].replcas == 1",
	} {
		if got := check(t, source); len(got.Issues) > 0 {
			t.Errorf("%s: at %d %s", source, got.Issues[0].Offset, got.Issues[0].Msg)
		}
	}
}

func TestCheckedTypesAndShapes(t *testing.T) {
	for source, want := range map[string]string{
		"object.spec.replicas": "int", "object.spec.?replicas": "optional(int)", "object.spec.ports.map(p, p.name)": "list(string)", "object.spec": "Spec",
		"object.spec.ports.filter(p, p.port > 3)": "list(Port)", "object.metadata.labels": "map(string, string)", "object.spec.ratio": "dyn", "[]": "list(dyn)",
		"object.spec.replicas > 1 ? 'a' : object.spec.replicas": "dyn", "object.spec.replcas": "dyn",
	} {
		if got := spell(check(t, source).Type.cel); got != want {
			t.Errorf("%s is %s, not %s", source, got, want)
		}
	}
	for source, want := range map[string]ShapeKind{
		"object.spec.ports[0].targetPort": IntOrStringShape, "object.spec.limits.cpu": QuantityShape, "object.spec.?limits[?'cpu']": QuantityShape, "object.spec": ObjectShape,
		"object.spec.?ratio.orValue(0)": NumberShape,
	} {
		if got := check(t, source).Shape; got == nil || got.Kind() != want {
			t.Errorf("the shape of %s is %v", source, got)
		}
	}
	if got := check(t, "object.spec.replicas + 1").Shape; got != nil {
		t.Errorf("what is computed has the shape %v", got)
	}
}

func TestComparisons(t *testing.T) {
	for source, want := range map[string][]string{
		"object.spec.ports[0].targetPort == '80'":                    {"21 targetPort == [80]"},
		"80 > object.spec.ports[0].targetPort":                       {"26 targetPort > [80]"},
		"object.spec.ports.exists(p, p.targetPort in [80, '90'])":    {"30 targetPort in [80 90]"},
		"object.spec.?ports[?0].?protocol.orValue('TCP') == 'tcp'":   {"24 protocol == [tcp]"},
		"variables.port == 80":                                       {"0 variables.port == [80]"},
		"[object].exists(o, o.spec.replicas == 1)":                   {"26 replicas == [1]"},
		"object.spec.replicas == object.spec.replicas || 1 == 2":     nil,
		"object.spec.ports.exists(p, has(p.targetPort) == true)":     nil,
		"[1].exists(object, object == 80) || 'x' in ['a', 'b', 'c']": nil,
	} {
		var got []string
		for _, c := range check(t, source).Comparisons {
			var values []any
			for _, v := range c.Values {
				values = append(values, v.Value)
			}
			got = append(got, fmt.Sprintf("%d %s %s %v", c.Offset, c.Field, c.Operator, values))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

func TestMayFit(t *testing.T) {
	kinds := map[string]Shape{
		"any": testShape{}, "string": text, "int": integer, "bool": boolean, "number": testShape{kind: NumberShape}, "intOrString": testShape{kind: IntOrStringShape},
		"quantity": testShape{kind: QuantityShape}, "strings": listOf(text), "map": mapOf(text), "object": spec,
	}
	for source, want := range map[string]string{
		"1": "any int intOrString number quantity", "'a'": "any intOrString quantity string", "1.5": "any int intOrString number quantity", "true": "any bool", "['a']": "any strings", "[1]": "any",
		"[]": "any strings", "{}": "any map object", "{'a': 1}": "any object", "{'a': 'b'}": "any map object", "object": "any map object",
		"Object{}": "any map object", "now": "any intOrString quantity string", "namespaceObject": "any bool int intOrString map number object quantity string strings",
		"null": "any bool int intOrString map number object quantity string strings", "object.spec.?replicas": "any int intOrString number quantity", "[object.spec.ratio]": "any strings",
	} {
		var got []string
		for _, name := range slices.Sorted(maps.Keys(kinds)) {
			if check(t, source).Type.MayFit(kinds[name]) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s fits %s, not %s", source, got, want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	env, _ := NewEnv().Declare("object", Dyn)
	p, _ := env.Compile("object.spec.ports.exists(p, p.protocol == 'TCP' && p.port > 80) && object.?status.orValue({}).?replicas.orValue(0) == 0")
	for b.Loop() {
		c, err := NewChecker()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Declare("object", c.TypeOf(deployment), deployment); err != nil {
			b.Fatal(err)
		}
		if got := c.Check(p); len(got.Issues) > 0 {
			b.Fatal(got.Issues[0])
		}
	}
}

// Whatever compiles is checked, and what is found stands in the source.
func FuzzChecker(f *testing.F) {
	for _, source := range []string{
		"object.spec.replcas != 3", "has(object.spec) ? object.spec : {}", "object.spec.ports.map(p, p.prt)", "object['ä'].?b[?0].orValue(null) in [object]",
		"lookups.all.transformMap(i, o, o.spec.x)", "Object{spec: Object.spec{a: object.metadata}}", "[1, 'a', object].exists(o, o == object.spec)", "-object.spec.replicas", "object.spec.?ports[?0].optMap(p, p.x + 1)",
	} {
		f.Add(source)
	}
	env := NewEnv()
	for name, t := range map[string]Type{"object": Dyn, "lookups.all": ListOfDyn} {
		var err error
		if env, err = env.Declare(name, t); err != nil {
			f.Fatal(err)
		}
	}
	env, err := env.WithPatchTypes()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, issues := env.Compile(source)
		if issues != nil {
			return
		}
		c, err := NewChecker()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Declare("object", c.TypeOf(deployment), deployment), c.Declare("lookups.all", c.ListOf(deployment), nil)); err != nil {
			t.Fatal(err)
		}
		got := c.Check(p)
		for _, issue := range got.Issues {
			if issue.Offset < 0 || issue.Offset > len(source) || issue.Msg == "" {
				t.Errorf("%s: %+v", source, issue)
			}
		}
		if again := c.Check(p); len(again.Issues) != len(got.Issues) || again.Type.Spell() != got.Type.Spell() {
			t.Errorf("%s: a second check finds %d issues, not %d", source, len(again.Issues), len(got.Issues))
		}
	})
}
