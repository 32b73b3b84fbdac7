package openapi

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/jsonvalue"
)

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// object reads YAML as the API server's JSON is read: whole numbers are int64.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := decodeJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
  finalizers: [example.io/a]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: u1}]
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      tolerations: [{key: a, operator: Exists}]
      securityContext: {}
      containers:
      - name: app
        image: app:1
        args: [--verbose]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports:
        - {containerPort: 53, protocol: UDP}
        - {containerPort: 53, protocol: TCP}
        - {containerPort: 80}
        resources: {limits: {memory: 1Gi}}
      - name: sidecar
        image: sidecar:1
      initContainers: [{name: init, image: init:1}]
      volumes: [{name: cache, emptyDir: {}}, {name: conf, configMap: {name: conf}}]
      topologySpreadConstraints:
      - {topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}
`

// TestMergeByKey holds what changes, and that upstream does the same. PAT-11: siblings of a named container stay.
func TestMergeByKey(t *testing.T) {
	tests := []struct {
		name   string
		config string
		want   []Change
	}{
		{"container by name", `{spec: {template: {spec: {containers: [{name: sidecar, image: "sidecar:2"}]}}}}`,
			[]Change{{"replace", pod("containers", "1", "image"), "sidecar:2"}}},
		{"resources of a container keep its image and siblings",
			`{spec: {template: {spec: {containers: [{name: app, resources: {limits: {cpu: "1"}}}]}}}}`,
			[]Change{{"add", pod("containers", "0", "resources", "limits", "cpu"), "1"}}},
		{"new container is appended", `{spec: {template: {spec: {containers: [{name: log, image: "log:1"}]}}}}`,
			[]Change{{"add", pod("containers", "2"), map[string]any{"name": "log", "image": "log:1"}}}},
		{"container without a name has the default, which no container has", `{spec: {template: {spec: {containers: [{image: "x"}]}}}}`,
			[]Change{{"add", pod("containers", "2"), map[string]any{"image": "x"}}}},
		{"env by name", `{spec: {template: {spec: {containers: [{name: app, env: [{name: B, value: "3"}]}]}}}}`,
			[]Change{{"replace", pod("containers", "0", "env", "1", "value"), "3"}}},
		{"port by number and protocol", `{spec: {template: {spec: {containers: [{name: app, ports: [{containerPort: 53, protocol: UDP, name: dns}]}]}}}}`,
			[]Change{{"add", pod("containers", "0", "ports", "0", "name"), "dns"}}},
		{"port whose protocol is the default", `{spec: {template: {spec: {containers: [{name: app, ports: [{containerPort: 80, protocol: TCP, name: http}]}]}}}}`,
			[]Change{
				{"add", pod("containers", "0", "ports", "2", "name"), "http"},
				{"add", pod("containers", "0", "ports", "2", "protocol"), "TCP"},
			}},
		{"init container becomes a sidecar", `{spec: {template: {spec: {initContainers: [{name: init, restartPolicy: Always}]}}}}`,
			[]Change{{"add", pod("initContainers", "0", "restartPolicy"), "Always"}}},
		{"size limit of an emptyDir", `{spec: {template: {spec: {volumes: [{name: cache, emptyDir: {sizeLimit: 1Gi}}]}}}}`,
			[]Change{{"add", pod("volumes", "0", "emptyDir", "sizeLimit"), "1Gi"}}},
		{"spread constraint by both keys", `{spec: {template: {spec: {topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 2}]}}}}`,
			[]Change{{"add", pod("topologySpreadConstraints", "1"),
				map[string]any{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": int64(2)}}}},
		{"finalizers are a set", `{metadata: {finalizers: [example.io/b, example.io/a]}}`,
			[]Change{{"add", []string{"metadata", "finalizers", "0"}, "example.io/b"}}},
		{"label", `{metadata: {labels: {team: x}}}`, []Change{{"add", []string{"metadata", "labels", "team"}, "x"}}},
		{"annotations where there are none", `{metadata: {annotations: {a.b/c: x}}}`,
			[]Change{{"add", []string{"metadata", "annotations"}, map[string]any{"a.b/c": "x"}}}},
		{"the same values", `{metadata: {labels: {app: web}}, spec: {replicas: 2.0}}`, nil},
		{"empty map and list", `{metadata: {labels: {}, finalizers: []}}`, nil},
		{"null for a map with members", `{metadata: {labels: null}}`, nil},
		{"null for a scalar", `{spec: {replicas: null}}`, []Change{{"replace", []string{"spec", "replicas"}, nil}}},
		{"apiVersion and kind of its own", `{apiVersion: apps/v1, kind: Deployment}`, nil},
		{"nothing", `{}`, nil},
	}
	doc, err := builtinDocument()
	if err != nil {
		t.Fatal(err)
	}
	converter, typ := upstreamConverter(t, doc), mustBuiltin(t, deploymentKind)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			live, config := object(t, deployment), object(t, test.config)
			got, err := typ.Merge(live, config)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, Changes(live, got)); diff != "" {
				t.Error(diff)
			}
			want, err := upstreamMerge(converter, typ, live, config)
			if err != nil || !jsonvalue.Equal(got, want) {
				t.Errorf("upstream: %v, differences %v", err, Changes(want, got))
			}
			if test.want == nil && !same(live, got) {
				t.Error("nothing changed, and yet it is another object")
			}
			if diff := cmp.Diff(object(t, deployment), live); diff != "" {
				t.Errorf("the object was modified: %s", diff)
			}
		})
	}
}

func pod(path ...string) []string { return append([]string{"spec", "template", "spec"}, path...) }

func TestCheck(t *testing.T) {
	tests := []struct {
		name   string
		config string
		cause  error
		want   string
	}{
		{"tolerations", `{spec: {template: {spec: {tolerations: [{key: b}]}}}}`, ErrAtomic, "spec.template.spec.tolerations: " + ErrAtomic.Error()},
		{"nodeSelector", `{spec: {template: {spec: {nodeSelector: {a: b}}}}}`, ErrAtomic, "spec.template.spec.nodeSelector: " + ErrAtomic.Error()},
		{"args", `{spec: {template: {spec: {containers: [{name: app, args: [a]}]}}}}`, ErrAtomic,
			"spec.template.spec.containers[0].args: " + ErrAtomic.Error()},
		{"empty list", `{spec: {template: {spec: {tolerations: []}}}}`, ErrAtomic, "spec.template.spec.tolerations: " + ErrAtomic.Error()},
		{"selector", `{spec: {selector: {matchLabels: {a: b}}}}`, ErrAtomic, "spec.selector: " + ErrAtomic.Error()},
		{"elements of ownerReferences", `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: u1, controller: true}]}}`,
			ErrAtomic, "metadata.ownerReferences[0]: " + ErrAtomic.Error()},
		{"unknown field", `{spec: {replcas: 3}}`, ErrUnknownField, "spec.replcas: no such field in the schema"},
		{"two unknown fields", `{spec: {b: 3, a: 3}}`, ErrUnknownField, "spec.a: no such field in the schema\nspec.b: no such field in the schema"},
		{"number as a label", `{metadata: {labels: {a.b/c: 3}}}`, ErrWrongType, `metadata.labels["a.b/c"]: wrong type: it is a number, and must be a string`},
		{"string as a number", `{spec: {replicas: "3"}}`, ErrWrongType, "spec.replicas: wrong type: it is a string, and must be a number"},
		{"map as a list", `{spec: {template: {spec: {containers: {name: app}}}}}`, ErrWrongType,
			"spec.template.spec.containers: wrong type: it is a map, and must be a list"},
		{"list as a map", `{metadata: {labels: [a]}}`, ErrWrongType, "metadata.labels: wrong type: it is a list, and must be a map"},
		{"null element", `{spec: {template: {spec: {containers: [null]}}}}`, ErrElement,
			"spec.template.spec.containers[0]: list element without an identity of its own: it is not a map"},
		{"same key twice", `{spec: {template: {spec: {containers: [{name: a}, {name: a}]}}}}`, ErrElement,
			"spec.template.spec.containers[1]: list element without an identity of its own: an element before it has the same"},
		{"another kind", `{apiVersion: apps/v1beta1}`, ErrKind, "apiVersion: not the kind of the object: it is apps/v1"},
		{"int or string", `{spec: {strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 10%}}}}`, nil, ""},
		{"quantities", `{spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}}}`, nil, ""},
		{"null", `{spec: {replicas: null, template: null}}`, nil, ""},
	}
	typ := mustBuiltin(t, deploymentKind)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := object(t, test.config)
			err := typ.Check(config)
			if !errors.Is(err, test.cause) || test.cause != nil && err.Error() != test.want {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
			if _, mergeErr := typ.Merge(object(t, deployment), config); !reflect.DeepEqual(err, mergeErr) {
				t.Errorf("Merge says %v", mergeErr)
			}
		})
	}
}

func TestCheckDoesNotListEverything(t *testing.T) {
	config := map[string]any{}
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		config[string(c)] = "x"
	}
	err := mustBuiltin(t, deploymentKind).Check(config)
	if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != maxProblems {
		t.Errorf("%d problems, want %d", n, maxProblems)
	}
}

// TestErrorsHoldNoValues: a Secret's data may be in a configuration as well as in the object.
func TestErrorsHoldNoValues(t *testing.T) {
	typ := mustBuiltin(t, schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	const secret = "c2VjcmV0"
	for _, config := range []string{
		`{data: {a: [` + secret + `]}}`, `{data: [` + secret + `]}`, `{immutable: ` + secret + `}`,
		`{metadata: {finalizers: [{x: ` + secret + `}]}}`, `{metadata: {finalizers: [` + secret + `, ` + secret + `]}}`,
		`{apiVersion: ` + secret + `}`,
	} {
		err := typ.Check(object(t, config))
		if err == nil || containsValue(err, secret) {
			t.Errorf("%s: %v", config, err)
		}
	}
	_, err := typ.Merge(object(t, `{apiVersion: v1, kind: Secret, metadata: {finalizers: [a, `+secret+`, `+secret+`, [`+secret+`]]}}`),
		object(t, `{metadata: {finalizers: [b]}}`))
	if err == nil || containsValue(err, secret) {
		t.Errorf("bad object: %v", err)
	}
}

func TestMergeIntoAnotherKind(t *testing.T) {
	if _, err := mustBuiltin(t, deploymentKind).Merge(object(t, `{apiVersion: apps/v1, kind: DaemonSet}`), nil); err == nil {
		t.Error("merged")
	}
}

// TestMergeWithDuplicatesInTheObject: the API server admits env variables of one name.
func TestMergeWithDuplicatesInTheObject(t *testing.T) {
	live := object(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, env: [{name: X, value: "1"}, {name: X, value: "2"}, {name: Z, value: "3"}]}]}}`)
	typ := mustBuiltin(t, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	got, err := typ.Merge(live, object(t, `{spec: {containers: [{name: a, env: [{name: Z, value: "4"}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{{"replace", []string{"spec", "containers", "0", "env", "2", "value"}, "4"}}
	if diff := cmp.Diff(want, Changes(live, got)); diff != "" {
		t.Error(diff)
	}
}

// TestMergeLeavesTheRestExactly: whatever is in an object of whatever kind, types of numbers, empty maps, nulls and fields that
// no schema knows included, comes out as it went in.
func TestMergeLeavesTheRestExactly(t *testing.T) {
	config := map[string]any{"metadata": map[string]any{"labels": map[string]any{"added": "x"}}}
	for _, gvk := range builtinKinds(t) {
		typ := mustBuiltin(t, gvk)
		for seed := range uint64(20) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 3)), schema: typ.schema}
			live := g.object(typ)
			live["unknownToTheSchema"] = map[string]any{"a": []any{nil, map[string]any{}, int64(1) << 60, 1.0}}
			live["metadata"] = map[string]any{"labels": map[string]any{"a": "b"}, "name": "x"}
			got, err := typ.Merge(live, config)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", gvk, seed, err)
			}
			restored := clone(got).(map[string]any)
			delete(restored["metadata"].(map[string]any)["labels"].(map[string]any), "added")
			if !reflect.DeepEqual(restored, live) {
				t.Fatalf("%s, seed %d: not as it was", gvk, seed)
			}
			for key := range live {
				if key != "metadata" && !same(live[key], got[key]) {
					t.Fatalf("%s: %s is not shared", gvk, key)
				}
			}
		}
	}
}

func TestTypeIsSafeForConcurrentUse(t *testing.T) {
	typ, err := newBuiltinType(deploymentKind) // not yet used by any other test
	if err != nil {
		t.Fatal(err)
	}
	live := object(t, deployment)
	config := object(t, `{spec: {template: {spec: {containers: [{name: app, ports: [{containerPort: 1}]}], volumes: [{name: x, emptyDir: {}}]}}}}`)
	wait := sync.WaitGroup{}
	for range 8 {
		wait.Go(func() {
			if _, err := typ.Merge(live, config); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}
