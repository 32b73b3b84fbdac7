package manifest

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rectifier-dev/rectifier/internal/yamldoc"
)

func TestObjectsOfAFile(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string // path kind/name
	}{
		"nothing":            {"", nil},
		"separators only":    {"---\n# Source: chart/t.yaml\n---\n", nil},
		"comment, separator": {"# c\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", []string{" ConfigMap/a"}},
		"empty list":         {"apiVersion: v1\nkind: List\nitems: []\n", nil},
		"list without items": {"apiVersion: v1\nkind: List\nitems:\n", nil},
		"lists": {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n- apiVersion: apps/v1\n  kind: DeploymentList\n  metadata: {resourceVersion: '1'}\n  items: [{metadata: {name: b}}]\n",
			[]string{"items[0] A/a", "items[1].items[0] Deployment/b"}},
		"an object called a list": {"apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\nitems: [{a: b}]\n", []string{" AllowList/a"}},
		"json, one after another": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"B","metadata":{"name":"b"}}`, []string{" A/a", " B/b"}},
		"bom and crlf":            {"\ufeffapiVersion: v1\r\nkind: A\r\nmetadata: {name: a}\r\n---\r\nnull\r\n", []string{" A/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(t, tc.text)
			var got []string
			for _, o := range f.Objects() {
				got = append(got, fmt.Sprintf("%s %s/%s", o.Path(), o.Value()["kind"], o.Value()["metadata"].(map[string]any)["name"]))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := output(t, f); got != tc.text {
				t.Errorf("unchanged text came out as %q", got)
			}
		})
	}
}

func TestParseErrorsNameFieldAndPlace(t *testing.T) {
	const head = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"
	for text, want := range map[string]string{
		head + "  annotations: {a: yes, b: x}\n":                                 "m.yaml:5:20: metadata.annotations[a]: must be string, got bool: YAML reads yes so, quote it",
		head + "  annotations:\n    b: x\n    example.io/expected-replicas: 3\n": "m.yaml:7:35: metadata.annotations[example.io/expected-replicas]: must be string, got integer: YAML reads 3 so, quote it",
		head + "  labels: [a]\n":                                                 "m.yaml:5:11: metadata.labels: must be an object, got list",
		"apiVersion: v1\nkind: A\nmetadata: {name: 123}\n":                       "m.yaml:3:18: metadata.name: must be string, got integer: YAML reads 123 so, quote it",
		"apiVersion: v1\nkind: A\nmetadata: x\n":                                 "m.yaml:3:11: metadata: must be an object, got string",
		"- a\n":                                                                  "m.yaml:1:1: must be an object, got list",
		"kind: A\n":                                                              "m.yaml:1:1: apiVersion: must be a non-empty string, got nothing",
		"apiVersion: v1\nkind: 3\n":                                              "m.yaml:2:7: kind: must be a non-empty string, got integer",
		"apiVersion: v1\nkind: List\nitems:\n- x\n":                              "m.yaml:4:3: items[0]: must be an object, got string",
		"apiVersion: v1\nkind: List\nitems:\n- " + `{"kind":"A"}` + "\n":         "m.yaml:4:3: items[0].apiVersion: must be a non-empty string, got nothing",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: A, metadata: {labels: {a: 1}}}]\n": "m.yaml:3:58: items[0].metadata.labels[a]: must be string, got integer: YAML reads 1 so, quote it",
		"apiVersion: v1\nkind: ConfigMap\ndata: {y: '1', n: '2', on: '3'}\n":                           `m.yaml:3:24: duplicate key: on and y (line 3) both mean "true" in YAML 1.1; quote them if they are meant as strings`,
	} {
		_, err := Parse("m.yaml", []byte(text))
		var e *yamldoc.Error
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestNullMapsAreAbsentAndStayInTheText(t *testing.T) {
	text := "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  annotations: # none\n  labels: null\nspec: {x: null}\n"
	f := parse(t, text)
	o := f.Objects()[0]
	want := map[string]any{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}
	if diff := cmp.Diff(want, o.Value()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if err := o.Update(mergePatch(t, o.Value(), []byte(`{"metadata":{"annotations":{"team":"x"}},"spec":{"x":1}}`))); err != nil {
		t.Fatal(err)
	}
	got := output(t, f)
	wantText := strings.Replace(text, "annotations: # none\n", "annotations: # none\n    team: x\n", 1)
	wantText = strings.Replace(wantText, "{x: null}", "{x: 1}", 1)
	if diff := cmp.Diff(wantText, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUpdateCopiesAndCanBeTakenBack(t *testing.T) {
	text := "apiVersion: v1\nkind: A\nspec: {num: 1}\n"
	f := parse(t, text)
	o := f.Objects()[0]
	want := maps.Clone(o.Value())
	spec := map[string]any{"num": 2, "gone": nil}
	want["spec"] = spec
	if err := o.Update(want); err != nil {
		t.Fatal(err)
	}
	spec["num"] = 3
	if got := output(t, f); got != "apiVersion: v1\nkind: A\nspec: {num: 2}\n" || !o.Changed() {
		t.Errorf("got %q", got)
	}
	if err := o.Update(o.Value()); err != nil || o.Changed() || output(t, f) != text {
		t.Errorf("taken back: %q, %v", output(t, f), err)
	}
	if err := o.Update(map[string]any{"a": struct{}{}}); err == nil {
		t.Error("a struct was accepted")
	}
}

// One object of a list that needs a coarse edit does not make the edits of the others coarse.
func TestAnchorsInOneItemLeaveTheOthersAlone(t *testing.T) {
	text := "apiVersion: v1\nkind: List\nitems:\n"
	for i := range 20 {
		anchor, alias := "", ""
		if i == 7 {
			anchor, alias = " &x", "  copy: *x\n"
		}
		text += fmt.Sprintf("- apiVersion: v1\n  kind: A\n  metadata: {name:   a%d} # odd\n  spec:%s\n    num: 1   # %d\n%s", i, anchor, i, alias)
	}
	f := parse(t, text)
	for _, o := range f.Objects() {
		if err := o.Update(mergePatch(t, o.Value(), []byte(`{"spec":{"num":2}}`))); err != nil {
			t.Fatal(err)
		}
	}
	got := output(t, f)
	for i := range 20 {
		line := fmt.Sprintf("    num: 2   # %d\n", i)
		if strings.Contains(got, line) != (i != 7) {
			t.Errorf("item %d:\n%s", i, got)
		}
	}
	if n := strings.Count(got, "{name:   a"); n != 19 {
		t.Errorf("%d names kept their notation:\n%s", n, got)
	}
}

func TestThousandsOfDocumentsAreQuick(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, deployment, i)
	}
	text := b.String()
	start := time.Now()
	f := parse(t, text)
	parsed := time.Since(start)
	for _, o := range f.Objects() {
		want := maps.Clone(o.Value())
		spec := maps.Clone(want["spec"].(map[string]any))
		spec["replicas"], want["spec"] = int64(5), spec
		if err := o.Update(want); err != nil {
			t.Fatal(err)
		}
	}
	got := output(t, f)
	t.Logf("%d bytes: parsed in %v, all in %v", len(text), parsed, time.Since(start))
	if want := strings.ReplaceAll(text, "replicas: 3", "replicas: 5"); got != want {
		t.Error("more than the replicas changed")
	}
	if took := time.Since(start); took > time.Minute { // not quadratic; the benchmark has the numbers
		t.Errorf("took %v", took)
	}
}

func BenchmarkParseAndEdit(b *testing.B) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, deployment, i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		f := parse(b, text.String())
		for _, o := range f.Objects() {
			want := maps.Clone(o.Value())
			spec := maps.Clone(want["spec"].(map[string]any))
			spec["replicas"], want["spec"] = int64(5), spec
			if err := o.Update(want); err != nil {
				b.Fatal(err)
			}
		}
		output(b, f)
	}
}

const deployment = `---
# a Deployment
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%d
  labels: {app: web, tier: front}
  annotations:
    example.io/expected-replicas: "5" # five
    example.io/owner: team-a
spec:
  replicas: 3 # the chart's default
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: c
        image: registry.example.io/team/web:1.2.3
        env:
        - name: A
          value: "x"
        resources:
          limits:
            cpu: 100m
            memory: 128Mi
        ports:
        - containerPort: 80
          name: http
        readinessProbe:
          httpGet:
            path: /healthz
            port: http
`
