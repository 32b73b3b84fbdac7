package rules_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// meeting makes rules whose patches meet: few places, above and below one another,
// are set, emptied, removed, copied, moved and tested by all kinds of patches, and
// each needs to know of a place what the others leave there.
type meeting struct{ *chooser }

var meetingPlaces = []string{"/spec/a", "/spec/a", "/spec/a/b", "/spec/a/b", "/spec/a/b/c", "/spec/a/m", "/spec/b", "/spec/m", "/metadata/labels", "/metadata/labels/a", "/status/a", "/status", "/spec/replicas", "/spec/l", "/spec/l/0", "/spec/l/-", "/spec/l/0/a", "/spec/template/spec/containers/0/image"}

func (g meeting) file() string {
	var docs []string
	for i := range 1 + g.IntN(3) {
		var patches []any
		for range 1 + g.IntN(3) {
			patches = append(patches, g.patch())
		}
		spec := map[string]any{"resource": map[string]any{"group": "apps", "version": "v1", "resource": "deployments"}, "patches": patches}
		if g.chance(50) {
			spec["condition"] = g.condition()
		}
		if g.chance(20) {
			spec["optOut"] = "Forbidden"
		}
		data, err := json.Marshal(map[string]any{"apiVersion": "rectifier.dev/v1alpha1", "kind": "Rule", "metadata": map[string]any{"name": fmt.Sprintf("r%d", i)}, "spec": spec})
		if err != nil {
			panic(err)
		}
		docs = append(docs, string(data))
	}
	return strings.Join(docs, "\n---\n")
}

func (g meeting) condition() string {
	return pick(g.chooser, "has(object.spec.a)", "!has(object.spec.a.b)", "object.spec.?a.?b.orValue(null) == null", "'a' in object.spec", "object.spec.?replicas.orValue(1) == 1",
		"type(object.spec.a) == map", "object.spec.l.size() > 0", "object.spec.a.exists(k, k == 'b')", "object.spec.l.exists(x, x == 'x')")
}

func (g meeting) patch() map[string]any {
	switch g.IntN(10) {
	case 0:
		return map[string]any{"subresource": "status", "merge": map[string]any{"status": g.part(1)}}
	case 1:
		return map[string]any{"subresource": "scale", "merge": map[string]any{"spec": map[string]any{"replicas": pick[any](g.chooser, 1, 2, "${object.spec.?replicas.orValue(1)}", "${object.spec.a}", nil)}}}
	case 2:
		return map[string]any{"subresource": "scale", "json": []any{
			map[string]any{"op": "test", "path": "/spec/replicas", "value": g.IntN(3)}, map[string]any{"op": "replace", "path": "/spec/replicas", "value": g.IntN(3)}}}
	case 3, 4:
		var ops []any
		for range 1 + g.IntN(3) {
			ops = append(ops, g.operation())
		}
		return map[string]any{"json": ops}
	case 5:
		return map[string]any{"json": fmt.Sprintf("${[{'op': '%s', 'path': '%s' + '%s', 'value': %s}]}", pick(g.chooser, "add", "replace", "test"), pick(g.chooser, meetingPlaces...), pick(g.chooser, "", "", "/a", "/b"), pick(g.chooser, "1", "{'c': 1}", "object.spec.b", "null"))}
	case 6:
		return map[string]any{"applyConfiguration": g.configuration()}
	case 7:
		return map[string]any{"merge": pick(g.chooser,
			"${object.spec.?b.hasValue() ? dyn({'spec': {'a': null}}) : dyn({})}",
			"${{'spec': {'a': {'b': object.spec.?b.orValue({})}, ?'m': object.spec.?a.?m}}}",
			"${{'spec': {'a': {}}, 'metadata': {'labels': {string(object.spec.?b.orValue('a')): 'x'}}}}")}
	}
	return map[string]any{"merge": map[string]any{"spec": g.part(2)}}
}

// part is a map of a merge patch.
func (g meeting) part(depth int) map[string]any {
	out := map[string]any{}
	for range 1 + g.IntN(2) {
		key := pick(g.chooser, "a", "a", "b", "c", "m", "l")
		if n := g.IntN(9); depth > 0 && n < 4 {
			out[key] = g.part(depth - 1)
		} else {
			out[key] = pick[any](g.chooser, nil, nil, 1, "x", map[string]any{}, map[string]any{"b": 1}, []any{}, []any{"x"}, "${object.spec.?b}", "${object.spec.?a.?b.orValue({'c': 2})}")
		}
	}
	return out
}

func (g meeting) operation() map[string]any {
	op := map[string]any{"op": pick(g.chooser, "add", "add", "replace", "remove", "test", "move", "copy"), "path": pick(g.chooser, meetingPlaces...)}
	switch op["op"] {
	case "add", "replace", "test":
		op["value"] = pick[any](g.chooser, 1, nil, "x", map[string]any{}, map[string]any{"b": 1}, []any{"x"}, "${object.spec.?b.orValue(1)}")
	case "move", "copy":
		op["from"] = pick(g.chooser, meetingPlaces...)
	}
	return op
}

func (g meeting) configuration() map[string]any {
	switch g.IntN(4) {
	case 0:
		return map[string]any{"metadata": map[string]any{pick(g.chooser, "labels", "annotations"): pick[any](g.chooser, nil, map[string]any{}, map[string]any{"a": "x"}, map[string]any{"b": nil})}}
	case 1:
		return map[string]any{"spec": pick[any](g.chooser, nil, map[string]any{"paused": true}, map[string]any{"paused": nil, "replicas": 3}, map[string]any{"selector": map[string]any{}})}
	case 2:
		return map[string]any{"spec": map[string]any{"template": pick[any](g.chooser, map[string]any{"spec": nil}, map[string]any{"spec": map[string]any{"containers": nil}}, map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "x"}}})}}
	}
	container := pick(g.chooser, map[string]any{"name": "c", "image": "k"}, map[string]any{"name": "e"}, map[string]any{"name": "d", "env": []any{map[string]any{"name": "A", "value": "1"}}})
	return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}}
}

// object is one on which they meet.
func (g meeting) object() map[string]any {
	o := inventObject(g.chooser)
	if spec := o["spec"].(map[string]any); g.chance(80) {
		for _, key := range []string{"a", "m"} {
			spec[key] = pick[any](g.chooser, map[string]any{"z": "x"}, map[string]any{"b": map[string]any{"c": int64(1), "z": int64(2)}, "m": int64(1)}, map[string]any{"b": int64(1), "z": []any{"x"}}, []any{"x", "y"}, map[string]any{}, nil)
		}
	}
	return o
}

// What is removed and made again may have had more in it than is made.
func TestUnracedFieldsSufficeWhereAPatchMakesWhatAnotherRemoves(t *testing.T) {
	p := &projecting{TB: t, chooser: seeded(1)}
	remove := []string{"{merge: {spec: {a: null}}}", "{json: [{op: remove, path: /spec/a}]}", "{merge: {spec: {a: 1}}}", "{merge: {spec: {a: []}}}", "{json: [{op: move, from: /spec/a, path: /spec/m}]}"}
	again := []string{"{merge: {spec: {a: {b: 1}}}}", "{merge: {spec: {a: {}}}}", "{json: [{op: add, path: /spec/a, value: {b: 1}}]}", "{merge: \"${{'spec': {'a': {'b': 1}}}}\"}", "{json: \"${[{'op': 'copy', 'from': '/spec/m', 'path': '/spec/a'}]}\"}"}
	for _, first := range remove {
		for _, second := range again {
			for _, between := range []string{"", "{subresource: status, merge: {status: {a: 1}}}, ", "{subresource: scale, merge: {spec: {replicas: 2}}}, "} {
				text := rule("r", "patches: ["+first+", "+between+second+"]")
				set, problems := loadText(text)
				if len(problems) > 0 {
					t.Fatal(problems[0])
				}
				for _, a := range []string{"{z: x}", "{b: 1}", "{b: 1, z: x}", "{}", "[x]", "null", "{b: {c: 1}}"} {
					in := inventInput(t, p.chooser)
					in.Object = object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: shop}, spec: {m: {q: x}, a: "+a+"}}")
					if in.Lookups = nil; !t.Failed() {
						p.compare(set, in)
					}
				}
				if t.Failed() {
					t.Fatal(text)
				}
			}
		}
	}
	if p.met.patches < 200 {
		t.Errorf("%+v", p.met)
	}
}

func TestUnracedFieldsSufficeWherePatchesMeet(t *testing.T) {
	repo := &repository{kinds: map[schema.GroupVersionResource]schema.GroupVersionKind{deployments: {Group: "apps", Version: "v1", Kind: "Deployment"}}, types: builtinTypes()}
	until := patience(t)
	p := &projecting{TB: t}
	for seed := uint64(1); seed <= 500 || stillPatient(until); seed++ {
		p.chooser = seeded(seed)
		g := meeting{p.chooser}
		text := g.file()
		set, _ := loadText(text)
		p.try(repo, set, 1)
		for range 3 {
			in := inventInput(t, p.chooser)
			in.Object = g.object()
			if len(set.All()) > 0 && !t.Failed() {
				p.compare(set, p.disturb(in))
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, text)
		}
	}
	p.report(1000)
}
