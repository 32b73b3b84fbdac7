package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/rules"
	"github.com/rectifier-dev/rectifier/rules/builtin"
)

// helm runs `rectifier rbac -o helm`.
func helm(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), append([]string{"rbac", "-o", "helm"}, args...), streams{strings.NewReader(stdin), &out, &errs})
	return code, out.String(), errs.String()
}

const (
	chartValues  = "../../deploy/chart/values.yaml"
	chartBuiltin = "../../deploy/chart/files/builtin.sha256"
)

// The chart knows the built-in rules of its version by their sums: it refuses
// rights that were made for another text. UPDATE=1 writes them.
func TestChartKnowsTheBuiltinRules(t *testing.T) {
	var want string
	for _, name := range builtin.Names() {
		source, err := builtin.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		want += fmt.Sprintf("%x  %s\n", sha256.Sum256(source.Data), name)
	}
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(chartBuiltin, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(chartBuiltin)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("UPDATE=1 go test ./cmd/rectifier -run TestChart writes it (-rules +%s):\n%s", chartBuiltin, diff)
	}
}

// The chart's own values hold the rights of the built-in rule that runs by
// default. UPDATE=1 writes them.
func TestChartValues(t *testing.T) {
	code, want, stderr := helm(t, "")
	if code != exitFine {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	_, want, _ = strings.Cut(want, "\nbuiltin:") // without the head
	want = "builtin:" + want
	content, err := os.ReadFile(chartValues)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(content), "# BEGIN: ")
	head, rest, headEnds := strings.Cut(rest, "\n")
	got, after, ends := strings.Cut(rest, "# END\n")
	if !begins || !headEnds || !ends {
		t.Fatalf("%s has no part between BEGIN and END", chartValues)
	}
	if os.Getenv("UPDATE") == "1" {
		text := before + "# BEGIN: " + head + "\n" + want + "# END\n" + after
		if err := os.WriteFile(chartValues, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("UPDATE=1 go test ./cmd/rectifier -run TestChartValues writes it (-rbac +%s):\n%s", chartValues, diff)
	}
}

// What Helm reads is each file, byte for byte, under a name that a ConfigMap
// can have; the digest is made of that.
func TestHelmValuesHoldTheFiles(t *testing.T) {
	rule := func(name string) string { return configMapRule(name, "value", "one") }
	files := map[string]string{
		"plain.yaml":          rule("plain"),
		"no-newline.yaml":     strings.TrimSuffix(rule("no-newline"), "\n"),
		"many-newlines.yaml":  rule("many-newlines") + "\n\n\n",
		"spaces.yaml":         rule("spaces") + "# trailing  \n",
		"tab.yaml":            rule("tab") + "#\ttab\n",
		"windows.yaml":        strings.ReplaceAll(rule("windows"), "\n", "\r\n"),
		"indented.yaml":       "  # begins with spaces\n" + rule("indented"),
		"unicode.yaml":        rule("unicode") + "# grüße ☃ \U0001F600\n",
		"templates.yaml":      rule("templates") + "# {{ .Values.x }} ${y}\n",
		"a/same.yaml":         rule("same-a"),
		"b/same.yaml":         rule("same-b"),
		"odd name@here.yaml":  rule("odd"),
		"a/kustomization.yml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
		"test.yaml":           "apiVersion: rectifier.dev/v1alpha1\nkind: RuleTest\nmetadata: {name: t}\nspec: {rules: [plain.yaml], cases: []}\n",
	}
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := helm(t, "", "--rules", dir, "--builtin", "none")
	if code != exitFine {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var values struct {
		Rules   map[string]string
		Builtin []string
	}
	if err := yaml.UnmarshalStrict([]byte(strings.Split(stdout, "\nbuiltin:")[0]), &values); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	prefix := key(dir)
	prefix = strings.TrimSuffix(prefix, ".yaml")
	want := map[string]string{"odd-name-here.yaml": files["odd name@here.yaml"], prefix + "-a-same.yaml": files["a/same.yaml"], prefix + "-b-same.yaml": files["b/same.yaml"]}
	for name, text := range files {
		if !strings.Contains(name, "/") && name != "test.yaml" && !strings.Contains(name, " ") {
			want[name] = text
		}
	}
	if diff := cmp.Diff(want, values.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// The digest differs when anything does that decides about rights.
func TestHelmDigest(t *testing.T) {
	base := helmValues{rules: map[string]string{"a.yaml": "x", "b.yaml": "y"}, builtin: map[string]string{"one": "text"}, namespaces: []string{"n1"}}
	seen := map[string]string{base.digest(): "base"}
	for name, v := range map[string]helmValues{
		"text":       {rules: map[string]string{"a.yaml": "x ", "b.yaml": "y"}, builtin: base.builtin, namespaces: base.namespaces},
		"swapped":    {rules: map[string]string{"a.yaml": "y", "b.yaml": "x"}, builtin: base.builtin, namespaces: base.namespaces},
		"name":       {rules: map[string]string{"a.yaml": "x", "c.yaml": "y"}, builtin: base.builtin, namespaces: base.namespaces},
		"builtin":    {rules: base.rules, namespaces: base.namespaces},
		"its text":   {rules: base.rules, builtin: map[string]string{"one": "text of another version"}, namespaces: base.namespaces},
		"namespaces": {rules: base.rules, builtin: base.builtin, namespaces: []string{"n1", "n2"}},
		"configmap":  {configMap: "a", builtin: base.builtin, namespaces: base.namespaces},
		"other":      {configMap: "b", builtin: base.builtin, namespaces: base.namespaces},
	} {
		if other, ok := seen[v.digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[v.digest()] = name
	}
}

func TestConfigMapDataIsRefused(t *testing.T) {
	big := bytes.Repeat([]byte("#"), maxConfigMap)
	for _, tc := range []struct {
		why   string
		files []rules.Source
		want  string
	}{
		{"too large", []rules.Source{{Name: "a.yaml", Data: big}}, "the rule files have 1000006 bytes together"},
		{"not UTF-8", []rules.Source{{Name: "a.yaml", Data: []byte{0xff}}}, "a.yaml is not UTF-8"},
		{"same name", []rules.Source{{Name: "x/a b.yaml"}, {Name: "x/a@b.yaml"}}, "x/a@b.yaml: another file gets the same name x-a-b.yaml"},
	} {
		if _, err := configMapData(tc.files, nil); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v, not %s…", tc.why, err, tc.want)
		}
	}
}

// The command takes the args of the base, which are the chart's by default
// (internal/ops/install checks that).
func TestRunTakesTheArgsOfTheBase(t *testing.T) {
	content, err := os.ReadFile("../../deploy/kustomize/base/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal(content, &deployment); err != nil {
		t.Fatal(err)
	}
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if len(args) < 2 || args[0] != "run" {
		t.Fatalf("the args are %q", args)
	}
	cmd := newRun(streams{})
	if err := cmd.ParseFlags(args[1:]); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	for _, flag := range []string{"leader-elect", "exclude-namespace", "health-address"} {
		if !cmd.Flags().Changed(flag) {
			t.Errorf("%q has no --%s", args, flag)
		}
	}
}

// The example of an overlay has the rights that its rules need.
func TestRoleOfTheOverlay(t *testing.T) {
	const overlay = "../../deploy/kustomize/overlays/team-rules"
	want, err := os.ReadFile(overlay + "/clusterrole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"rbac", "--rules", overlay + "/rules"}, streams{strings.NewReader(""), &out, &errs}); code != exitFine {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("clusterrole.yaml (-file +rbac):\n%s", diff)
	}
}

// Helm reads each text as it was, also where a YAML block cannot hold it.
func TestFileNode(t *testing.T) {
	for _, text := range []string{"a\n", "a", "a\n\n", "\ta\n", "\t", " a\n", "\n a\n", "a \n", "a\r\n", "\ufeffa\n", "a\u0085b", "a\u2028b", "\x00", "😀 é\n", "--- \n", "#\n"} {
		encoded, err := yamlv3.Marshal(mappingNode("file", fileNode(text)))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := yaml.Unmarshal(encoded, &got); err != nil || got["file"] != text {
			t.Errorf("%q becomes %q (%v)", text, got["file"], err)
		}
	}
}
