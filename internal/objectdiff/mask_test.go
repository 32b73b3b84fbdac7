package objectdiff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/internal/manifest"
	"github.com/rectifier-dev/rectifier/rules/patch"
)

func object(t *testing.T, y string) map[string]any {
	t.Helper()
	file, err := manifest.Parse("test.yaml", []byte("{apiVersion: v1, "+y[1:]))
	if err != nil {
		t.Fatal(err)
	}
	return file.Objects()[0].Value()
}

// maskCases are changes of objects, and how they are shown.
var maskCases = []struct {
	name                string
	before, after       string
	computed            bool
	wantBefore, wantOps string
}{
	{
		name:       "an object that is no Secret",
		before:     `{kind: ConfigMap, data: {a: "1"}}`,
		after:      `{kind: ConfigMap, data: {a: "2"}}`,
		wantBefore: `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}}`,
		wantOps:    `[{"op":"replace","path":"/data/a","value":"2"}]`,
	}, {
		name:       "data and stringData of a Secret",
		before:     `{kind: Secret, data: {a: czNjcjN0, b: czNjcjN0, c: not base64}, stringData: {d: s3cr3t}}`,
		after:      `{kind: Secret, data: {a: czNjcjN0, b: bmV3, e: YQ==}, stringData: {d: ""}}`,
		wantBefore: `{apiVersion: v1, kind: Secret, data: {a: "*** (6 bytes)", b: "*** (6 bytes)", c: "*** (10 bytes)"}, stringData: {d: "*** (6 bytes)"}}`,
		wantOps: `[{"op":"remove","path":"/data/c"},{"op":"replace","path":"/data/b","value":"*** (3 bytes, changed)"},` +
			`{"op":"add","path":"/data/e","value":"*** (1 byte)"},{"op":"replace","path":"/stringData/d","value":"*** (0 bytes, changed)"}]`,
	}, {
		name:       "all data at once, and what is no string",
		before:     `{kind: Secret}`,
		after:      `{kind: Secret, data: {a: czNjcjN0, num: 12, deep: {x: s3cr3t}, list: [s3cr3t]}}`,
		wantBefore: `{apiVersion: v1, kind: Secret}`,
		wantOps:    `[{"op":"add","path":"/data","value":{"a":"*** (6 bytes)","deep":{"x":"*** (6 bytes)"},"list":["*** (6 bytes)"],"num":"***"}}]`,
	}, {
		name:       "what kubectl apply repeats",
		before:     `{kind: Secret, metadata: {annotations: {a: b, kubectl.kubernetes.io/last-applied-configuration: s3cr3t}}}`,
		after:      `{kind: Secret, metadata: {annotations: {a: c, kubectl.kubernetes.io/last-applied-configuration: s3cr3t}}}`,
		wantBefore: `{apiVersion: v1, kind: Secret, metadata: {annotations: {a: b, kubectl.kubernetes.io/last-applied-configuration: "*** (6 bytes)"}}}`,
		wantOps:    `[{"op":"replace","path":"/metadata/annotations/a","value":"c"}]`,
	}, {
		name:       "data that a patch copies elsewhere",
		before:     `{kind: Secret, data: {a: czNjcjN0}}`,
		after:      `{kind: Secret, data: {a: czNjcjN0}, metadata: {labels: {copy: czNjcjN0, plain: x}}}`,
		wantBefore: `{apiVersion: v1, kind: Secret, data: {a: "*** (6 bytes)"}}`,
		wantOps:    `[{"op":"add","path":"/metadata","value":{"labels":{"copy":"*** (8 bytes)","plain":"*** (1 byte)"}}}]`,
	}, {
		name:       "a copy of data that goes, one that becomes another, and one that stays",
		before:     `{kind: Secret, data: {a: czNjcjN0}, metadata: {name: s, annotations: {gone: czNjcjN0, other: czNjcjN0, stays: czNjcjN0, plain: x}}}`,
		after:      `{kind: Secret, data: {a: czNjcjN0}, metadata: {name: s, annotations: {other: z, stays: czNjcjN0, plain: w}}}`,
		wantBefore: `{apiVersion: v1, kind: Secret, data: {a: "*** (6 bytes)"}, metadata: {name: s, annotations: {gone: "*** (8 bytes)", other: "*** (8 bytes)", stays: "*** (8 bytes)", plain: x}}}`,
		wantOps: `[{"op":"remove","path":"/metadata/annotations/gone"},{"op":"replace","path":"/metadata/annotations/other","value":"z"},` +
			`{"op":"replace","path":"/metadata/annotations/plain","value":"w"}]`,
	}, {
		name:       "data decoded, within a longer text, in a list, and new data",
		before:     `{kind: Secret, data: {a: czNjcjN0, b: YWI=}, x: {list: [k, s3cr3t, ab, cab], url: "db://u:s3cr3t@h"}}`,
		after:      `{kind: Secret, data: {a: bmV3ZXI=}, x: {list: [k, newer, cab], url: "db://u:bmV3ZXI=@h"}}`,
		wantBefore: `{apiVersion: v1, kind: Secret, data: {a: "*** (6 bytes)", b: "*** (2 bytes)"}, x: {list: [k, "*** (6 bytes)", "*** (2 bytes)", cab], url: "*** (15 bytes)"}}`,
		wantOps: `[{"op":"remove","path":"/data/b"},{"op":"replace","path":"/data/a","value":"*** (5 bytes, changed)"},` +
			`{"op":"replace","path":"/x/list/1","value":"*** (5 bytes, changed)"},{"op":"remove","path":"/x/list/2"},{"op":"replace","path":"/x/url","value":"*** (17 bytes, changed)"}]`,
	}, {
		name:       "data that is what the object is called",
		before:     `{kind: Secret, metadata: {name: db, labels: {app: db}}, stringData: {user: db, kind: Secret}}`,
		after:      `{kind: Secret, metadata: {name: db}, stringData: {user: db, kind: Secret}}`,
		wantBefore: `{apiVersion: v1, kind: Secret, metadata: {name: db, labels: {app: "*** (2 bytes)"}}, stringData: {user: "*** (2 bytes)", kind: "*** (6 bytes)"}}`,
		wantOps:    `[{"op":"remove","path":"/metadata/labels"}]`,
	}, {
		name:       "what is computed from Secrets",
		computed:   true,
		before:     `{kind: ConfigMap, data: {a: s3cr3t, same: x, list: [a, s3cr3t, z]}}`,
		after:      `{kind: ConfigMap, data: {a: other, same: x, list: [a, z], num: 1}}`,
		wantBefore: `{apiVersion: v1, kind: ConfigMap, data: {a: "*** (6 bytes)", same: x, list: [a, "*** (6 bytes)", z]}}`,
		wantOps:    `[{"op":"replace","path":"/data/a","value":"*** (5 bytes, changed)"},{"op":"remove","path":"/data/list/1"},{"op":"add","path":"/data/num","value":"***"}]`,
	},
}

func TestMasks(t *testing.T) {
	for _, tc := range maskCases {
		t.Run(tc.name, func(t *testing.T) {
			before, after := object(t, tc.before), object(t, tc.after)
			old, changed := Masks(before, after, tc.computed)
			var want map[string]any
			if err := yaml.Unmarshal([]byte(tc.wantBefore), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, old.Object(before)); diff != "" {
				t.Errorf("before (-want +got)\n%s", diff)
			}
			var ops []string
			for _, op := range changed.Ops(patch.Diff(before, after)) {
				text, err := op.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, string(text))
			}
			if diff := cmp.Diff(tc.wantOps, "["+strings.Join(ops, ",")+"]"); diff != "" {
				t.Errorf("operations (-want +got)\n%s", diff)
			}
			// The masks themselves are applied to copies.
			if diff := cmp.Diff(object(t, tc.before), before); diff != "" {
				t.Errorf("the object was modified:\n%s", diff)
			}
		})
	}
}

// Operations that only name or test what stands somewhere are masked by its value.
func TestMaskOfOperations(t *testing.T) {
	secret := object(t, `{kind: Secret, data: {a: czNjcjN0}}`)
	_, mask := Masks(secret, secret, false)
	for _, op := range mask.Ops([]patch.Op{
		{Op: "test", Path: patch.Pointer{"metadata", "annotations", "copy"}, Value: "czNjcjN0", HasValue: true},
		{Op: "test", Path: patch.Pointer{"metadata", "annotations"}, Value: map[string]any{"copy": "czNjcjN0"}, HasValue: true},
		{Op: "copy", From: patch.Pointer{"data", "a"}, Path: patch.Pointer{"metadata", "labels", "copy"}},
	}) {
		if text, err := op.MarshalJSON(); err != nil || strings.Contains(string(text), "czNj") {
			t.Errorf("shown as %s (%v)", text, err)
		}
	}
}

// The search for values ends, whatever somebody has put into a Secret.
func TestTheSearchForValuesIsBounded(t *testing.T) {
	data := map[string]any{}
	for i := range 60_000 {
		data[fmt.Sprint(i)] = fmt.Sprintf("value-%d", i)
	}
	values := SecretValues(map[string]any{"stringData": data})
	if !values.Within(strings.Repeat("x", 256<<10)) {
		t.Error("what takes too long to be searched is shown")
	}
	if values.Within("short") || !values.Within("a value-1 b") {
		t.Error("a short text is not searched")
	}
}

// secretManifests are ways to write a Secret whose data is s3cr3t.
var secretManifests = map[string]string{
	"block":      "kind: Secret\ndata:\n  password: czNjcjN0\n",
	"quoted":     "kind: Secret\ndata:\n  password: \"czNjcjN0\"\n  other: 'czNjcjN0'\n",
	"folded":     "kind: Secret\ndata:\n  password: >-\n    czNj\n    cjN0\n",
	"literal":    "kind: Secret\nstringData:\n  file: |\n    first s3cr3t\n\n    second s3cr3t # not a comment\nkeep: me\n",
	"flow":       "kind: Secret\ndata: {password: czNjcjN0, more: [czNjcjN0, {deep: czNjcjN0}]}\n",
	"json":       "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"data\": {\"password\": \"czNjcjN0\"}}\n",
	"comments":   "kind: Secret\n# was s3cr3t\ndata: # s3cr3t\n  # s3cr3t\n  password: czNjcjN0 # s3cr3t\n  # s3cr3t\ntype: Opaque\n#s3cr3t",
	"anchor":     "kind: Secret\nx-password: &password s3cr3t\nstringData:\n  password: *password\n",
	"merge":      "kind: Secret\nx-common: &common {password: s3cr3t}\nstringData:\n  <<: *common\n  user: s3cr3t\n",
	"merge list": "kind: Secret\nx-a: &a {a: s3cr3t}\nx-b: &b {b: s3cr3t}\nstringData:\n  <<: [*a, *b]\n",
	"alias":      "kind: Secret\nx-data: &data\n  password: czNjcjN0\ndata: *data\n",
	"tag":        "kind: Secret\ndata:\n  password: !!str czNjcjN0\n  file: !!binary |\n    czNjcjN0\n",
	"copy":       "kind: Secret\nmetadata:\n  annotations: {copy: czNjcjN0}\n  labels:\n    decoded: 's3cr3t'\ndata: {password: czNjcjN0}\n",
	"applied":    "kind: Secret\nmetadata:\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: |\n      {\"data\":{\"password\":\"czNjcjN0\"}}\n",
	"list":       "kind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  data:\n    password: czNjcjN0\n- {apiVersion: v1, kind: Secret, data: {password: czNjcjN0}}\n",
	"typed list": "kind: SecretList\nitems:\n- data:\n    password: czNjcjN0\n- data: {password: czNjcjN0}\n",
	"multi-line": "kind: Secret\nstringData:\n  a: \"s3cr3t\n    s3cr3t\"\n  b: s3cr3t\n    s3cr3t\n",
	"tabs":       "kind:\tSecret\ndata:\n  password:\tczNjcjN0\t# s3cr3t\n",
}

func TestManifest(t *testing.T) {
	for name, text := range secretManifests {
		if !strings.HasPrefix(text, "{") {
			text = "apiVersion: v1\n" + text
		}
		for _, notation := range []struct {
			name   string
			change func(string) string
		}{
			{"as it is", func(s string) string { return s }},
			{"CRLF", func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
			{"with a byte-order mark", func(s string) string { return "\ufeff" + s }},
			{"after another document", func(s string) string {
				return "# c\napiVersion: v1\nkind: Thing\ndata: {plain: yes} # stays\n---\n" + s
			}},
			{"before another document", func(s string) string { return s + "\n---\napiVersion: v1\nkind: Thing\n" }},
		} {
			t.Run(name+" "+notation.name, func(t *testing.T) {
				text := notation.change(text)
				file, err := manifest.Parse("s.yaml", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				var masks []*Mask
				for _, o := range file.Objects() {
					mask, _ := Masks(o.Value(), o.Value(), false)
					masks = append(masks, mask)
				}
				got, err := Manifest("s.yaml", []byte(text), masks)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(got), "s3cr3t") || strings.Contains(string(got), "czNj") || !strings.Contains(string(got), "***") {
					t.Errorf("%s\nis shown as\n%s", text, got)
				}
				if a, b := strings.Count(text, "\n"), strings.Count(string(got), "\n"); a != b {
					t.Errorf("%d lines became %d:\n%s", a, b, got)
				}
				if strings.Contains(text, "stays") != strings.Contains(string(got), "{plain: yes} # stays") {
					t.Errorf("another document was changed:\n%s", got)
				}
			})
		}
	}
}

// What is shown does not depend on the values, only on their lengths.
func FuzzManifestHides(f *testing.F) {
	for _, text := range secretManifests {
		f.Add(text)
	}
	f.Add("kind: Secret\ndata:\n  ? [a]\n  : czNjcjN0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Count(text, "SECRETVALUE") > 0 {
			t.Skip()
		}
		text = "apiVersion: v1\n" + strings.NewReplacer("s3cr3t", "SECRETVALUE", "czNjcjN0", "SECRETVALUE").Replace(text)
		file, err := manifest.Parse("s.yaml", []byte(text))
		if err != nil || len(file.Objects()) == 0 {
			t.Skip()
		}
		var masks []*Mask
		hidden := 0
		for _, o := range file.Objects() {
			mask, _ := Masks(o.Value(), o.Value(), false)
			masks = append(masks, mask)
			hidden += occurrences(o.Value()) - occurrences(mask.Object(o.Value()))
		}
		if hidden != strings.Count(text, "SECRETVALUE") {
			t.Skip() // it also stands where it is no secret
		}
		got, err := Manifest("s.yaml", []byte(text), masks)
		if err == nil && strings.Contains(string(got), "SECRETVALUE") {
			t.Errorf("%s\nis shown as\n%s", text, got)
		}
	})
}

func occurrences(object map[string]any) int {
	return strings.Count(fmt.Sprint(object), "SECRETVALUE")
}
