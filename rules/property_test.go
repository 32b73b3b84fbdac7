package rules

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Names that rules and objects of the property tests share, so that they meet.
var vocabulary = []string{"metadata", "labels", "annotations", "spec", "status", "replicas", "a", "b", "l"}

func randomValue(r *rand.Rand, depth int) any {
	kinds := 9
	if depth == 0 {
		kinds = 6
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.IntN(3))
	case 3:
		return 0.5
	case 4, 5:
		return []string{"", "x", "3", "${", "a b"}[r.IntN(5)]
	case 6:
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	return randomMap(r, depth-1)
}

func randomMap(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range r.IntN(4) {
		m[vocabulary[r.IntN(len(vocabulary))]] = randomValue(r, depth)
	}
	return m
}

func randomObject(r *rand.Rand) map[string]any {
	o := randomMap(r, 3)
	o["metadata"] = randomMap(r, 2) // no object is without
	if r.IntN(4) > 0 {
		o["spec"] = randomMap(r, 2)
	}
	return o
}

// Rules that come to rest, and depend on no rule that comes after them.
var restful = []string{
	rule("a", "condition: \"!has(object.spec.a)\"\n\tpatch: {merge: {spec: {a: 1}}}"),
	rule("b", "patches:\n\t- merge: {metadata: {labels: {a: x}, annotations: {b: null}}}\n\t- json: [{op: test, path: /metadata/labels/a, value: x}, {op: add, path: /metadata/labels/b, value: x}]"),
	rule("c", "condition: has(object.spec.l) && type(object.spec.l) == list && !('x' in object.spec.l)\n\tpatch: {json: [{op: add, path: /spec/l/-, value: x}]}"),
	rule("d", "condition: has(object.spec.b)\n\tpatch: {json: [{op: remove, path: /spec/b}]}"),
	rule("e", "variables: [{name: count, expression: \"has(object.spec.a) ? 3 : 4\"}]\n\tpatch: {subresource: scale, merge: {spec: {replicas: \"${variables.count}\"}}}"),
	rule("f", "patch: {subresource: status, merge: {status: {a: \"${object.spec.?a}\", b: null}}}"),
	rule("g", "mode: Audit\n\tpatch: {merge: {spec: {audit: true}}}"),
}

// What the rules make of an object is right: evaluating it again changes
// nothing. The helper checks that the requests lead there.
func TestUnracedResultOfConvergingRulesIsStable(t *testing.T) {
	set := load(t, restful...)
	r := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for range 1000 {
		o := randomObject(r)
		res := evaluateInput(t, set.All(), Input{Object: o, ReplicasPath: []string{"spec", "replicas"}})
		changed += len(res.Requests)
		again := evaluateInput(t, set.All(), Input{Object: res.Object, ReplicasPath: []string{"spec", "replicas"}})
		if len(again.Requests) > 0 {
			t.Fatalf("%v\nbecame %v\nand again: %v", o, res.Object, sent(t, again))
		}
		if t.Failed() {
			t.Fatalf("the object is %v\nthe verdicts are %v", o, outcomes(res))
		}
	}
	if changed < 1000 {
		t.Errorf("only %d requests: the objects do not meet the rules", changed)
	}
}

// The same for rules that nobody looked at: those that fight are left out, and
// what is sent is stable all the same.
func TestResultOfRandomMergesIsStable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	requests, fights := 0, 0
	for range 250 {
		var all []string
		for i := range 1 + r.IntN(4) {
			spec, err := json.Marshal(map[string]any{"spec": randomMap(r, 2), "status": randomMap(r, 1)})
			if err != nil {
				t.Fatal(err)
			}
			// A template that is broken is not what this test is about.
			all = append(all, rule(fmt.Sprintf("r%d", i), "patch: {merge: "+strings.ReplaceAll(string(spec), "${", "$${")+"}"))
		}
		set, problems := Load(Source{Name: "f.yaml", Data: []byte(strings.Join(all, "---\n"))})
		if len(problems) > 0 {
			continue // a number as an annotation
		}
		o := randomObject(r)
		res := evaluateInput(t, set.All(), Input{Object: o})
		again := evaluateInput(t, set.All(), Input{Object: res.Object})
		if len(again.Requests) > 0 {
			t.Fatalf("%s\n%v\nbecame %v\nand again: %v", strings.Join(all, ""), o, res.Object, sent(t, again))
		}
		if t.Failed() {
			t.Fatalf("the rules are\n%s\nthe object is %v", strings.Join(all, ""), o)
		}
		requests += len(res.Requests)
		for _, v := range res.Verdicts {
			if v.Outcome == Error {
				fights++
			}
		}
	}
	if requests < 100 || fights < 30 {
		t.Errorf("%d requests, %d fights: this tests too little", requests, fights)
	}
}

// Whatever a file holds, loading it never panics and points into the file, and
// what loads can be evaluated.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/bad/*.json", "builtin/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, text := range restful {
		f.Add([]byte(text))
	}
	objects := []map[string]any{
		{}, {"metadata": nil, "spec": "x", "data": nil},
		{"metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"a": "x", "b": int64(3)}, "annotations": map[string]any{"example.io/expected-replicas": "5"}},
			"spec": map[string]any{"replicas": int64(3), "l": []any{int64(1), 0.5, nil}}, "status": map[string]any{"phase": "x"}, "data": map[string]any{"a": "1"}},
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, problems := Load(Source{Name: "f.yaml", Data: data}, Source{Name: "g.yaml", Data: []byte(named("good-one-beside"))})
		for _, p := range problems {
			if p.Detail() == "" || p.Pos.Line < 1 || p.Pos.Column < 1 {
				t.Errorf("problem %+v", p)
			}
		}
		for _, o := range objects {
			before := runtime.DeepCopyJSON(o)
			res := Evaluate(set.All(), Input{Object: o, ReplicasPath: []string{"spec", "replicas"}, Explain: true})
			if len(res.Verdicts) != len(set.All()) {
				t.Errorf("%d verdicts of %d rules", len(res.Verdicts), len(set.All()))
			}
			if fmt.Sprint(before) != fmt.Sprint(o) {
				t.Errorf("the object was modified: %v became %v", before, o)
			}
			for i := range res.Requests {
				if _, err := res.Requests[i].Body("uid", "1"); err != nil && o["metadata"] != nil {
					t.Errorf("body: %v", err)
				}
			}
		}
	})
}
