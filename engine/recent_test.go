package engine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
	"github.com/rectifier-dev/rectifier/rules"
)

func TestRecentLogIsBounded(t *testing.T) {
	var l recentLog
	at := time.Now()
	for i := range 10 * maxActivity {
		l.add(&activity{kind: Fixed, last: at.Add(time.Duration(i) * time.Second), rules: []string{"r"}, resource: configmaps, name: fmt.Sprint(i)})
	}
	got := l.list()
	if len(got) != maxActivity || got[0].Name != "999" || got[maxActivity-1].Name != "900" {
		t.Errorf("%d are kept, from %s to %s; want the last %d, the latest first", len(got), got[0].Name, got[len(got)-1].Name, maxActivity)
	}
	if cap(l.entries) > 2*maxActivity {
		t.Errorf("they stand in room for %d", cap(l.entries))
	}
	if n := len(l.lastFixes()); n != 1 {
		t.Errorf("last fixes of %d rules, want 1", n)
	}
}

// What happens again moves up, and is counted: a fight does not push out what
// else there is.
func TestRepetitionsAreOneActivity(t *testing.T) {
	var l recentLog
	at := time.Now().Round(0)
	note := func(kind ActivityKind, name, field string) {
		at = at.Add(time.Second)
		a := &activity{kind: kind, last: at, rules: []string{"r"}, resource: configmaps, name: name}
		a.changes.add(fieldChange{name: field})
		l.add(a)
	}
	start := at
	note(Fixed, "other", "data.a")
	for range 300 {
		note(Fixed, "fought", "data.a")
		note(Fixed, "fought too", "data.a")
	}
	note(Fixed, "fought", "data.b")
	note(Held, "fought", "data.a")
	type line struct {
		Kind        ActivityKind
		Name        string
		Times       int
		First, Last time.Duration
	}
	var got []line
	for _, a := range l.list() {
		got = append(got, line{a.Kind, a.Name, a.Times, a.First.Sub(start) / time.Second, a.Time.Sub(start) / time.Second})
	}
	want := []line{{Held, "fought", 1, 603, 603}, {Fixed, "fought", 1, 602, 602}, {Fixed, "fought too", 300, 3, 601}, {Fixed, "fought", 300, 2, 600}, {Fixed, "other", 1, 1, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An entry does not keep an object alive, nor a megabyte of it.
func TestChangesAreCopiesOfABoundedSize(t *testing.T) {
	huge := strings.Repeat("äöü", 1<<18)
	list := make([]any, 5000)
	for i := range list {
		list[i] = map[string]any{"n": int64(i), "text": huge}
	}
	room := &trimmer{left: maxChangeBytes}
	values := map[string]any{"list": list, "text": huge, "null": nil, "yes": true}
	for i := range 1000 {
		values[fmt.Sprintf("key-%d-%s", i, huge)] = huge
	}
	for range maxChanges {
		text := inYAML(room.copy(values))
		if len(text) > 2*maxChangeBytes+1000 {
			t.Fatalf("a value is %d bytes long", len(text))
		}
	}
	short := map[string]any{"a": []any{int64(1), "x", map[string]any{"b": nil}}}
	kept := (&trimmer{left: maxChangeBytes}).copy(short)
	if diff := cmp.Diff(any(short), kept); diff != "" {
		t.Errorf("a short value is changed (-want +got):\n%s", diff)
	}
	short["a"] = nil
	if inYAML(kept) == inYAML(short) {
		t.Error("the value is no copy")
	}
}

func TestFieldNames(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{}}, "0": "x"}}
	for path, want := range map[string]string{
		"spec containers 0 image":     "spec.containers[0].image",
		"spec 0":                      "spec.0",
		"metadata labels app.io/name": "metadata.labels['app.io/name']",
	} {
		if got := fieldName(object, strings.Fields(path)); got != want {
			t.Errorf("%s is named %s, want %s", path, got, want)
		}
	}
}

func TestShield(t *testing.T) {
	sources := map[string]string{
		"lookup-yes": `
resource: {version: v1, resource: configmaps}
lookups: [{name: token, resource: {version: v1, resource: secrets}, namespace: "${object.metadata.namespace}"}]
patch: {merge: {data: {password: "${lookups.token.size() == 0 ? '' : lookups.token[0].data.password}"}}}`,
		"copied-on-yes": `
resource: {version: v1, resource: configmaps}
patch: {merge: {metadata: {annotations: {copy: "${object.data.password}"}}}}`,
		"copied-twice-yes": `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {again: "${object.metadata.annotations.copy}"}}}`,
		"looked-up-yes": `
resource: {group: apps, version: v1, resource: deployments}
lookups: [{name: config, resource: {version: v1, resource: configmaps}, namespace: "${object.metadata.namespace}"}]
patch: {merge: {metadata: {annotations: {x: "${string(lookups.config.size())}"}}}}`,
		"part-yes": `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {user: "u-${object.data.user.substring(0, 4)}"}}}}`,
		"label-no": `
resources: [{version: v1, resource: secrets}, {version: v1, resource: configmaps}]
patch: {merge: {metadata: {labels: {team: a}}}}`,
		"elsewhere-no": `
resource: {version: v1, resource: configmaps}
patch: {merge: {data: {other: "${object.data.?mode.orValue('')}"}}}`,
		"another-resource-no": `
resource: {version: v1, resource: services}
patch: {merge: {metadata: {annotations: {copy: "${object.metadata.annotations.other}"}}}}`,
	}
	var files []rules.Source
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		files = append(files, rules.Source{Name: name, Data: []byte(rule(name, sources[name]+"\nmatch: {names: [x]}"))})
	}
	set, problems := rules.Load(files...)
	for _, p := range problems {
		t.Fatal(p.Detail())
	}
	s := newShield(set)
	for _, r := range set.All() {
		if want := strings.HasSuffix(r.Name, "-yes"); s.rules[r] != want {
			t.Errorf("rule %s is shielded: %v", r.Name, s.rules[r])
		}
	}
}

// SEC-01 for the status: what is in a Secret, and what rules make of it, is not in
// it, whichever rule changes it and however often.
func TestNoSecretIsInTheStatus(t *testing.T) {
	f := newFixture(t)
	const password, user = "s3cr3t-passw0rd", "s3cr3t-us3r"
	encoded := base64.StdEncoding.EncodeToString([]byte(password))
	f.create(secrets, `
apiVersion: v1
kind: Secret
metadata:
  name: db
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"%s"}}', note: x}
data: {password: %s, user: %s}`, encoded, encoded, base64.StdEncoding.EncodeToString([]byte(user)))
	f.create(configmaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: app, labels: {stage: a}}}`)
	set := []string{
		rule("secret-label", `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {labels: {team: blue}}}}`),
		rule("secret-annotations", `
resource: {version: v1, resource: secrets}
patch: {merge: {metadata: {annotations: null}}}`),
		rule("secret-data", `
resource: {version: v1, resource: secrets}
patch: {merge: {data: {extra: ZXh0cmE=, user: null}}}`),
		rule("secret-copy", `
resource: {version: v1, resource: secrets}
condition: "!('copy' in object.metadata.?labels.orValue({}))"
patch: {json: [{op: copy, from: /data/password, path: /metadata/labels/copy}]}`),
		rule("to-config", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
lookups: [{name: db, resource: {version: v1, resource: secrets}, namespace: NS}]
condition: lookups.db.size() > 0
patch:
  merge:
    data:
      password: "${lookups.db[0].data.password}"
      "${'key-' + lookups.db[0].data.password.lowerAscii()}": key
event: {message: "has ${object.data.?password.orValue('none')}"}`),
		rule("z-config-copy", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
condition: has(object.data.password)
patch: {merge: {metadata: {annotations: {copy: "${object.data.password}"}}}}
event: {message: "copied ${object.data.password}"}`),
		rule("z-config-stage", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
patch: {merge: {metadata: {labels: {stage: b}}}}
event: {message: "stage was ${object.metadata.labels.stage}"}`),
		rule("z-fails", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [app]}
condition: int(object.data.password) > 0
patch: {merge: {data: {mode: b}}}`),
	}
	f.start(set...)
	f.eventually(soon, configmaps, "app", encoded, "data", "password")
	f.eventually(soon, configmaps, "app", encoded, "metadata", "annotations", "copy")
	f.eventually(soon, secrets, "db", "blue", "metadata", "labels", "team")
	// Now each of them by itself: what was computed before is in the object.
	f.merge(configmaps, "app", `{"metadata":{"annotations":null,"labels":{"stage":"c"}}}`)
	f.eventually(soon, configmaps, "app", encoded, "metadata", "annotations", "copy")
	f.merge(configmaps, "app", `{"data":{"password":"changed"}}`)
	f.eventually(soon, configmaps, "app", encoded, "data", "password")
	f.eventually(soon, configmaps, "app", "b", "metadata", "labels", "stage")
	var status Status
	testcluster.Eventually(t, soon, func() error {
		status = f.engine.Status()
		missing := []string{}
		for _, r := range []string{"secret-label", "secret-annotations", "secret-data", "secret-copy", "to-config", "z-config-copy", "z-config-stage", "z-fails"} {
			if !slices.ContainsFunc(status.Recent, func(a Activity) bool { return slices.Contains(a.Rules, r) }) {
				missing = append(missing, r)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("nothing is told of %q", missing)
		}
		return nil
	})
	text, err := json.MarshalIndent(status, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{password, user, encoded, strings.ToLower(encoded), base64.StdEncoding.EncodeToString([]byte(user)), "ZXh0cmE="} {
		if i := strings.Index(string(text), value); i >= 0 {
			t.Errorf("%s is in the status: …%s…", value, text[max(0, i-500):min(len(text), i+100)])
		}
	}
	// What is no secret is shown all the same.
	for _, shown := range []string{"team: blue", "stage was c", `"before": "c"`, `*** (5 bytes)`} {
		if !strings.Contains(string(text), shown) {
			t.Errorf("%s is not in the status:\n%s", shown, text)
		}
	}
}
