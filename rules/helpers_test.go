package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// object reads an object as the API server's JSON decodes.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	docs, err := yamldoc.Parse("object", []byte(text), yamldoc.ManifestLimits)
	if err != nil || len(docs) != 1 {
		t.Fatalf("%d documents, %v:\n%s", len(docs), err, text)
	}
	v, err := docs[0].Value()
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

// evaluate runs all rules of a set on an object; every test goes through it.
// Whatever the outcome, the object may not have been modified, what is sent
// makes of it what the result says, and a second evaluation agrees.
func evaluate(t testing.TB, set *Set, text string, options ...func(*Input)) Result {
	t.Helper()
	in := Input{Object: object(t, text), ReplicasPath: []string{"spec", "replicas"}}
	if all := set.Resources(); len(all) > 0 {
		in.Resource = all[0]
	}
	for _, option := range options {
		option(&in)
	}
	return evaluateInput(t, set.All(), in)
}

func evaluateInput(t testing.TB, rs []*Rule, in Input) Result {
	t.Helper()
	before := runtime.DeepCopyJSON(in.Object)
	res := Evaluate(rs, in)
	if diff := cmp.Diff(before, in.Object); diff != "" {
		t.Errorf("the object was modified (-before +after):\n%s", diff)
	}
	checkRequests(t, in, res)
	again := Evaluate(rs, in)
	if diff := cmp.Diff(res.Object, again.Object); diff != "" {
		t.Errorf("evaluated twice, two results (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(outcomes(res), outcomes(again)); diff != "" {
		t.Errorf("evaluated twice, two verdicts (-first +second):\n%s", diff)
	}
	return res
}

func explain(in *Input) { in.Explain = true }

func on(group, version, resource string) func(*Input) {
	return func(in *Input) {
		in.Resource = schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
}

// outcomes gives the verdicts in short: "name Patch", "name Error: why".
func outcomes(res Result) []string {
	out := []string{}
	for _, v := range res.Verdicts {
		s := v.Rule.Name + " " + string(v.Outcome)
		switch {
		case v.Err != nil:
			s += ": " + v.Err.Error()
		case v.Reason != "":
			s += ": " + v.Reason
		}
		out = append(out, s)
	}
	return out
}

// checkRequests plays the server: what is sent, applied one after the other,
// makes of the object what the result says; nothing is sent for nothing.
func checkRequests(t testing.TB, in Input, res Result) {
	t.Helper()
	got := in.Object
	for i := range res.Requests {
		r := &res.Requests[i]
		if _, err := r.Body("uid", "1"); err != nil {
			t.Errorf("body of the request for %q: %v", r.Subresource, err)
		}
		if len(r.Rules) == 0 {
			t.Errorf("the request for %q is nobody's", r.Subresource)
		}
		before := got
		var err error
		switch {
		case r.Subresource == scale:
			spec := r.merge["spec"].(map[string]any)
			got = patch.ApplyMerge(got, nest(in.ReplicasPath, spec["replicas"]))
			if !r.HeldBy(scaleOf(got, in.ReplicasPath)) {
				t.Error("the answer to the request for scale does not verify")
			}
		case r.merge != nil:
			got = patch.ApplyMerge(got, r.merge)
		default:
			got, err = patch.ApplyOps(got, r.ops)
		}
		if err != nil {
			t.Errorf("apply the request for %q: %v", r.Subresource, err)
		}
		if patch.Equal(before, got) {
			t.Errorf("the request for %q changes nothing", r.Subresource)
		}
		if ops := r.Operations(before); len(ops) == 0 {
			t.Errorf("the request for %q has no operations", r.Subresource)
		}
	}
	if diff := cmp.Diff(res.Object, got); diff != "" {
		t.Errorf("the requests do not lead to the result (-result +requests):\n%s", diff)
	}
}

// sent shows the requests: subresource, kind of patch, rules, content.
func sent(t testing.TB, res Result) []string {
	t.Helper()
	out := []string{}
	for i := range res.Requests {
		r := &res.Requests[i]
		var content any = r.merge
		kind := "merge"
		if r.merge == nil {
			kind, content = "json", r.ops
		}
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		var by []string
		for _, rule := range r.Rules {
			by = append(by, rule.Name)
		}
		out = append(out, fmt.Sprintf("/%s %s by %s: %s", r.Subresource, kind, strings.Join(by, " "), data))
	}
	return out
}
