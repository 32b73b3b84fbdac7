package engine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
)

// secretRules change Secrets, and copy what is in them, in all ways that there are.
var secretRules = map[string]string{
	"secret-label": `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {team: blue}}}}`,
	"secret-annotations": `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {annotations: null}}}`,
	"secret-data": `
resource: {version: v1, resource: secrets}
patch: {merge: {data: {extra: ZXh0cmE=, user: null}}}`,
	"secret-copy": `
resource: {version: v1, resource: secrets}
condition: "!('copy' in object.metadata.?labels.orValue({}))"
patch: {json: [{op: copy, from: /data/password, path: /metadata/labels/copy}]}`,
	"secret-copy-tells": `
resource: {version: v1, resource: secrets}
match: {namespaces: [NS], names: [copies]}
condition: has(object.metadata.labels.copy)
patch: {merge: {metadata: {labels: {told: all}}}}
event: {message: "the copy was ${object.metadata.labels.copy}"}`,
	"secret-uncopy": `
resource: {version: v1, resource: secrets}
match: {namespaces: [NS], names: [copies]}
condition: has(object.metadata.labels.own)
patch: {merge: {metadata: {labels: {own: null, other: plain}}}}
event: {message: "it was ${object.metadata.labels.own}"}`,
	"to-config": `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
lookups: [{name: db, resource: {version: v1, resource: secrets}, namespace: NS, where: {metadata.name: db}}]
condition: lookups.db.size() > 0
patch:
  merge:
    data:
      password: "${lookups.db[0].data.password}"
      "${'key-' + lookups.db[0].data.password.lowerAscii()}": key
event: {message: "has ${object.data.?password.orValue('none')}"}`,
	"z-config-copy": `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
condition: has(object.data.password)
patch: {merge: {metadata: {annotations: {copy: "${object.data.password}"}}}}
event: {message: "copied ${object.data.password}"}`,
	"z-config-stage": `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
patch: {merge: {metadata: {labels: {stage: b}}}}
event: {message: "stage was ${object.metadata.labels.stage}"}`,
	"z-config-uncopy": `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
patch: {merge: {metadata: {labels: {own: null}}}}`,
	"z-fails": `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
condition: "{'': true}[object.data.password]"
patch: {merge: {data: {mode: b}}}`,
}

const secretPassword, secretUser = "s3cr3t-passw0rd", "s3cr3t-us3r"

var encodedPassword, encodedUser = base64.StdEncoding.EncodeToString([]byte(secretPassword)), base64.StdEncoding.EncodeToString([]byte(secretUser))

// wantNoSecret fails if something that is in a Secret is in a text.
func wantNoSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, value := range []string{secretPassword, secretUser, encodedPassword, strings.ToLower(encodedPassword), encodedUser, "ZXh0cmE="} {
		if i := strings.Index(text, value); i >= 0 {
			t.Errorf("%s is in %s: …%s…", value, where, text[max(0, i-500):min(len(text), i+100)])
		}
	}
}

// SEC-01 for the status and for Events: what is in a Secret, and what rules and
// people make of it, is not told, whichever rule changes it and however often.
func TestNoSecretIsInTheStatus(t *testing.T) {
	f := newFixture(t)
	f.create(secrets, `
apiVersion: v1
kind: Secret
metadata:
  name: db
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"%s"}}', note: x}
data: {password: %s, user: %s}`, encodedPassword, encodedPassword, encodedUser)
	f.create(secrets, `{apiVersion: v1, kind: Secret, metadata: {name: copies, labels: {own: %s, other: %s}}, data: {password: %s}}`, encodedPassword, secretPassword, encodedPassword)
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: app, labels: {stage: a, own: %s}}}`, encodedPassword)
	var set []string
	for name, spec := range secretRules {
		set = append(set, rule(name, spec))
	}
	f.start(set...)
	f.eventually(soon, configmaps, "app", encodedPassword, "data", "password")
	f.eventually(soon, configmaps, "app", encodedPassword, "metadata", "annotations", "copy")
	f.eventually(soon, secrets, "db", "blue", "metadata", "labels", "team")
	f.eventually(soon, secrets, "copies", "all", "metadata", "labels", "told")
	// Now each of them by itself: what was computed before is in the object.
	f.merge(configmaps, "app", `{"metadata":{"annotations":null,"labels":{"stage":"c","own":"`+encodedPassword+`"}}}`)
	f.eventually(soon, configmaps, "app", encodedPassword, "metadata", "annotations", "copy")
	f.merge(configmaps, "app", `{"data":{"password":"changed"}}`)
	f.eventually(soon, configmaps, "app", encodedPassword, "data", "password")
	f.eventually(soon, configmaps, "app", "b", "metadata", "labels", "stage")
	f.merge(secrets, "copies", `{"metadata":{"labels":{"told":null,"own":"`+encodedPassword+`"}}}`)
	f.eventually(soon, secrets, "copies", "all", "metadata", "labels", "told")
	text := f.statusOf(set)
	wantNoSecret(t, "the status", text)
	// What is no secret is shown all the same.
	for _, shown := range []string{`"after": "blue"`, "stage was c", `"before": "c"`, `*** (5 bytes)`, `"after": "plain"`} {
		if !strings.Contains(text, shown) {
			t.Errorf("%s is not in the status:\n%s", shown, text)
		}
	}
	f.wantEvent("copies", "changed by rule secret-copy-tells")
	f.wantEvent("copies", "changed by rule secret-uncopy")
	f.wantEvent("app", "stage was c")
	f.wantEvent("app", "rule z-fails: evaluate the condition: it failed")
	for _, name := range []string{"db", "copies", "app"} {
		wantNoSecret(t, "Events", strings.Join(f.eventsOn(name), "\n"))
	}
}

// statusOf is the status as JSON when it tells of all of the rules.
func (f *fixture) statusOf(set []string) string {
	f.Helper()
	var status Status
	testcluster.Eventually(f, soon, func() error {
		status = f.engine.Status()
		missing := []string{}
		for _, r := range status.Rules {
			if !slices.ContainsFunc(status.Recent, func(a Activity) bool { return slices.Contains(a.Rules, r.Name) }) {
				missing = append(missing, r.Name)
			}
		}
		if len(missing) > 0 || len(status.Rules) != len(set) {
			return fmt.Errorf("%d rules; nothing is told of %q", len(status.Rules), missing)
		}
		return nil
	})
	text, err := json.MarshalIndent(status, "", " ")
	if err != nil {
		f.Fatal(err)
	}
	return string(text)
}

// offlineConfig is of a cluster that is not there.
var offlineConfig = &rest.Config{Host: "http://127.0.0.1:1"}

// offlineDecision is about an object of an engine that has no cluster.
func offlineDecision(t *testing.T, object map[string]any, specs map[string]string) *decision {
	t.Helper()
	var files []string
	for name, spec := range specs {
		files = append(files, rule(name, spec))
	}
	f := &fixture{T: t, ns: "ns"}
	e, err := New(f.options(offlineConfig, Options{}, files...))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: object}
	return &decision{
		Engine: e, policy: e.policy.Load(), key: Key{Resource: configmaps.GroupResource(), Namespace: "ns", Name: u.GetName()},
		view: view{configmaps, u}, replicasPath: []string{"spec", "size"},
	}
}

// evaluated is what one rule of a decision makes of the object.
func (d *decision) evaluated(t *testing.T, name string) rules.Result {
	t.Helper()
	result := rules.Evaluate([]*rules.Rule{d.policy.rules.Get(name)}, rules.Input{Resource: d.resource, Object: d.object.Object, ReplicasPath: d.replicasPath})
	if len(result.Requests) != 1 || result.Verdicts[0].Err != nil {
		t.Fatalf("rule %s: %+v", name, result.Verdicts)
	}
	return result
}

// fromSecret is a rule that writes what is in a Secret.
func fromSecret(patch string) string {
	return "resource: {version: v1, resource: configmaps}\n" +
		"lookups: [{name: db, resource: {version: v1, resource: secrets}, namespace: NS}]\npatch: " + patch
}

// The replica count is where a resource keeps it, whatever a Scale calls that.
func TestChangesThroughScale(t *testing.T) {
	sized := map[string]any{"metadata": map[string]any{"name": "c", "namespace": "ns"}, "spec": map[string]any{"size": int64(1)}}
	toFive := "resource: {version: v1, resource: configmaps}\npatch: {subresource: scale, merge: {spec: {replicas: 5}}}"
	want := map[string][]FieldChange{
		"shielded by scale": {{Field: "spec.replicas", Hidden: true}},
		"shielded by size":  {{Field: "spec.size", Hidden: true}},
		"shown":             {{Field: "spec.size", Before: "1", After: "5"}},
	}
	for name, other := range map[string]string{
		"shielded by scale": fromSecret(`{subresource: scale, merge: {spec: {replicas: "${lookups.db.size()}"}}}`),
		"shielded by size":  fromSecret(`{merge: {spec: {size: "${lookups.db.size()}"}}}`),
		"shown":             fromSecret(`{merge: {spec: {replicas: "${lookups.db.size()}"}}}`), // not the count
	} {
		t.Run(name, func(t *testing.T) {
			d := offlineDecision(t, sized, map[string]string{"other": other, "scale": toFive})
			result := d.evaluated(t, "scale")
			request := result.Requests[0]
			request.Rules = append(request.Rules, d.policy.rules.Get("other")) // which has failed
			d.noteChange(Fixed, &request, result.Verdicts)
			if diff := cmp.Diff(want[name], d.recent.list()[0].Changes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A copy is not shown when it goes, either.
func TestOldCopiesAreHidden(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"name": "c", "namespace": "ns", "annotations": map[string]any{"gone": secretPassword, "other": secretPassword, "plain": "a"}},
		"data":     map[string]any{"password": secretPassword},
	}
	d := offlineDecision(t, object, map[string]string{
		"copies": fromSecret(`{merge: {data: {password: "${lookups.db[0].data.password}"}}}`),
		"tidy":   "resource: {version: v1, resource: configmaps}\npatch: {merge: {metadata: {annotations: {gone: null, other: b, plain: b}}}}",
	})
	result := d.evaluated(t, "tidy")
	d.noteChange(Fixed, &result.Requests[0], result.Verdicts)
	want := []FieldChange{
		{Field: "metadata.annotations.gone", Hidden: true}, {Field: "metadata.annotations.other", Hidden: true},
		{Field: "metadata.annotations.plain", Before: "a", After: "b"},
	}
	if diff := cmp.Diff(want, d.recent.list()[0].Changes, cmpopts.SortSlices(func(a, b FieldChange) bool { return a.Field < b.Field })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Keys of maps that are computed from a Secret, by whatever detour, are not told
// when their rule gives way.
func TestHoldsTellNoSecretKeys(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"name": "c", "namespace": "ns", "uid": "u"}, "data": map[string]any{"password": secretPassword}}
	d := offlineDecision(t, object, map[string]string{
		"copies": fromSecret(`{merge: {data: {password: "${lookups.db[0].data.password}"}}}`),
		"keys":   "resource: {version: v1, resource: configmaps}\npatch: {merge: {metadata: {annotations: {\"${'key-' + object.data.password}\": x}}}}",
	})
	result := d.evaluated(t, "keys")
	d.tellHold(t.Context(), result.Verdicts[0], d.fight(t, result))
	text, err := json.Marshal(d.Status())
	if err != nil {
		t.Fatal(err)
	}
	report, _ := d.readiness()
	for where, told := range map[string]string{"the status": string(text), "readyz": report, "the Event": (<-d.recorder.warnings).Note} {
		wantNoSecret(t, where, told)
		if !strings.Contains(told, "metadata.annotations") {
			t.Errorf("%s does not name the field: %s", where, told)
		}
	}
}

// fight has the change of a result made again and again until its rule gives way.
func (d *decision) fight(t *testing.T, result rules.Result) fight {
	t.Helper()
	v := result.Verdicts[0]
	for range DefaultContentionCount {
		d.noted = nil
		d.noteWrites(result.Verdicts, "")
	}
	f, yes := d.contentions.giveWay(d.object.GetUID(), d.author(v.Rule), v.Change.Digest(), d.now)
	if !yes {
		t.Fatal("the rule does not give way")
	}
	return f
}
