package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rectifier-dev/rectifier/gvr/openapi"
	"github.com/rectifier-dev/rectifier/internal/yamldoc"
	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

// These tests are outside of the package because they use the schemas of the
// built-in kinds, and package rules knows nothing of those.

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

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// rule is one for Deployments.
func rule(name, spec string) string {
	return fmt.Sprintf("apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: %s}\nspec:\n  resource: {group: apps, version: v1, resource: deployments}\n  %s\n",
		name, strings.ReplaceAll(strings.TrimSpace(spec), "\n\t", "\n  "))
}

// apply runs rules on a Deployment whose schema is known. Every test goes
// through it: the object may not be modified, what is sent leads to the result,
// and the result is stable.
func apply(t *testing.T, text string, all ...string) rules.Result {
	t.Helper()
	set, problems := rules.Load(rules.Source{Name: "r.yaml", Data: []byte(strings.Join(all, "---\n"))})
	for _, p := range problems {
		t.Fatalf("%s", p.Detail())
	}
	types, err := openapi.Builtin().Type(context.Background(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if err != nil {
		t.Fatal(err)
	}
	in := rules.Input{Resource: deployments, Object: object(t, text), Schema: types, Explain: true}
	res := rules.Evaluate(set.All(), in)
	if diff := cmp.Diff(object(t, text), in.Object); diff != "" {
		t.Errorf("the object was modified (-before +after):\n%s", diff)
	}
	after := in.Object
	for i := range res.Requests {
		if after, err = patch.ApplyOps(after, res.Requests[i].Operations(after)); err != nil {
			t.Errorf("apply the request for %q: %v", res.Requests[i].Subresource, err)
		}
	}
	if diff := cmp.Diff(res.Object, after); diff != "" {
		t.Errorf("the requests do not lead to the result (-result +requests):\n%s", diff)
	}
	in.Object = res.Object
	if again := rules.Evaluate(set.All(), in); len(again.Requests) > 0 {
		t.Errorf("a second evaluation changes the result: %v", verdicts(again))
	}
	return res
}

func verdicts(res rules.Result) []string {
	var out []string
	for _, v := range res.Verdicts {
		s := v.Rule.Name + " " + string(v.Outcome)
		if v.Err != nil {
			s += ": " + v.Err.Error()
		}
		out = append(out, s)
	}
	return out
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: a, image: "a:1", args: [--x], env: [{name: A, value: "1"}], ports: [{containerPort: 80, protocol: TCP}]}
      - {name: b, image: "b:1"}
`

// A structured merge finds the elements of lists by their keys, and leaves what
// it does not name.
func TestApplyConfiguration(t *testing.T) {
	for _, tc := range []struct {
		name, config string
		path         string // what is looked at afterwards
		want         string
	}{
		{"an element by its key", `{spec: {template: {spec: {containers: [{name: b, imagePullPolicy: Always}]}}}}`, "/spec/template/spec/containers/1", `{name: b, image: "b:1", imagePullPolicy: Always}`},
		{"the others stay", `{spec: {template: {spec: {containers: [{name: b, imagePullPolicy: Always}]}}}}`, "/spec/template/spec/containers/0", `{name: a, image: "a:1", args: [--x], env: [{name: A, value: "1"}], ports: [{containerPort: 80, protocol: TCP}]}`},
		{"a new element", `{spec: {template: {spec: {containers: [{name: c, image: "c:1"}]}}}}`, "/spec/template/spec/containers/2", `{name: c, image: "c:1"}`},
		{"a list below a list", `{spec: {template: {spec: {containers: [{name: a, env: [{name: B, value: "2"}]}]}}}}`, "/spec/template/spec/containers/0/env", `[{name: A, value: "1"}, {name: B, value: "2"}]`},
		{"several keys, one by its default", `{spec: {template: {spec: {containers: [{name: a, ports: [{containerPort: 80, name: http}]}]}}}}`, "/spec/template/spec/containers/0/ports", `[{containerPort: 80, protocol: TCP, name: http}]`},
		{"Object{}", `"${Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'b', imagePullPolicy: 'Always'}]}}}}}"`, "/spec/template/spec/containers/1", `{name: b, image: "b:1", imagePullPolicy: Always}`},
		{"Object{} over all containers", `"${Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}}}}"`, "/spec/template/spec/containers/0/imagePullPolicy", "Always"},
		{"a template in it", `{metadata: {labels: {tier: "${object.metadata.name}-tier"}}}`, "/metadata/labels", `{app: web, tier: web-tier}`},
		{"an absent optional leaves its key out", `{spec: {paused: "${object.spec.?gone}", minReadySeconds: 5}}`, "/spec/minReadySeconds", "5"},
		{"an int-or-string field takes both", `{spec: {strategy: {rollingUpdate: {maxSurge: "25%", maxUnavailable: 1}}}}`, "/spec/strategy/rollingUpdate", `{maxSurge: 25%, maxUnavailable: 1}`},
		{"SUB-04 status goes to status", `{status: {replicas: 3}}`, "/status/replicas", "3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := "patch: {applyConfiguration: " + tc.config + "}"
			subresource := ""
			if strings.HasPrefix(tc.name, "SUB-04") {
				spec, subresource = "patch: {subresource: status, applyConfiguration: "+tc.config+"}", "status"
			}
			res := apply(t, web, rule("r", spec))
			if len(res.Requests) != 1 || res.Requests[0].Subresource != subresource {
				t.Fatalf("%d requests, %v", len(res.Requests), verdicts(res))
			}
			pointer, err := patch.ParsePointer(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			var got any = res.Object
			for _, token := range pointer {
				switch v := got.(type) {
				case map[string]any:
					got = v[token]
				case []any:
					got = v[token[0]-'0']
				}
			}
			if diff := cmp.Diff(object(t, "{v: "+tc.want+"}")["v"], got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyConfigurationThatChangesNothing(t *testing.T) {
	for name, config := range map[string]string{
		"what is there":      `{spec: {replicas: 3, template: {spec: {containers: [{name: a, image: "a:1"}]}}}}`,
		"nothing":            `{}`,
		"an absent optional": `"${object.spec.?gone}"`,
		"Object{}":           `"${Object{}}"`,
		"a whole double":     `{spec: {replicas: 3.0}}`,
	} {
		t.Run(name, func(t *testing.T) {
			res := apply(t, web, rule("r", "patch: {applyConfiguration: "+config+"}"))
			if len(res.Requests) != 0 || res.Verdicts[0].Outcome != rules.Pass {
				t.Errorf("%d requests, %v", len(res.Requests), verdicts(res))
			}
		})
	}
}

// A configuration that changes nothing makes no JSON patch of what goes with it.
func TestNothingToApplyBesideAMergePatch(t *testing.T) {
	res := apply(t, web, rule("r", "patches: [{applyConfiguration: {spec: {replicas: 3}}}, {merge: {spec: {paused: true}}}]"))
	if len(res.Requests) != 1 || res.Requests[0].Type() != "application/merge-patch+json" {
		t.Errorf("%v", verdicts(res))
	}
}

func TestApplyConfigurationThatFails(t *testing.T) {
	for _, tc := range []struct{ name, config, want string }{
		{"an atomic list", `{spec: {template: {spec: {containers: [{name: a, args: [--y]}]}}}}`, "apply the configuration: spec.template.spec.containers[0].args: the schema makes this list or map atomic"},
		{"an atomic map", `{spec: {template: {spec: {nodeSelector: {disk: ssd}}}}}`, "apply the configuration: spec.template.spec.nodeSelector: the schema makes this list or map atomic"},
		{"a field that the schema does not have", `{spec: {replcas: 3}}`, "apply the configuration: spec.replcas: no such field in the schema"},
		{"a wrong type", `{spec: {replicas: "3"}}`, "apply the configuration: spec.replicas: wrong type: it is a string, and must be a number"},
		{"PAT-10 identity that is computed", `"${Object{metadata: Object.metadata{name: 'other'}}}"`, "/metadata/name"},
		{"a result that is no object", `"${[1]}"`, "must be a mapping"},
		{"labels that are no strings", `{metadata: {labels: {a: "${object.spec.replicas}"}}}`, "metadata.labels.a must be a string, but the expression gives a number: use string()"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := apply(t, web, rule("r", "patch: {applyConfiguration: "+tc.config+"}"))
			v := res.Verdicts[0]
			var evaluation *rules.EvaluationError
			if v.Outcome != rules.Error || !errors.As(v.Err, &evaluation) || !strings.Contains(v.Err.Error(), tc.want) {
				t.Errorf("%v, want %s", verdicts(res), tc.want)
			}
			if len(res.Requests) > 0 {
				t.Error("something is sent")
			}
		})
	}
}

// null in a configuration removes nothing: as in admission it is a value, and
// for a list or map one without members, which adds none.
func TestNullInAConfiguration(t *testing.T) {
	res := apply(t, web, rule("r", "patch: {applyConfiguration: {metadata: {labels: null}, spec: {replicas: null, template: {spec: {containers: null}}}}}"))
	want := object(t, web)
	want["spec"].(map[string]any)["replicas"] = nil
	if diff := cmp.Diff(want, res.Object); diff != "" {
		t.Errorf("%v (-want +got):\n%s", verdicts(res), diff)
	}
}

func TestUnknownSchemaDecidesNothing(t *testing.T) {
	set, problems := rules.Load(rules.Source{Name: "r.yaml", Data: []byte(rule("r", "patch: {applyConfiguration: {spec: {replicas: 5}}}") + "---\n" + rule("s", "patch: {merge: {spec: {paused: true}}}"))})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	if !set.All()[0].NeedsSchema || set.All()[1].NeedsSchema {
		t.Error("NeedsSchema")
	}
	res := rules.Evaluate(set.All(), rules.Input{Resource: deployments, Object: object(t, web)})
	if diff := cmp.Diff([]string{"r Error: the schema of the kind is not known", "s Patch"}, verdicts(res)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !errors.As(res.Verdicts[0].Err, new(*rules.UnknownError)) {
		t.Errorf("%T", res.Verdicts[0].Err)
	}
}

// Configurations, merge and JSON patches of several rules go out as one JSON
// patch.
func TestConfigurationsAreComposedWithOtherPatches(t *testing.T) {
	res := apply(t, web,
		rule("a", `patch: {merge: {metadata: {annotations: {team: x}}}}`),
		rule("b", `patch: {applyConfiguration: {spec: {template: {spec: {containers: [{name: b, imagePullPolicy: Always}]}}}}}`),
		rule("c", `condition: object.spec.template.spec.containers[1].?imagePullPolicy.orValue('') == 'Always'`+"\n\t"+`patch: {json: [{op: replace, path: /spec/replicas, value: 5}]}`),
		rule("d", `patch: {subresource: status, applyConfiguration: {status: {observedGeneration: 7}}}`))
	var got []string
	for i := range res.Requests {
		r := &res.Requests[i]
		ops, err := json.Marshal(r.Operations(nil))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range r.Rules {
			names = append(names, r.Name)
		}
		got = append(got, fmt.Sprintf("/%s %s by %s: %s", r.Subresource, r.Type(), strings.Join(names, " "), ops))
	}
	want := []string{
		`/ application/json-patch+json by a b c: [{"op":"add","path":"/metadata/annotations","value":{"team":"x"}},{"op":"replace","path":"/spec/replicas","value":5},{"op":"add","path":"/spec/template/spec/containers/1/imagePullPolicy","value":"Always"}]`,
		`/status application/json-patch+json by d: [{"op":"add","path":"/status","value":{"observedGeneration":7}}]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v (-want +got):\n%s", verdicts(res), diff)
	}
}

// Nothing is server-side applied. What is known to go wrong with that cannot:
// each row holds the property with applyConfiguration.
func TestPropertiesOfServerSideApply(t *testing.T) {
	label := func(name string) string {
		return rule(name, "patch: {applyConfiguration: {metadata: {labels: {"+name+": x}}}}")
	}
	for _, tc := range []struct {
		name, object string
		rules        []string
		check        func(t *testing.T, res rules.Result)
	}{
		{"PAT-14 no object is created: what is sent is a PATCH that names uid and resourceVersion", web, []string{label("a")}, func(t *testing.T, res rules.Result) {
			body, err := res.Requests[0].Body("uid-1", "42")
			if err != nil {
				t.Fatal(err)
			}
			want := `[{"op":"add","path":"/metadata/uid","value":"uid-1"},{"op":"add","path":"/metadata/resourceVersion","value":"42"},{"op":"add","path":"/metadata/labels/a","value":"x"}]`
			if res.Requests[0].Type() != "application/json-patch+json" || string(body) != want {
				t.Errorf("%s %s", res.Requests[0].Type(), body)
			}
		}},
		{"PAT-15 ownership of a field is no conflict: managedFields are neither read nor sent", strings.Replace(web, "namespace: shop,", "namespace: shop, managedFields: [{manager: hpa, operation: Update, subresource: scale, fieldsV1: {f:spec: {f:replicas: {}}}}],", 1),
			[]string{rule("r", "patch: {applyConfiguration: {spec: {replicas: 5}}}")}, func(t *testing.T, res rules.Result) {
				ops, _ := json.Marshal(res.Requests[0].Operations(nil))
				if string(ops) != `[{"op":"replace","path":"/spec/replicas","value":5}]` {
					t.Errorf("%s", ops)
				}
			}},
		{"PAT-16 an atomic list is not replaced behind anyone's back", web, []string{rule("r", "patch: {applyConfiguration: {spec: {template: {spec: {containers: [{name: a, args: [--y]}]}}}}}")}, func(t *testing.T, res rules.Result) {
			if len(res.Requests) > 0 || res.Verdicts[0].Outcome != rules.Error {
				t.Errorf("%v", verdicts(res))
			}
		}},
		{"PAT-17 two rules do not take each other's fields away", web, []string{label("a"), label("b")}, func(t *testing.T, res rules.Result) {
			want := map[string]any{"app": "web", "a": "x", "b": "x"}
			if diff := cmp.Diff(want, res.Object["metadata"].(map[string]any)["labels"]); diff != "" || len(res.Requests) != 1 {
				t.Errorf("%d requests (-want +got):\n%s", len(res.Requests), diff)
			}
		}},
		{"PAT-17 a rule that stops applying takes nothing away", strings.Replace(web, "{app: web}", "{app: web, a: x}", 1), []string{label("b")}, func(t *testing.T, res rules.Result) {
			want := map[string]any{"app": "web", "a": "x", "b": "x"}
			if diff := cmp.Diff(want, res.Object["metadata"].(map[string]any)["labels"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.check(t, apply(t, tc.object, tc.rules...)) })
	}
}

// MutatingAdmissionPolicy's own expressions run as they stand there.
func TestJSONPatchesOfAdmission(t *testing.T) {
	for _, tc := range []struct{ name, expression, want string }{
		{"operations", `[JSONPatch{op: "add", path: "/spec/paused", value: true}, JSONPatch{op: "replace", path: "/spec/replicas", value: 5}]`,
			`[{"op":"add","path":"/spec/paused","value":true},{"op":"replace","path":"/spec/replicas","value":5}]`},
		{"escapeKey", `[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/environment"), value: "test"}]`,
			`[{"op":"add","path":"/metadata/labels/example.com~1environment","value":"test"}]`},
		{"Object as a value, maps in lists", `[JSONPatch{op: "add", path: "/spec/template/spec/containers/-", value: Object.spec.template.spec.containers{name: "c", image: "c:1", env: [Object.spec.template.spec.containers.env{name: "X", value: "1"}]}}]`,
			`[{"op":"add","path":"/spec/template/spec/containers/-","value":{"env":[{"name":"X","value":"1"}],"image":"c:1","name":"c"}}]`},
		{"test, copy, move, remove", `[JSONPatch{op: "test", path: "/spec/replicas", value: 3}, JSONPatch{op: "copy", from: "/metadata/labels/app", path: "/metadata/labels/copy"}, JSONPatch{op: "remove", path: "/spec/template/metadata"}]`,
			`[{"op":"test","path":"/spec/replicas","value":3},{"op":"copy","path":"/metadata/labels/copy","from":"/metadata/labels/app"},{"op":"remove","path":"/spec/template/metadata"}]`},
		{"a test that fails is no match, and nothing is sent", `[JSONPatch{op: "test", path: "/spec/replicas", value: 4}, JSONPatch{op: "replace", path: "/spec/replicas", value: 5}]`, ""},
		{"a list that is empty where nothing is to be done", `has(object.spec.gone) ? [JSONPatch{op: "remove", path: "/spec/gone"}] : []`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			condition := "condition: object.spec.replicas == 3 && !has(object.spec.paused) && object.spec.template.spec.containers.size() == 2 && object.metadata.labels.size() == 1\n\t"
			if strings.HasPrefix(tc.name, "test, copy") {
				condition = "condition: \"!('copy' in object.metadata.labels)\"\n\t"
			}
			res := apply(t, web, rule("r", condition+"patch:\n\t  json: |-\n\t    ${"+tc.expression+"}"))
			if tc.want == "" {
				if len(res.Requests) > 0 || res.Verdicts[0].Outcome != rules.Pass {
					t.Errorf("%d requests, %v", len(res.Requests), verdicts(res))
				}
				return
			}
			if len(res.Requests) != 1 {
				t.Fatalf("%v", verdicts(res))
			}
			ops, err := json.Marshal(res.Requests[0].Operations(nil))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(ops)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
