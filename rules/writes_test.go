package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// written lists what a rule can change: "/status merge status.a = 1 at a: 1,
// b: ", with the text that Pos points to.
func written(r *Rule, text string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	for _, w := range r.Writes() {
		s := fmt.Sprintf("%s %s", w.Kind, w.Field())
		if w.Subresource != "" {
			s = fmt.Sprintf("/%s %s", w.Subresource, s)
		}
		switch {
		case w.Removes:
			s += " removed"
		case w.Constant:
			s += fmt.Sprintf(" = %v", w.Value)
		case w.Exact:
			s += " = …"
		}
		if text != "" {
			at := lines[w.Pos.Line-1][w.Pos.Column-1:]
			s += " at " + at[:min(8, len(at))]
		}
		out = append(out, s)
	}
	return out
}

func TestWrites(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{"a merge", "patch: {merge: {spec: {a: 1, b: null, c: {}, d: [1], e: \"x${object.x}\"}}}", []string{
			"merge spec.a = 1 at a: 1, b:",
			"merge spec.b removed at b: null,",
			"merge spec.c at c: {}, d",
			"merge spec.d = [1] at d: [1], ",
			`merge spec.e = … at e: "x${o`,
		}},
		{"keys that are no identifiers", "patch: {merge: {metadata: {labels: {a.io/b: x}}}}", []string{
			"merge metadata.labels['a.io/b'] = x at a.io/b: ",
		}},
		{"a computed key", "patch: {merge: {metadata: {labels: {a: x, \"${object.x}\": z}}}}", []string{
			`merge metadata.labels.a = x at a: x, "$`,
			`merge metadata.labels at "${objec`,
		}},
		{"a computed value", "patch: {merge: {spec: {a: \"${object.x}\"}}}", []string{
			`merge spec.a = … at a: "${ob`,
		}},
		{"a computed map", "patch: {merge: {spec: \"${{'a': 1, 'b': {'c': object.x}, object.k: 1}}\"}}", []string{
			"merge spec.a = 1 at 1, 'b': ",
			"merge spec.b.c = … at object.x",
			`merge spec at spec: "$`,
		}},
		{"a computed patch", "patch: {merge: \"${object.x ? {'a': null} : dyn({'b': object.y})}\"}", []string{
			"merge a = … at null} : ",
			"merge b = … at object.y",
		}},
		{"a computed patch that does not tell", "patch: {merge: \"${object.x}\"}", []string{
			"merge the whole object at object.x",
		}},
		{"a patch of a variable", "variables: [{name: v, expression: \"{'spec': {'a': 1}}\"}]\n\tpatch: {merge: \"${variables.v}\"}", []string{
			`merge spec.a = 1 at 1}}"}]`,
		}},
		{"an Object", "patch: {merge: \"${Object{spec: Object.spec{a: 1, b: Object.spec.b{}}}}\"}", []string{
			"merge spec.a = 1 at 1, b: Ob",
			`merge spec.b at {}}}}"}`,
		}},
		{"a configuration", "patch: {applyConfiguration: {spec: {a: 1, l: [{name: x}]}}}", []string{
			"applyConfiguration spec.a = 1 at a: 1, l:",
			"applyConfiguration spec.l[*].name at name: x}",
		}},
		{"status and scale", "patches:\n\t- {subresource: status, merge: {status: {a: 1}}}\n\t- {subresource: scale, json: [{op: replace, path: /spec/replicas, value: 3}]}", []string{
			"/status merge status.a = 1 at a: 1}}}",
			"/scale json spec.replicas = 3 at /spec/re",
		}},
		{"operations", "patch: {json: [{op: add, path: /a/b, value: {c: 1}}, {op: test, path: /x, value: 1}, {op: remove, path: /c~1d}, {op: move, from: /e, path: /f}, {op: copy, from: /g, path: /h}]}", []string{
			"json a.b = map[c:1] at /a/b, va",
			"json ['c/d'] removed at /c~1d}, ",
			"json f = … at /f}, {op",
			"json e removed at /e, path",
			"json h = … at /h}]}",
		}},
		{"operations on lists", "patch: {json: [{op: add, path: /l/-, value: 1}, {op: remove, path: /l/0/x}]}", []string{
			"json l at /l/-, va",
			"json l[*].x at /l/0/x}]",
		}},
		{"an operation with CEL", "patch: {json: [{op: add, path: \"/a/b/${object.x}/c\", value: 1}, {op: \"${object.op}\", path: /d, value: 1}]}", []string{
			`json a.b[*].c at "/a/b/${`,
			"json d = … at /d, valu",
		}},
		{"a path of nothing but CEL", "patch: {json: [{op: add, path: \"${object.x}\", value: 1}]}", []string{
			`json the whole object at "${objec`,
		}},
		{"computed operations", "patch: {json: \"${[{'op': 'add', 'path': '/a', 'value': 1}, JSONPatch{op: 'remove', path: '/b/0'}]}\"}", []string{
			"json a = … at '/a', 'v",
			"json b at '/b/0'}]",
		}},
		{"operations of a list", "patch: {json: \"${object.l.map(x, {'op': 'add', 'path': '/a/' + x, 'value': 1})}\"}", []string{
			"json a at '/a/' + ",
		}},
		{"an operation that a variable makes", "variables: [{name: v, expression: \"object.l.transformList(i, x, x.y, {'op': 'add', 'path': '/l/' + string(i) + '/z', 'value': 1})\"}]\n\tpatches: [{json: \"${variables.v}\"}]", []string{
			"json l[*].z at '/l/' + ",
		}},
		{"paths that are elements of a list", "variables: [{name: v, expression: \"object.l.map(x, '/a/b' + x).filter(p, p != '/a/bc')\"}]\n\tpatch: {json: \"${variables.v.map(p, {'op': 'remove', 'path': p})}\"}", []string{
			`json a at p})}"}`,
		}},
		{"operations in lists in a list", "patch: {json: \"${object.l.map(i, [JSONPatch{op: 'test', path: '/x', value: 1}, JSONPatch{op: 'remove', path: '/a/' + string(i)}]).flatten()}\"}", []string{
			"json a at '/a/' + ",
		}},
		{"operations that do not tell", "patch: {json: \"${object.ops}\"}", []string{
			`json the whole object at "${objec`,
		}},
		{"one that does not tell among others", "patch: {json: \"${[{'op': 'add', 'path': '/a', 'value': 1}] + object.ops}\"}", []string{
			`json the whole object at "${[{'op`,
		}},
		{"a name that hides another", "patch: {json: \"${[['/a']].map(p, p.map(p, {'op': 'remove', 'path': p})).flatten()}\"}", []string{
			"json a = … at p})).fla",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := rule("r", tc.spec)
			set := load(t, text)
			if diff := cmp.Diff(tc.want, written(set.All()[0], text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// gallery are the rules of the examples and the built-in ones.
func gallery(t *testing.T) []*Rule {
	t.Helper()
	var sources []Source
	for _, pattern := range []string{"../examples/*/rule.yaml", "builtin/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, Source{Name: file, Data: data})
		}
	}
	set, problems := Load(sources...)
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return set.All()
}

// generated are rules whose patches are made of the same few names.
func generated(t *testing.T, r *rand.Rand) []*Rule {
	t.Helper()
	values := []string{"1", "x", "null", "{}", "{a: 1}", "[1]", "${object.spec.?a.orValue(1)}", "${object.?spec}", "${object.metadata.?labels.?a}", "x${object.spec.a}",
		"${has(object.spec.l) ? dyn('a') : dyn(null)}", "${{'a': {'b': object.?spec.?b.orValue('x')}}}", "${object.spec.?l.orValue([]).map(x, x)}", "${string(now)}", "${object.spec.?a.orValue(1) + 1}"}
	paths := []string{"/spec/a", "/spec/b", "/spec/l/-", "/spec/l/0", "/metadata/labels/a", "/spec", "/status/a", "/spec/${string(object.spec.a)}"}
	pick := func(all []string) string { return all[r.IntN(len(all))] }
	key := func() string {
		return pick([]string{"spec", "status", "a", "b", "l", "spec", "'${object.metadata.name}'"})
	}
	quoted := func(v string) string {
		if strings.Contains(v, "${") {
			return `"` + v + `"`
		}
		return v
	}
	var partial func(depth int) string
	partial = func(depth int) string {
		members := map[string]string{}
		for range 1 + r.IntN(2) {
			if depth > 0 && r.IntN(3) > 0 {
				members[key()] = partial(depth - 1)
			} else {
				members[key()] = quoted(pick(values))
			}
		}
		var parts []string
		for k, v := range members {
			parts = append(parts, k+": "+v)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	var all []*Rule
	for len(all) < 250 {
		var patches []string
		for range 1 + r.IntN(2) {
			switch r.IntN(4) {
			case 0:
				var ops []string
				for range 1 + r.IntN(2) {
					switch r.IntN(3) {
					case 0:
						ops = append(ops, fmt.Sprintf("{op: %s, path: '%s', value: %s}", pick([]string{"add", "replace", "test"}), pick(paths), quoted(pick(values))))
					case 1:
						ops = append(ops, fmt.Sprintf("{op: remove, path: '%s'}", pick(paths)))
					case 2:
						ops = append(ops, fmt.Sprintf("{op: %s, from: '%s', path: '%s'}", pick([]string{"move", "copy"}), pick(paths), pick(paths)))
					}
				}
				patches = append(patches, "{json: ["+strings.Join(ops, ", ")+"]}")
			case 1:
				patches = append(patches, fmt.Sprintf(`{json: "${object.spec.?l.orValue([]).map(x, {'op': 'add', 'path': '%s' + string(x), 'value': x}) + [JSONPatch{op: '%s', path: '%s'}]}"}`,
					pick(paths[:5])+pick([]string{"", "/"}), "remove", pick(paths[:5])))
			default:
				patches = append(patches, "{merge: "+partial(2)+"}")
			}
		}
		set, problems := Load(Source{Name: "f.yaml", Data: []byte(rule("r", "recheckAfter: 1h\n\tpatches: ["+strings.Join(patches, ", ")+"]"))})
		if len(problems) > 0 {
			continue // such as a move into itself
		}
		all = append(all, set.All()...)
	}
	return all
}

// trialOf knows a resource as far as it is built in, and each has a scale.
func trialOf(t *testing.T, resource schema.GroupVersionResource) Trial {
	t.Helper()
	trial := Trial{Resource: resource, Namespaced: true, ReplicasPath: []string{"spec", "replicas"}}
	kinds := map[string]string{"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
	if kind := kinds[resource.Resource]; kind != "" {
		typ, err := openapi.Builtin().Type(t.Context(), resource.GroupVersion().WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		trial.Kind, trial.Schema = kind, typ
	}
	return trial
}

// What a rule changes is among what Writes says, on any object.
func TestUnracedWritesAreComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	changes, whole := map[string]int{}, 0
	for _, rule := range append(gallery(t), generated(t, r)...) {
		for _, w := range rule.Writes() {
			if len(w.Path) == 0 {
				whole++
			}
		}
		for _, in := range inputs(t, r, rule, 60) {
			c := runChain([]*Rule{rule}, in)
			if len(c.changes) == 0 {
				continue
			}
			changes[rule.Name]++
			for _, path := range differences(in.Object, c.object, nil) {
				if !slices.ContainsFunc(rule.Writes(), func(w *Write) bool {
					n := min(len(w.Path), len(path))
					made, _ := fieldAt(c.object, path).(map[string]any) // an empty map, on the way
					return slices.Equal(w.Path[:n], path[:n]) && (n == len(w.Path) || made != nil && len(made) == 0)
				}) {
					t.Fatalf("%s changes %v of\n%v\nto\n%v\nbut its Writes are\n%s", rule.Name, path, in.Object, c.object, strings.Join(written(rule, ""), "\n"))
				}
			}
		}
	}
	if whole > 100 || changes["r"] < 4_000 {
		t.Errorf("%d patches may change anything; %d changes: this tests too little", whole, changes["r"])
	}
	for _, rule := range gallery(t) {
		if changes[rule.Name] == 0 {
			t.Errorf("nothing is changed by %s", rule.Name)
		}
	}
}

// inputs are made-up objects for a rule; for an example, also its own objects
// and what becomes of them when something is left out.
func inputs(t *testing.T, r *rand.Rand, rule *Rule, n int) []Input {
	t.Helper()
	inventor := newInventor([]*Rule{rule})
	inventor.Rand = r
	trial := trialOf(t, rule.Resources[0])
	var out []Input
	for range n {
		out = append(out, inventor.input(trial))
	}
	if rule.Name == "r" { // objects that owe nothing to what is known of the rule
		for range n {
			out = append(out, Input{Resource: rule.Resources[0], Object: randomObject(r), Schema: trial.Schema, ReplicasPath: trial.ReplicasPath, Now: moment})
		}
	}
	dir := "../examples/" + rule.Name
	if _, err := os.Stat(dir); err != nil {
		return out
	}
	around := exampleObjects(t, dir+"/objects.yaml")
	crds, err := openapi.NewCRDs(exampleObjects(t, dir+"/crd.yaml")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range exampleObjects(t, dir+"/before.yaml") {
		if typ, err := crds.Type(t.Context(), rule.Resources[0].GroupVersion().WithKind(fmt.Sprint(o["kind"]))); err == nil {
			trial.Schema = typ
		}
		for i := range n {
			in := Input{Resource: rule.Resources[0], Object: o, Schema: trial.Schema, ReplicasPath: trial.ReplicasPath, Lookups: &world{objects: around}, Now: moment.AddDate(0, 6, 0)}
			if i > 0 {
				in.Object = without(r, o, 10*i).(map[string]any)
			}
			for _, ns := range append(around, map[string]any{"kind": "Namespace", "metadata": map[string]any{"name": "x", "labels": map[string]any{"env": "prod", "team": "x"}}}) {
				if ns["kind"] == "Namespace" {
					in.NamespaceObject = ns
				}
			}
			out = append(out, in)
		}
	}
	return out
}

func exampleObjects(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	docs, err := yamldoc.Parse(file, data, yamldoc.ManifestLimits)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, d := range docs {
		v, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v.(map[string]any))
	}
	return out
}

// without is a value less one key or element in so many; names stay.
func without(r *rand.Rand, v any, one int) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if r.IntN(one) > 0 || k == "metadata" || k == "name" {
				out[k] = without(r, v[k], one)
			}
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			if r.IntN(one) > 0 {
				out = append(out, without(r, item, one))
			}
		}
		return out
	}
	return v
}

// differences are the paths of keys below which two values differ. Maps that
// come to be, where there was none, are what is in them.
func differences(a, b any, path []string) [][]string {
	if patch.Equal(a, b) {
		return nil
	}
	x, ok := a.(map[string]any)
	y, made := b.(map[string]any)
	if !made || len(y) == 0 && !ok {
		return [][]string{path}
	}
	var out [][]string
	for k := range x {
		out = append(out, differences(x[k], y[k], extend(path, k))...)
	}
	for k := range y {
		if _, both := x[k]; !both {
			out = append(out, differences(nil, y[k], extend(path, k))...)
		}
	}
	return out
}

// What is proved to rest does: its second evaluation changes nothing.
func TestUnracedRulesThatRest(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	proved, restless, changed := 0, 0, 0
	for _, rule := range append(gallery(t), generated(t, r)[:120]...) {
		if object, _ := trialOf(t, rule.Resources[0]).Restless(rule); object != nil && rule.Rests() {
			t.Errorf("%s is proved to rest, and does not on %v:\n%s", rule.Name, object, strings.Join(written(rule, ""), "\n"))
		} else if object != nil {
			restless++
		}
		if !rule.Rests() {
			continue
		}
		proved++
		for _, in := range inputs(t, r, rule, 60) {
			first := runChain([]*Rule{rule}, in)
			if len(first.changes) == 0 {
				continue
			}
			changed++
			in.Object = first.object
			if second := runChain([]*Rule{rule}, in); len(second.changes) > 0 {
				t.Fatalf("%s is proved to rest, but changes its result again: %v\n%s\n%v", rule.Name, differences(first.object, second.object, nil), strings.Join(written(rule, ""), "\n"), in.Object)
			}
		}
	}
	if proved < 30 || restless < 10 || changed < 1000 {
		t.Errorf("%d rules are proved to rest, %d do not, %d changes: this tests too little", proved, restless, changed)
	}
}

func TestRests(t *testing.T) {
	for _, tc := range []struct {
		spec string
		want bool
	}{
		{"condition: object.spec.a != 1\n\tpatch: {merge: {spec: {a: 1}}}", true},
		{"patch: {merge: {spec: {a: \"${object.spec.b}\"}}}", false}, // a patch that makes spec would be seen
		{"patch: {merge: {metadata: {labels: {a: \"${object.metadata.name}\"}}}}", true},
		{"patch: {merge: {spec: {a: \"${object.spec.a + 1}\"}}}", false},
		{"patch: {merge: {metadata: {labels: {a: \"${has(object.metadata.labels) ? 'x' : 'y'}\"}}}}", false},
		{"recheckAfter: 1h\n\tpatch: {merge: {spec: {a: \"${string(now)}\"}}}", false},
		{"recheckAfter: 1h\n\tvariables: [{name: t, expression: now}]\n\tpatch: {merge: {spec: {a: \"${string(variables.t)}\"}}}", false},
		{"patch: {json: [{op: add, path: /spec/a, value: 1}, {op: remove, path: /spec/b}]}", true},
		{"patch: {json: [{op: add, path: /spec/a, value: 1}, {op: remove, path: /spec/a}]}", false},
		{"patch: {json: [{op: add, path: /spec/l/-, value: 1}]}", false},
		{"patch: {json: [{op: copy, from: /spec/a, path: /spec/b}]}", false},
		{"patch: {subresource: scale, merge: {spec: {replicas: \"${object.spec.instances}\"}}}", false}, // which may be the replicas
		{"patch: {subresource: scale, merge: {spec: {replicas: \"${object.metadata.generation}\"}}}", true},
		{"lookups: [{name: l, resource: {group: apps, version: v1, resource: deployments}}]\n\tpatch: {merge: {metadata: {labels: {a: \"${string(lookups.l.size())}\"}}}}", false},
		{"lookups: [{name: l, resource: {version: v1, resource: secrets}, where: {metadata.name: \"${object.spec.a}\"}}]\n\tpatch: {merge: {spec: {a: \"${string(lookups.l.size())}\"}}}", false},
	} {
		if got := load(t, rule("r", tc.spec)).All()[0].Rests(); got != tc.want {
			t.Errorf("%s\nRests is %t", tc.spec, got)
		}
	}
}

func TestRestless(t *testing.T) {
	for name, tc := range map[string]struct {
		specs []string
		want  []string
	}{
		"counts":                {[]string{"patch: {merge: {spec: {a: \"${object.spec.a + 1}\"}}}"}, []string{"r0"}},
		"counts to three":       {[]string{"condition: object.spec.a < 3\n\tpatch: {merge: {spec: {a: \"${object.spec.a + 1}\"}}}"}, nil},
		"appends":               {[]string{"patch: {json: [{op: add, path: /metadata/finalizers/-, value: x}]}"}, []string{"r0"}},
		"appends once":          {[]string{"condition: \"!('x' in object.metadata.?finalizers.orValue([]))\"\n\tpatch: {json: [{op: add, path: /metadata/finalizers/-, value: x}]}"}, nil},
		"now":                   {[]string{"recheckAfter: 1h\n\tpatch: {merge: {metadata: {annotations: {at: \"${string(now)}\"}}}}"}, []string{"r0"}},
		"now, once":             {[]string{"recheckAfter: 1h\n\tcondition: \"!('at' in object.metadata.?annotations.orValue({}))\"\n\tpatch: {merge: {metadata: {annotations: {at: \"${string(now)}\"}}}}"}, nil},
		"a prefix":              {[]string{"condition: object.spec.image.startsWith('docker.io/')\n\tpatch: {merge: {spec: {image: \"docker.io/mirror/${object.spec.image}\"}}}"}, []string{"r0"}},
		"a prefix that ends it": {[]string{"condition: object.spec.image.startsWith('docker.io/')\n\tpatch: {merge: {spec: {image: \"mirror/${object.spec.image}\"}}}"}, nil},
		"where several compare": {[]string{"condition: object.spec.type == 'Web' && object.spec.tier in ['gold', 'silver'] && !object.spec.?paused.orValue(false)\n\tpatch: {merge: {spec: {a: \"${object.spec.?a.orValue('') + 'x'}\"}}}"}, []string{"r0"}},
		"two that fight":        {[]string{"patch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {a: 2}}}"}, []string{"r0", "r1"}},
		"two, where one yields": {[]string{"condition: \"!has(object.spec.a)\"\n\tpatch: {merge: {spec: {a: 1}}}", "patch: {merge: {spec: {a: 2}}}"}, nil},
		"by way of a lookup": {[]string{"lookups: [{name: l, resource: {version: v1, resource: secrets}, where: {metadata.name: x}}]\n\tcondition: lookups.l.exists(s, s.metadata.labels.kind == 'seed')\n\tpatch: {merge: {spec: {a: \"${object.spec.?a.orValue('') + 'x'}\"}}}"},
			[]string{"r0"}},
		"in the match": {[]string{"match: {namespaces: [team-*], names: [a, b], labelSelector: {matchLabels: {app: web}}, namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [prod]}]}, fieldSelector: spec.type=Web}\n\tpatch: {merge: {spec: {a: \"${object.spec.a + 1}\"}}}"},
			[]string{"r0"}},
		"a label that ends it": {[]string{"match: {labelSelector: {matchExpressions: [{key: done, operator: DoesNotExist}]}}\n\tpatch: {merge: {metadata: {labels: {done: x}}, spec: {a: \"${object.spec.a + 1}\"}}}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var texts []string
			for i, spec := range tc.specs {
				texts = append(texts, rule(fmt.Sprintf("r%d", i), spec))
			}
			set := load(t, texts...)
			trial := Trial{Resource: set.Resources()[0], Namespaced: true}
			object, got := trial.Restless(set.All()...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\non %v", diff, object)
			}
			if again, _ := trial.Restless(set.All()...); !cmp.Equal(object, again) {
				t.Errorf("tried again, another object: %v, %v", object, again)
			}
		})
	}
}
