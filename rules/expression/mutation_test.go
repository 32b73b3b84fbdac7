package expression

import (
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

func patchEnv(t *testing.T, declared ...string) *Env {
	t.Helper()
	e, err := env(t, declared...).WithPatchTypes()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func evalPatch(t *testing.T, source string, in names) (any, error) {
	t.Helper()
	declared := make([]string, 0, len(in))
	for name := range in {
		declared = append(declared, name)
	}
	p, issues := patchEnv(t, declared...).Compile(source)
	if issues != nil {
		t.Fatalf("compile %s: %v", source, issues[0])
	}
	v, err := p.Eval(in)
	if err != nil {
		return nil, err
	}
	return v.Native()
}

type (
	m = map[string]any
	l = []any
)

// mutations are expressions of the kinds that policies have, here and upstream.
var mutations = []struct {
	name, source string
	object       m
	want         any
}{
	{
		"a sidecar by applyConfiguration",
		`Object{spec: Object.spec{initContainers: [Object.spec.initContainers{
			name: "proxy", image: "mesh/proxy:v1", args: ["run", "--sidecar"], restartPolicy: "Always"}]}}`,
		nil,
		m{"spec": m{"initContainers": l{m{"name": "proxy", "image": "mesh/proxy:v1", "args": l{"run", "--sidecar"}, "restartPolicy": "Always"}}}},
	},
	{
		"a sidecar by JSONPatch, where there is no list yet",
		`has(object.spec.initContainers)
			? [JSONPatch{op: "add", path: "/spec/initContainers/-", value: Object.spec.initContainers{name: "proxy", restartPolicy: "Always"}}]
			: [JSONPatch{op: "add", path: "/spec/initContainers", value: [Object.spec.initContainers{name: "proxy", restartPolicy: "Always"}]}]`,
		m{"spec": m{}},
		l{m{"op": "add", "path": "/spec/initContainers", "value": l{m{"name": "proxy", "restartPolicy": "Always"}}}},
	},
	{
		"a sidecar by JSONPatch, appended",
		`has(object.spec.initContainers)
			? [JSONPatch{op: "add", path: "/spec/initContainers/-", value: Object.spec.initContainers{name: "proxy"}}]
			: [JSONPatch{op: "add", path: "/spec/initContainers", value: [Object.spec.initContainers{name: "proxy"}]}]`,
		m{"spec": m{"initContainers": l{}}},
		l{m{"op": "add", "path": "/spec/initContainers/-", "value": m{"name": "proxy"}}},
	},
	{
		"a label by JSONPatch, its key escaped",
		`[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/env"), value: "test"}]`,
		nil,
		l{m{"op": "add", "path": "/metadata/labels/example.com~1env", "value": "test"}},
	},
	{
		"test, then replace",
		`[JSONPatch{op: "test", path: "/spec/color", value: "Red"}, JSONPatch{op: "replace", path: "/spec/color", value: "Green"}]`,
		nil,
		l{m{"op": "test", "path": "/spec/color", "value": "Red"}, m{"op": "replace", "path": "/spec/color", "value": "Green"}},
	},
	{
		"a map of labels",
		`Object{metadata: Object.metadata{labels: {"tier": "web", "team": object.metadata.namespace}}}`,
		m{"metadata": m{"namespace": "shop"}},
		m{"metadata": m{"labels": m{"tier": "web", "team": "shop"}}},
	},
	{
		"default requests over all containers",
		`Object{spec: Object.spec{containers: object.spec.containers.filter(c, !has(c.resources)).map(c,
			Object.spec.containers{name: c.name, resources: Object.spec.containers.resources{requests: {"cpu": "100m", "memory": "64Mi"}}})}}`,
		m{"spec": m{"containers": l{m{"name": "a"}, m{"name": "b", "resources": m{}}, m{"name": "c"}}}},
		m{"spec": m{"containers": l{
			m{"name": "a", "resources": m{"requests": m{"cpu": "100m", "memory": "64Mi"}}},
			m{"name": "c", "resources": m{"requests": m{"cpu": "100m", "memory": "64Mi"}}},
		}}},
	},
	{
		"a size limit on every emptyDir",
		`Object{spec: Object.spec{volumes: object.spec.volumes.filter(v, has(v.emptyDir)).map(v,
			Object.spec.volumes{name: v.name, emptyDir: Object.spec.volumes.emptyDir{sizeLimit: "1Gi"}})}}`,
		m{"spec": m{"volumes": l{m{"name": "a", "emptyDir": m{}}, m{"name": "b"}}}},
		m{"spec": m{"volumes": l{m{"name": "a", "emptyDir": m{"sizeLimit": "1Gi"}}}}},
	},
	{
		"hosts rewritten in an Ingress",
		`object.spec.rules.transformList(i, r, r.host.endsWith(".old"),
			JSONPatch{op: "replace", path: "/spec/rules/" + string(i) + "/host", value: r.host.replace(".old", ".new")})`,
		m{"spec": m{"rules": l{m{"host": "a.new"}, m{"host": "b.old"}}}},
		l{m{"op": "replace", "path": "/spec/rules/1/host", "value": "b.new"}},
	},
	{
		"a TTL on Jobs, only where none is set",
		`Object{spec: Object.spec{?ttlSecondsAfterFinished: has(object.spec.ttlSecondsAfterFinished) ? optional.none() : optional.of(600)}}`,
		m{"spec": m{}},
		m{"spec": m{"ttlSecondsAfterFinished": int64(600)}},
	},
	{
		"an optional field that is absent",
		`Object{?spec: object.?spec.?none.optMap(x, Object.spec{}), metadata: Object.metadata{?labels: object.?nope}}`,
		m{"spec": m{}},
		m{"metadata": m{}},
	},
	{
		"tolerations",
		`Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "gpu", operator: "Exists", tolerationSeconds: 9007199254740993}]}}`,
		nil,
		m{"spec": m{"tolerations": l{m{"key": "gpu", "operator": "Exists", "tolerationSeconds": int64(9007199254740993)}}}},
	},
	{"an empty object", `Object{}`, nil, m{}},
	{"move and copy", `[JSONPatch{op: "move", from: "/a", path: "/b"}, JSONPatch{op: "copy", from: "/b", path: "/c"}, JSONPatch{op: "remove", path: "/c"}]`, nil,
		l{m{"op": "move", "from": "/a", "path": "/b"}, m{"op": "copy", "from": "/b", "path": "/c"}, m{"op": "remove", "path": "/c"}}},
	{"no operation", `object.spec.x == 1 ? [JSONPatch{op: "remove", path: "/spec/x"}] : []`, m{"spec": m{"x": int64(2)}}, l{}},
}

func TestMutationsComeOutAsWritten(t *testing.T) {
	for _, tc := range mutations {
		t.Run(tc.name, func(t *testing.T) {
			got, err := evalPatch(t, tc.source, names{"object": tc.object})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Upstream's own conversion gets these wrong, or refuses them.
func TestMutationsThatUpstreamCannotConvert(t *testing.T) {
	for _, tc := range []struct {
		name, source string
		want         any
	}{
		{"null stays null", `Object{spec: Object.spec{replicas: null}}`, m{"spec": m{"replicas": nil}}},
		{"null as the value of an operation", `[JSONPatch{op: "add", path: "/x", value: null}]`, l{m{"op": "add", "path": "/x", "value": nil}}},
		{"maps in lists of maps", `Object{spec: Object.spec{l: [{"m": [{"k": null, "n": {"d": 1.5}}]}]}}`, m{"spec": m{"l": l{m{"m": l{m{"k": nil, "n": m{"d": 1.5}}}}}}}},
		{"objects in lists in maps", `Object{spec: Object.spec{m: {"k": [Object.spec.m{a: 1}]}}}`, m{"spec": m{"m": m{"k": l{m{"a": int64(1)}}}}}},
		{"whole doubles", `Object{spec: Object.spec{n: 3.0}}`, m{"spec": m{"n": int64(3)}}},
		{"an empty pointer is a pointer", `[JSONPatch{op: "test", path: "", value: {}}]`, l{m{"op": "test", "path": "", "value": m{}}}},
		{"an absent value drops its field", `Object{spec: Object.spec{a: optional.none(), b: [optional.none(), optional.of(1)]}}`, m{"spec": m{"b": l{int64(1)}}}},
		{"an optional object", `optional.of(Object{a: 1})`, m{"a": int64(1)}},
		{"a part of an object", `Object.spec{replicas: 3}`, m{"replicas": int64(3)}},
		{"fields are read", `[Object{n: [1, 2]}.n.sum(), has(Object{}.n) ? 1 : 0, Object{}.?n.orValue(7), dyn(Object{n: 4})["n"], has(dyn(Object{n: 4}).n) ? 1 : 0, JSONPatch{op: "add"}.op == "add" ? 1 : 0]`, l{int64(3), int64(0), int64(7), int64(4), int64(1), int64(1)}},
		{"equality", `[Object{a: 1} == Object{a: 1}, Object{a: 1} == Object{a: 2}, Object{a: 1} == Object{}, Object{a: null} == Object{b: null}, dyn(Object{}) == dyn(JSONPatch{})]`, l{true, false, false, false, false}},
		{"zero values", `[optional.ofNonZeroValue(Object{}).hasValue(), optional.ofNonZeroValue(Object{a: 0}).hasValue()]`, l{false, true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := evalPatch(t, tc.source, names{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchTypesAreChecked(t *testing.T) {
	for _, tc := range []struct{ source, want string }{
		{`Invalid{}`, "undeclared reference to 'Invalid'"},
		{`JSONPatch{op: 1, path: "/x"}`, "expected type of field 'op' is 'string' but provided type is 'int'"},
		{`JSONPatch{op: "add", path: "/x", value: Invalid{}}`, "undeclared reference to 'Invalid'"},
		{`JSONPatch{op: "add", pth: "/x"}`, "undefined field 'pth'"},
	} {
		if _, issues := patchEnv(t).Compile(tc.source); len(issues) == 0 || !strings.Contains(issues[0].Msg, tc.want) {
			t.Errorf("%s: %v, want %q", tc.source, issues, tc.want)
		}
	}
	if _, issues := NewEnv().Compile(`Object{}`); issues == nil {
		t.Error("Object{} compiles where no patch is computed")
	}
}

// misplacedTypes are type names that do not say where in the object they are,
// or do.
var misplacedTypes = []struct {
	source string
	ok     bool
}{
	{`Object{metadata: Object.spec{}}`, false},
	{`Object{spec: Object.spec{selector: Object.spec.wrong{}}}`, false},
	{`Object{spec: Object.spec{l: [Object.spec.l{}, Object.spec.x{}]}}`, false},
	{`Object{spec: Object.spec{l: [Object.spec.l.item{}]}}`, false},
	{`Object{spec: Object.spec{m: {"k": Object.spec.k{}}}}`, false},
	{`Object{spec: Object.spec{m: {"k": Object.spec.m{}}}}`, true},
	{`Object{spec: Object.spec{l: [1].map(x, Object.spec.x{})}}`, false},
	{`Object{spec: Object.spec{l: [1].map(x, Object.spec.l{})}}`, true},
	{`Object{spec: Object{}}`, false},
	{`Object.spec{a: Object.spec.a{}}`, true},
}

func TestTypeNamesSayWhereTheyStand(t *testing.T) {
	for _, tc := range misplacedTypes {
		for _, source := range []string{tc.source, `[JSONPatch{op: "add", path: "/x", value: ` + tc.source + `}]`} {
			_, err := evalPatch(t, source, names{})
			if tc.ok && err != nil || !tc.ok && (err == nil || !strings.Contains(err.Error(), "unexpected type name")) {
				t.Errorf("%s: %v", source, err)
			}
		}
	}
}

func TestDynamicMembersOfOperationsAreStrings(t *testing.T) {
	_, err := evalPatch(t, `[JSONPatch{op: object.op, path: "/x"}]`, names{"object": m{"op": int64(1)}})
	if err == nil || !strings.Contains(err.Error(), "op of a JSONPatch is int") {
		t.Errorf("got %v", err)
	}
}

// TestPatchTypesAgreeWithUpstream compiles and evaluates the same with
// upstream's types, wherever those can be converted.
func TestPatchTypesAgreeWithUpstream(t *testing.T) {
	upstream, err := base().Extend(cel.Variable("object", cel.DynType), common.ResolverEnvOption(&mutation.DynamicTypeResolver{}))
	if err != nil {
		t.Fatal(err)
	}
	run := func(source string, object m) ref.Val {
		checked, iss := upstream.Compile(source)
		if iss.Err() != nil {
			t.Fatalf("%s: %v", source, iss.Err())
		}
		p, err := upstream.Program(checked)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := p.Eval(m{"object": object})
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		return out
	}
	for _, tc := range mutations {
		if diff := cmp.Diff(tc.want, upstreamNative(run(tc.source, tc.object))); diff != "" {
			t.Errorf("%s: upstream (-ours +theirs):\n%s", tc.name, diff)
		}
	}
	for _, tc := range misplacedTypes {
		err := run(tc.source, nil).(*dynamic.ObjectVal).CheckTypeNamesMatchFieldPathNames()
		if (err == nil) != tc.ok {
			t.Errorf("%s: upstream says %v", tc.source, err)
		}
	}
}

// upstreamNative converts what upstream's patchers make of a result.
func upstreamNative(v ref.Val) any {
	switch v := v.(type) {
	case *dynamic.ObjectVal:
		return clean(v.Value())
	case *mutation.JSONPatchVal:
		op := m{"op": v.Op, "path": v.Path}
		if v.From != "" {
			op["from"] = v.From
		}
		if v.Val != nil {
			op["value"] = upstreamNative(v.Val)
		}
		return op
	case traits.Lister:
		out := l{}
		for it := v.Iterator(); it.HasNext().Value() == true; {
			out = append(out, upstreamNative(it.Next()))
		}
		return out
	}
	return v.Value()
}

// clean makes up for lists that upstream leaves as CEL's or nil.
func clean(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = clean(x)
		}
	case []any:
		for i, x := range v {
			v[i] = clean(x)
		}
	case []ref.Val:
		out := l{}
		for _, x := range v {
			out = append(out, upstreamNative(x))
		}
		return out
	}
	return v
}

func TestPatchTypesLiveWithNames(t *testing.T) {
	e := patchEnv(t, "object")
	e, err := e.Declare("variables.labels", Dyn) // declared afterwards
	if err != nil {
		t.Fatal(err)
	}
	p, issues := e.Compile(`Object{metadata: Object.metadata{labels: variables.labels, name: object.name}}`)
	if issues != nil {
		t.Fatal(issues[0])
	}
	if p.Result().String() != Object.String() {
		t.Errorf("the result is %s", p.Result())
	}
	v, err := p.Eval(names{"object": m{"name": "x"}, "variables.labels": m{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Native()
	if diff := cmp.Diff(m{"metadata": m{"labels": m{"a": "b"}, "name": "x"}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestDeclaredTypes(t *testing.T) {
	e := NewEnv()
	for name, typ := range map[string]Type{"now": Timestamp, "lookups.pods": ListOfDyn, "flag": Bool} {
		var err error
		if e, err = e.Declare(name, typ); err != nil {
			t.Fatal(err)
		}
	}
	p, issues := e.Compile(`flag && now - duration("1h") > timestamp(lookups.pods[0].created) && now.getFullYear() == 2026 && lookups.pods.size() == 1`)
	if issues != nil {
		t.Fatal(issues[0])
	}
	v, err := p.Eval(names{
		"flag": true, "now": time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC),
		"lookups.pods": l{m{"created": "2026-05-01T00:00:00Z"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := v.Bool(); err != nil || !b {
		t.Errorf("%v, %v", b, err)
	}
	for source, want := range map[string]string{
		`now == "2026"`:         "no matching overload",
		`lookups.pods.foo == 1`: "does not support field selection",
		`flag + 1`:              "no matching overload",
	} {
		if _, issues := e.Compile(source); len(issues) == 0 || !strings.Contains(issues[0].Msg, want) {
			t.Errorf("%s: %v, want %q", source, issues, want)
		}
	}
	if p, issues = e.Compile(`string(now)`); issues != nil {
		t.Fatal(issues[0])
	}
	v, err = p.Eval(names{"now": time.Date(2026, 5, 1, 2, 0, 0, 0, time.FixedZone("", 3600))})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := v.Text(); err != nil || s != "2026-05-01T01:00:00Z" {
		t.Errorf("%q, %v: a time of any zone is the same instant", s, err)
	}
}
