package builtin

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/rules"
)

// none finds nothing: a cluster without autoscalers.
type none struct{}

func (none) Find(rules.Query) ([]map[string]any, error) { return nil, nil }

func load(t *testing.T, name string) *rules.Set {
	t.Helper()
	source, err := Source(name)
	if err != nil {
		t.Fatal(err)
	}
	set, problems := rules.Load(source)
	for _, p := range problems {
		t.Errorf("%s", p.Detail())
	}
	return set
}

func TestAllBuiltinsCompileAndAreNamedLikeTheirFile(t *testing.T) {
	for _, name := range Names() {
		set := load(t, name)
		if len(set.All()) != 1 || set.All()[0].Name != name {
			t.Errorf("%s.yaml does not hold exactly the rule %s", name, name)
		}
	}
}

func TestUnknownBuiltinIsNamed(t *testing.T) {
	if _, err := Source("expected-replica"); err == nil || err.Error() != `there is no built-in rule "expected-replica" (did you mean "expected-replicas"?): there is expected-replicas` {
		t.Errorf("got %v", err)
	}
}

// NUM-07 and SEC-03: what each annotation value gets, from spec.replicas 1.
func TestExpectedReplicas(t *testing.T) {
	set := load(t, "expected-replicas")
	for _, tc := range []struct {
		annotation any
		want       any // the replica count; nil: an error; "same": nothing to do
	}{
		{"3", int64(3)}, {"0", int64(0)}, {"1000", int64(1000)}, {"1", "same"},
		{"-1", nil}, {"abc", nil}, {"", nil}, {"3.0", nil}, {" 3", nil}, {"3 ", nil}, {"2147483648", nil},
		{"+5", nil}, {"010", nil}, {"00", nil}, {"0x3", nil}, {"1e1", nil}, {"1001", nil}, {"100000", nil},
		{"99999999999999999999", nil}, {"٣", nil}, {"3\n", nil},
	} {
		object := map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "web", "namespace": "a", "annotations": map[string]any{"example.io/expected-replicas": tc.annotation}},
			"spec":     map[string]any{"replicas": int64(1)},
		}
		gvr := set.Resources()[0]
		res := rules.Evaluate(set.For(gvr), rules.Input{Resource: gvr, Object: object, ReplicasPath: []string{"spec", "replicas"}, Lookups: none{}})
		var got any = "same"
		if len(res.Verdicts) > 0 && res.Verdicts[0].Outcome == rules.Error {
			got = nil
			var evaluation *rules.EvaluationError
			if !errors.As(res.Verdicts[0].Err, &evaluation) || len(res.Requests) > 0 || !strings.Contains(evaluation.Error(), "example.io/expected-replicas is ") {
				t.Errorf("%q: error %v with %d requests", tc.annotation, res.Verdicts[0].Err, len(res.Requests))
			}
		} else if len(res.Requests) > 0 {
			got = res.Object["spec"].(map[string]any)["replicas"]
			if res.Requests[0].Subresource != "scale" || len(res.Requests) != 1 {
				t.Errorf("%q: want one request to scale", tc.annotation)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (-want +got): %s", tc.annotation, diff)
		}
	}
}

func TestExpectedReplicasTellsWhatItDid(t *testing.T) {
	set := load(t, "expected-replicas")
	gvr := set.Resources()[0]
	for _, tc := range []struct {
		spec map[string]any
		want string
	}{
		{map[string]any{"replicas": int64(3)}, "adjust replicas from 3 to 5"},
		{map[string]any{}, "adjust replicas from 1 to 5"}, // the API server's default
	} {
		res := rules.Evaluate(set.For(gvr), rules.Input{Resource: gvr, ReplicasPath: []string{"spec", "replicas"}, Lookups: none{}, Object: map[string]any{
			"metadata": map[string]any{"name": "web", "namespace": "a", "annotations": map[string]any{"example.io/expected-replicas": "5"}}, "spec": tc.spec,
		}})
		want := rules.Event{Reason: "ReplicasAdjusted", Message: tc.want}
		if len(res.Verdicts) != 1 || res.Verdicts[0].Event != want {
			t.Errorf("got %+v, want %+v", res.Verdicts, want)
		}
	}
}

func TestDeploymentsWithoutTheAnnotationAreLeftAlone(t *testing.T) {
	set := load(t, "expected-replicas")
	gvr := set.Resources()[0]
	for _, meta := range []map[string]any{{"name": "web"}, {"name": "web", "annotations": map[string]any{"other": "5"}}} {
		res := rules.Evaluate(set.For(gvr), rules.Input{Resource: gvr, ReplicasPath: []string{"spec", "replicas"}, Lookups: none{}, Object: map[string]any{
			"metadata": meta, "spec": map[string]any{"replicas": int64(3)}}})
		if len(res.Requests) != 0 || len(res.Verdicts) != 0 {
			t.Errorf("%v: %+v", meta, res.Verdicts)
		}
	}
}
