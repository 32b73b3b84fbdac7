package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const template = "helm template " + release + " deploy/chart --namespace " + release

// render gives the objects that the chart makes of values.
func render(t *testing.T, values, flags string) objects {
	t.Helper()
	return parse(t, newShell(t).mustWith(values, template+" --values - "+flags))
}

// labelRule is a rule that labels ConfigMaps.
func labelRule(label string) string {
	return fmt.Sprintf(`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: label}
spec:
  resource: {version: v1, resource: configmaps}
  match: {labelSelector: {matchLabels: {team: shop}}}
  patch: {merge: {metadata: {labels: {%s: "true"}}}}
`, label)
}

// fragment writes rules into a folder, and gives the values that `rectifier rbac`
// makes of them.
func fragment(t *testing.T, rules map[string]string, flags string) (values, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range rules {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return newShell(t).must("rectifier rbac --rules " + dir + " -o helm " + flags), dir
}

func TestLint(t *testing.T) {
	values, _ := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, "")
	s := newShell(t)
	for _, v := range []string{"{}", values, everything} {
		if out := s.mustWith(v, "helm lint --strict deploy/chart --values -"); !strings.Contains(out, "0 chart(s) failed") {
			t.Errorf("helm lint:\n%s", out)
		}
	}
}

// everything turns on all that is off by default.
const everything = `
metrics:
  enabled: true
  readers: [{namespace: monitoring, name: prometheus-k8s}]
  serviceMonitor: {enabled: true, labels: {release: prometheus}}
  prometheusRule: {enabled: true, labels: {release: prometheus}}
  dashboard: {enabled: true}
networkPolicy:
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  egress: {enabled: true, apiServerCIDRs: [10.0.0.1/32]}
imagePullSecrets: [{name: registry}]
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}
excludeNamespaces: [kube-*, vendor]
strictRules: true
workers: 4
qps: 12.5
burst: 25
verbosity: 2
extraArgs: [--resync=1h]
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.example:3128"}]
podAnnotations: {example.io/a: b}
podLabels: {example.io/c: d}
priorityClassName: system-cluster-critical
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: infra, operator: Exists}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
serviceAccount: {annotations: {example.io/e: f}}
`

func TestDefaultObjects(t *testing.T) {
	got := render(t, "{}", "")
	want := []string{"ClusterRole/rectifier:rectifier", "ClusterRoleBinding/rectifier:rectifier", "Deployment/rectifier", "NetworkPolicy/rectifier",
		"PodDisruptionBudget/rectifier", "Role/rectifier-lease", "RoleBinding/rectifier-lease", "ServiceAccount/rectifier"}
	if diff := cmp.Diff(want, got.names()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	wantArgs := []string{"run", "--leader-elect", "--lease-name=rectifier", "--health-address=:8081", "--bind-address=127.0.0.1:8080",
		"--builtin=expected-replicas", "--exclude-namespace=kube-system"}
	if diff := cmp.Diff(wantArgs, got.args(t)); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	var d appsv1.Deployment
	got.into(t, "Deployment/rectifier", &d)
	if env := d.Spec.Template.Spec.Containers[0].Env; len(env) != 1 || env[0] != (corev1.EnvVar{Name: "GOMEMLIMIT", Value: "204MiB"}) {
		t.Errorf("env: %v", env)
	}
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "ghcr.io/rectifier-dev/rectifier:"+chartFile(t).AppVersion {
		t.Errorf("image: %s", image)
	}
}

// SEC-04: nothing is granted that the default rule does not need.
func TestDefaultRights(t *testing.T) {
	got := render(t, "{}", "")
	var cluster rbacv1.ClusterRole
	var lease rbacv1.Role
	got.into(t, "ClusterRole/rectifier:rectifier", &cluster)
	got.into(t, "Role/rectifier-lease", &lease)
	want := []string{"create events.events.k8s.io", "list customresourcedefinitions.apiextensions.k8s.io", "list deployments.apps",
		"list horizontalpodautoscalers.autoscaling", "list namespaces", "patch deployments.apps/scale", "patch events.events.k8s.io",
		"watch customresourcedefinitions.apiextensions.k8s.io", "watch deployments.apps", "watch horizontalpodautoscalers.autoscaling", "watch namespaces"}
	if diff := cmp.Diff(want, rights(cluster.Rules)); diff != "" {
		t.Errorf("ClusterRole (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create leases.coordination.k8s.io", "get leases.coordination.k8s.io rectifier", "update leases.coordination.k8s.io rectifier"}, rights(lease.Rules)); diff != "" {
		t.Errorf("Role (-want +got):\n%s", diff)
	}
	for _, right := range slices.Concat(rights(cluster.Rules), rights(lease.Rules)) {
		for _, never := range []string{"*", "secrets", "delete", "deletecollection", "escalate", "bind", "impersonate"} {
			if strings.Contains(right, never) {
				t.Errorf("granted: %s", right)
			}
		}
	}
}

// The roles of the chart are those that `rectifier rbac` prints, for rules
// everywhere, in namespaces, and for a dry run; so are the rights of --authorize.
func TestRolesAreThoseOfTheCommand(t *testing.T) {
	for _, tc := range []struct{ name, fragment, values, command string }{
		{"cluster", "", "", ""},
		{"namespaces", "--builtin none -n team-a,team-b", "", "--builtin none -n team-a,team-b"},
		{"dry run", "", "--set dryRun=true", "--read-only"},
		{"authorize", "", "--set metrics.enabled=true", "--authorize"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			values, dir := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, tc.fragment)
			var want, got []string
			command := "rectifier rbac --leader-elect --service-account rectifier/rectifier --rules " + dir + " " + tc.command
			for name, object := range parse(t, newShell(t).must(command)) {
				want = append(want, granted(t, name, objects{name: object})...)
			}
			for name, object := range render(t, values, tc.values) {
				if name != "ClusterRole/rectifier:rectifier:metrics-reader" {
					got = append(got, granted(t, name, objects{name: object})...)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
				t.Errorf("rights (-command +chart):\n%s", diff)
			}
		})
	}
}

// granted lists the rights in a role with the namespace that they are for.
func granted(t *testing.T, name string, o objects) []string {
	t.Helper()
	if !strings.HasPrefix(name, "ClusterRole/") && !strings.HasPrefix(name, "Role/") {
		return nil
	}
	var role rbacv1.Role
	o.into(t, name, &role)
	var out []string
	for _, right := range rights(role.Rules) {
		out = append(out, role.Namespace+": "+right)
	}
	return out
}

// What would install something else than was meant is refused, and says how to
// go on.
func TestRefusedValues(t *testing.T) {
	good, _ := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, "")
	named, _ := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, "--config-map team-rules")
	right := func(group, resource, verb string) string {
		return fmt.Sprintf("rbac: {clusterRules: [{apiGroups: ['%s'], resources: ['%s'], verbs: ['%s']}]}", group, resource, verb)
	}
	for _, tc := range []struct{ name, values, flags, want string }{
		{"unknown value", "replicas: 3", "", "additional properties 'replicas' not allowed"},
		{"unknown nested value", "metrics: {enable: true}", "", "additional properties 'enable' not allowed"},
		{"wrong type", "replicaCount: two", "", "at '/replicaCount': got string, want integer"},
		{"no rule file", "rules: {readme.txt: a}", "", "additional properties 'readme.txt' not allowed"},
		{"a flag that a value sets", "extraArgs: [--namespace=a]", "", "at '/extraArgs/0': 'not' failed"},
		{"bad digest of the image", "image: {digest: latest}", "", "at '/image/digest': 'latest' does not match pattern"},
		{"bad namespace", "namespaces: [Team_A]", "", "at '/namespaces/0': 'Team_A' does not match pattern"},
		{"rules without rights", "rules: {team.yaml: a}", "", "rectifier rbac --rules rules/ -o helm"},
		{"rules that were edited", good, `--set-string 'rules.more\.yaml=a'`, "rbac holds the rights for other rules"},
		{"other built-in rules", "builtin: []", "", "there is no rule: set rules, existingConfigMap or builtin"},
		{"rules without the built-in one", good, "--set-json builtin=[]", "rectifier rbac --rules rules/ --builtin none -o helm"},
		{"namespaces without rights", "namespaces: [team-a]", "", "rectifier rbac --namespace team-a -o helm"},
		{"a ConfigMap without rights", "existingConfigMap: team-rules", "", "rectifier rbac --rules rules/ --config-map team-rules -o helm"},
		{"another ConfigMap", named, "--set existingConfigMap=other", "--config-map other"},
		{"two sources", good, "--set existingConfigMap=other", "rules and existingConfigMap are both set"},
		{"a failed command", "error: 'rectifier rbac: 1 rule does not compile'", "", "rectifier rbac: 1 rule does not compile"},
		{"Secrets", right("", "secrets", "list"), "", "rbac grants list to the resource secrets"},
		{"RBAC objects", right("rbac.authorization.k8s.io", "clusterroles", "patch"), "", "rbac grants patch to the API group rbac.authorization.k8s.io"},
		{"aggregated APIs", right("apiregistration.k8s.io", "apiservices", "list"), "", "rbac grants list to the API group apiregistration.k8s.io"},
		{"certificates", right("certificates.k8s.io", "certificatesigningrequests/approval", "patch"), "", "the API group certificates.k8s.io"},
		{"CRDs", right("apiextensions.k8s.io", "customresourcedefinitions", "patch"), "", "rbac grants patch to the API group apiextensions.k8s.io"},
		{"rights for another text of a built-in rule", "rbac: {digest: bcf9b2660f476fd6f0fba0ab9b017cb135f420620c7fa433f6c46bf544eaab1b}", "", "or for a\nbuilt-in rule of another version"},
		{"a built-in rule that the chart does not know", "builtin: [of-the-future]", "", "built-in rule of another version"},
		{"a label by which pods are found", "podLabels: {app.kubernetes.io/instance: mine}", "", "at '/podLabels/app.kubernetes.io~1instance': got string, want null"},
		{"a label that the chart sets", "metrics: {serviceMonitor: {labels: {helm.sh/chart: mine}}}", "", "at '/metrics/serviceMonitor/labels/helm.sh~1chart': got string, want null"},
		{"a number as a variable", "extraEnv: [{name: a, value: 5}]", "", "at '/extraEnv/0/value': got number, want string"},
		{"a flag for metrics", "extraArgs: [--metrics-address=:1]", "", "at '/extraArgs/0': 'not' failed"},
		{"a name that is no label", "nameOverride: " + strings.Repeat("a", 64), "", "at '/nameOverride': maxLength: got 64, want 63"},
		{"an excluded name that no namespace has", "excludeNamespaces: ['-a']", "", `"-a" matches no name that a namespace can have`},
		{"another one", "excludeNamespaces: [" + strings.Repeat("a", 64) + "]", "", `a" matches no name that a namespace can have`},
		{"all is excluded", "{namespaces: [kube-system], rbac: {create: false}}", "", "nothing is left to look at: excludeNamespaces kube-system excludes all of namespaces kube-system"},
		{"all is excluded by a pattern", "{namespaces: [team-a, team-b], excludeNamespaces: [other, 't*m-*'], rbac: {create: false}}", "", "nothing is left to look at: excludeNamespaces other,t*m-* excludes all of namespaces team-a,team-b"},
		{"a Service that cannot be", "{fullnameOverride: '1a', metrics: {enabled: true}}", "", "its name cannot be 1a: it begins with a letter, and has no dot. Set fullnameOverride"},
		{"admission", right("admissionregistration.k8s.io", "validatingwebhookconfigurations", "patch"), "", "the API group admissionregistration.k8s.io"},
		{"all resources", right("apps", "*", "list"), "", "the resource *"},
		{"all groups", right("*", "things", "list"), "", "the API group *"},
		{"all verbs", right("apps", "deployments", "*"), "", "the verb *"},
		{"impersonation", right("", "users", "impersonate"), "", "Set rbac.allowSensitive=true if the rules are meant to have it"},
		{"a scrape of nothing", "metrics: {serviceMonitor: {enabled: true}}", "", "metrics.serviceMonitor.enabled needs metrics.enabled"},
		{"rights in another namespace", "rbac: {namespaceRules: {team-a: []}}", "", "rbac.namespaceRules names the namespace team-a, which is not in namespaces"},
		{"nobody", "serviceAccount: {create: false}", "", "serviceAccount.create is false: give serviceAccount.name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := newShell(t).refused(tc.values, template+" --values - "+tc.flags); !strings.Contains(got, tc.want) {
				t.Errorf("it says\n%s\nnot: %s", got, tc.want)
			}
		})
	}
}

// What looks like a refused value, but is meant.
func TestAcceptedValues(t *testing.T) {
	named, _ := fragment(t, map[string]string{"team.yaml": labelRule("fixed")}, "--config-map team-rules")
	for _, tc := range []struct{ name, values, flags string }{
		{"rights that somebody else gives", "namespaces: [team-a]", "--set rbac.create=false"},
		{"sensitive rights that are allowed", "rbac: {allowSensitive: true, clusterRules: [{apiGroups: [''], resources: [secrets], verbs: [list]}]}", ""},
		{"a ConfigMap of somebody else", named, ""},
		{"part of another chart", "global: {a: b}", ""},
		{"what means much, and is the business of rules", "rbac: {clusterRules: [{apiGroups: [apps], resources: [deployments], verbs: [patch]}, {apiGroups: [''], resources: [nodes, pods, serviceaccounts], verbs: [patch]}, {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list]}]}", ""},
		{"some of its namespaces are excluded", "{namespaces: [kube-system, team-a], excludeNamespaces: [kube-*, 'a', '*-'], rbac: {create: false}}", ""},
		{"a name that a pattern is in", "{namespaces: [team-a], excludeNamespaces: [team, am-a, 'eam*'], rbac: {create: false}}", ""},
		{"one replica", "replicaCount: 1", ""},
		{"no spread", "topologySpreadConstraints: []", ""},
	} {
		t.Run(tc.name, func(t *testing.T) { render(t, tc.values, tc.flags) })
	}
	got := render(t, named, "--set replicaCount=1 --set-json topologySpreadConstraints=[]")
	var d appsv1.Deployment
	got.into(t, "Deployment/rectifier", &d)
	if pod := d.Spec.Template.Spec; pod.Volumes[0].ConfigMap.Name != "team-rules" || len(pod.TopologySpreadConstraints) > 0 || got["PodDisruptionBudget/rectifier"] != nil || got["ConfigMap/rectifier-rules"] != nil {
		t.Errorf("objects %v, volumes %v", got.names(), pod.Volumes)
	}
}

// The rules get into the ConfigMap as they are, and no pod changes with them.
func TestRulesOnlyChangeTheConfigMapAndTheRole(t *testing.T) {
	text := labelRule("fixed") + "# {{ not a template }} ${x}  \n\n"
	one, _ := fragment(t, map[string]string{"team.yaml": text}, "")
	two, _ := fragment(t, map[string]string{"team.yaml": strings.ReplaceAll(text, "configmaps", "services")}, "")
	before, after := render(t, one, ""), render(t, two, "")
	var data corev1.ConfigMap
	before.into(t, "ConfigMap/rectifier-rules", &data)
	if diff := cmp.Diff(map[string]string{"team.yaml": text}, data.Data); diff != "" {
		t.Errorf("ConfigMap (-want +got):\n%s", diff)
	}
	var changed []string
	for name := range before {
		if !cmp.Equal(before[name], after[name]) {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	if diff := cmp.Diff([]string{"ClusterRole/rectifier:rectifier", "ConfigMap/rectifier-rules"}, changed); diff != "" || len(before) != len(after) {
		t.Errorf("changed objects (-want +got):\n%s", diff)
	}
}

type chartMeta struct{ Version, AppVersion, KubeVersion string }

func chartFile(t *testing.T) chartMeta {
	t.Helper()
	content, err := os.ReadFile(chart + "/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var meta chartMeta
	if err := yaml.Unmarshal(content, &meta); err != nil {
		t.Fatal(err)
	}
	return meta
}

// Chart and binary are released together; a build without a tag has no image.
func TestVersions(t *testing.T) {
	meta := chartFile(t)
	if meta.Version == "" || meta.Version != meta.AppVersion {
		t.Errorf("the chart has version %q and appVersion %q", meta.Version, meta.AppVersion)
	}
	out := newShell(t).must("helm show chart deploy/chart")
	if !strings.Contains(out, "appVersion: "+meta.AppVersion) {
		t.Errorf("helm show chart:\n%s", out)
	}
	if out := newShell(t).refused("", template+" --kube-version 1.25.0"); !strings.Contains(out, "requires kubeVersion") {
		t.Errorf("an old API server: %s", out)
	}
}

// Each value is described, by the schema and in values.yaml.
func TestValuesAreDescribed(t *testing.T) {
	content, err := os.ReadFile(chart + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := yaml.Unmarshal(content, &schema); err != nil {
		t.Fatal(err)
	}
	values, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := yaml.UnmarshalStrict(values, &defaults); err != nil {
		t.Fatal(err)
	}
	described(t, "", schema, defaults)
}

// described walks the schema of a mapping along its default values.
func described(t *testing.T, at string, schema, defaults map[string]any) {
	t.Helper()
	if schema["additionalProperties"] != false {
		t.Errorf("%s takes unknown values", at)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		property := p.(map[string]any)
		if text, _ := property["description"].(string); !strings.HasSuffix(text, ".") {
			t.Errorf("%s/%s has no description", at, name)
		}
		value, ok := defaults[name]
		if !ok && name != "global" && name != "claims" && name != "requests" {
			t.Errorf("%s/%s is not in values.yaml", at, name)
		}
		_, free := property["additionalProperties"].(map[string]any)
		if nested, ok := value.(map[string]any); ok && property["properties"] != nil && !free {
			described(t, at+"/"+name, property, nested)
		}
	}
}
