package install

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// words are texts that YAML reads as something else where they are not quoted.
var words = []string{"123", "1e3", "0x1f", "true", "null", "on"}

// wordy has a word for each text among the values, as far as the value takes it;
// %[1]q is the word, %[2]q the same or, where that begins with a digit, another.
const wordy = `
nameOverride: %[1]q
fullnameOverride: %[2]q
existingConfigMap: %[1]q
builtin: []
namespaces: [%[1]q, zone] # one that is not excluded
rbac:
  digest: %[3]q
  clusterRules: [{apiGroups: [%[1]q], resources: [%[1]q], resourceNames: [%[1]q], verbs: [%[1]q]}]
  namespaceRules: {%[1]q: [{apiGroups: [%[1]q], resources: [%[1]q], resourceNames: [%[1]q], verbs: [%[1]q]}]}
excludeNamespaces: [%[1]q]
extraArgs: [--resync=1h]
extraEnv: [{name: %[1]q, value: %[1]q}]
image: {repository: %[1]q, tag: %[1]q, digest: "", pullPolicy: Always}
imagePullSecrets: [{name: %[1]q}]
serviceAccount: {name: %[1]q, annotations: {%[1]q: %[1]q}}
podAnnotations: {%[1]q: %[1]q}
podLabels: {%[1]q: %[1]q}
priorityClassName: %[1]q
nodeSelector: {%[1]q: %[1]q}
networkPolicy: {egress: {enabled: true, apiServerCIDRs: [10.0.0.1/32]}}
metrics:
  enabled: %[4]t
  tlsSecretName: %[1]q
  readers: [{namespace: %[1]q, name: %[1]q}]
  serviceMonitor: {enabled: %[4]t, labels: {%[1]q: %[1]q}, interval: 30s, scrapeTimeout: 10s}
  prometheusRule: {enabled: %[4]t, labels: {%[1]q: %[1]q}}
  dashboard: {enabled: %[4]t, labels: {%[1]q: %[1]q}}
error: ""
rules: {}
`

// wordValues are values full of a word, and the digest that goes with them.
func wordValues(word, letters string, metrics bool) string {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("configmap "+word+"\nnamespace "+word+"\nnamespace zone")))
	return fmt.Sprintf(wordy, word, letters, digest, metrics)
}

// A text stays a text, also if it looks like a number, a truth value or nothing:
// the API server, which is strict about types, takes what the chart makes of it.
func TestTextsStayTexts(t *testing.T) {
	s := newShell(t).inCluster()
	for _, crd := range operatorCRDs(t) {
		s.must("kubectl apply --server-side -f " + crd)
	}
	s.must("kubectl wait --for=condition=Established crd/servicemonitors.monitoring.coreos.com crd/prometheusrules.monitoring.coreos.com")
	covered(t, wordValues("word", "word", true))
	for _, word := range words {
		letters := word
		if word[0] <= '9' {
			letters = "x" // a Service cannot begin with a digit
		}
		t.Run(word, func(t *testing.T) {
			s := newShell(t).inCluster()
			s.mustWith(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %q}}", word), "kubectl apply --server-side -f -")
			t.Cleanup(func() { s.must("kubectl delete namespace " + word + " --wait=false") })
			helm := "helm template " + word + " deploy/chart --namespace " + word + " --values - "
			for _, values := range []string{wordValues(word, letters, true), wordValues(word, word, false)} {
				stream := s.mustWith(values, helm)
				typed(t, parse(t, stream))
				s.mustWith(stream, "kubectl apply --server-side --validate=strict --dry-run=server -f -")
				s.mustWith(values, "helm lint --strict deploy/chart --namespace "+word+" --values -")
			}
		})
	}
}

// covered checks that the values hold each text that the schema knows of.
func covered(t *testing.T, values string) {
	t.Helper()
	var schema, given map[string]any
	content, err := os.ReadFile(chart + "/values.schema.json")
	if err == nil {
		err = json.Unmarshal(content, &schema)
	}
	if err == nil {
		err = yaml.UnmarshalStrict([]byte(values), &given)
	}
	if err != nil {
		t.Fatal(err)
	}
	texts(t, "", schema, given)
}

// texts walks the schema along the values.
func texts(t *testing.T, at string, schema map[string]any, value any) {
	t.Helper()
	if at == "/builtin/…" {
		return // names that the chart knows
	}
	if schema["type"] == "string" && value == nil {
		t.Errorf("%s has no text in this test", at)
	}
	properties, _ := schema["properties"].(map[string]any)
	given, _ := value.(map[string]any)
	for name, property := range properties {
		texts(t, at+"/"+name, property.(map[string]any), given[name])
	}
	if items, ok := schema["items"].(map[string]any); ok {
		list, _ := value.([]any)
		texts(t, at+"/…", items, slices.Concat(list, []any{nil})[0])
	}
	if other, ok := schema["additionalProperties"].(map[string]any); ok {
		var first any
		for _, v := range given {
			first = v
		}
		texts(t, at+"/…", other, first)
	}
}

// typed reads objects of Kubernetes itself as their Go types, strictly.
func typed(t *testing.T, rendered objects) {
	t.Helper()
	for _, name := range rendered.names() {
		u := rendered[name]
		object, err := scheme.Scheme.New(u.GroupVersionKind())
		if runtime.IsNotRegisteredError(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		rendered.into(t, name, object)
	}
}

// Numbers that Helm reads as floats are written out.
func TestLargeNumbers(t *testing.T) {
	const values = "{workers: 1000000, qps: 1000000, burst: 1000000, terminationGracePeriodSeconds: 1000000, replicaCount: 10, verbosity: 10, networkPolicy: {egress: {enabled: true, apiServerPorts: [65535]}}}"
	got := render(t, values, "")
	typed(t, got)
	for _, want := range []string{"--workers=1000000", "--qps=1000000", "--burst=1000000", "--v=10"} {
		if !slices.Contains(got.args(t), want) {
			t.Errorf("args %v have no %s", got.args(t), want)
		}
	}
	if args := render(t, "{qps: -1}", "").args(t); !slices.Contains(args, "--qps=-1") {
		t.Errorf("args: %v", args)
	}
	if args := render(t, "{qps: 0.5}", "").args(t); !slices.Contains(args, "--qps=0.5") {
		t.Errorf("args: %v", args)
	}
}

// raw is a message of Helm's that tells of templates, and not of values.
var raw = regexp.MustCompile(`nil pointer|error calling|wrong type|incompatible|executing "|YAML parse error|error converting|cannot`)

// null is Helm's way to drop a default: each value can be dropped, or it is said
// in words that it cannot.
func TestEachValueCanBeNull(t *testing.T) {
	content, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := yaml.UnmarshalStrict(content, &defaults); err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/values.yaml"
	for _, base := range []string{"{}", everything, "{rbac: {create: false}, namespaces: [team-a]}"} {
		if err := os.WriteFile(file, []byte(base), 0o600); err != nil {
			t.Fatal(err)
		}
		render(t, base, "") // without null
		for _, path := range paths(defaults) {
			null := nullAt(path)
			stdout, stderr, ok := newShell(t).run(template+" --values "+file+" --values -", null)
			switch {
			case ok:
				typed(t, parse(t, stdout))
			case raw.MatchString(stderr):
				t.Errorf("%s: %s", null, stderr)
			default:
				t.Logf("%s: %s", null, stderr)
			}
		}
	}
}

// paths are those of all values, at all depths.
func paths(values map[string]any) [][]string {
	var out [][]string
	for name, value := range values {
		out = append(out, []string{name})
		if nested, ok := value.(map[string]any); ok {
			for _, path := range paths(nested) {
				out = append(out, append([]string{name}, path...))
			}
		}
	}
	return out
}

// nullAt are values with null at a path.
func nullAt(path []string) string {
	if len(path) == 0 {
		return "null"
	}
	return fmt.Sprintf("{%q: %s}", path[0], nullAt(path[1:]))
}
