package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// rbacFixture is a namespace with a ServiceAccount that may do nothing, and
// rules; NS in files stands for the namespace.
type rbacFixture struct {
	*testing.T
	cp         *controlplane.ControlPlane
	admin      *kubernetes.Clientset
	ns, user   string
	kubeconfig string // of the ServiceAccount
	dir        string
}

func newRBACFixture(t *testing.T) *rbacFixture {
	t.Helper()
	f := &rbacFixture{T: t, cp: testcluster.Start(t), ns: testcluster.Namespace(t), dir: t.TempDir()}
	var err error
	if f.admin, err = kubernetes.NewForConfig(f.cp.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	account := metav1.ObjectMeta{Name: "engine", Namespace: f.ns}
	f.user = "system:serviceaccount:" + f.ns + ":" + account.Name
	f.create(fmt.Sprintf("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s}", account.Name))
	token, err := f.admin.CoreV1().ServiceAccounts(f.ns).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.kubeconfig = f.writeKubeconfig(token.Status.Token)
	return f
}

func (f *rbacFixture) writeKubeconfig(token string) string {
	f.Helper()
	admin := f.cp.AdminConfig()
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: admin.Host, CertificateAuthorityData: admin.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	path := filepath.Join(f.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(config, path); err != nil {
		f.Fatal(err)
	}
	return path
}

// rules writes rule files and returns their folder.
func (f *rbacFixture) rules(files ...string) string {
	f.Helper()
	dir := filepath.Join(f.dir, "rules")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.Fatal(err)
	}
	for i, text := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte(strings.ReplaceAll(text, "NS", f.ns)), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	return dir
}

// rectifier runs a command line.
func (f *rbacFixture) rectifier(args ...string) (code int, stdout, stderr string) {
	f.Helper()
	var out bytes.Buffer
	var errs lockedBuffer // loggers write side by side
	code = execute(f.Context(), args, streams{strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// must runs a command line that must end with exit code 0, and gives its output.
func (f *rbacFixture) must(args ...string) string {
	f.Helper()
	code, stdout, stderr := f.rectifier(args...)
	if code != exitFine {
		f.Fatalf("rectifier %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// create makes the objects of a YAML stream, in the test's namespace unless they
// say where or are cluster-scoped.
func (f *rbacFixture) create(stream string) {
	f.Helper()
	catalog, err := gvr.NewCatalog()
	if err != nil {
		f.Fatal(err)
	}
	for doc := range strings.SplitSeq(stream, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(doc, "NS", f.ns)), &u.Object); err != nil {
			f.Fatal(err)
		}
		info := catalog.Info(u.GroupVersionKind())[0]
		client := testcluster.Dynamic(f).Resource(info.Resource)
		if !info.Namespaced {
			_, err = client.Create(f.Context(), u, metav1.CreateOptions{})
		} else {
			if u.GetNamespace() == "" {
				u.SetNamespace(f.ns)
			}
			_, err = client.Namespace(u.GetNamespace()).Create(f.Context(), u, metav1.CreateOptions{})
		}
		if err != nil {
			f.Fatalf("create %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// wantField reads a field of an object.
func (f *rbacFixture) wantField(resource schema.GroupVersionResource, namespace, name string, want any, path ...string) {
	f.Helper()
	client := testcluster.Dynamic(f).Resource(resource)
	u, err := client.Namespace(namespace).Get(f.Context(), name, metav1.GetOptions{})
	if namespace == "" {
		u, err = client.Get(f.Context(), name, metav1.GetOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
	if got, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...); got != want {
		f.Errorf("%s %s: %s is %v, not %v", resource.Resource, name, strings.Join(path, "."), got, want)
	}
}

// requests are all that the ServiceAccount has sent so far. To be sure that the
// log has them, they are followed by another user's, which is waited for.
func (f *rbacFixture) requests() []controlplane.AuditEvent {
	f.Helper()
	probe := fmt.Sprintf("probe-%d", time.Now().UnixNano())
	_, _ = f.admin.CoreV1().ConfigMaps(f.ns).Get(f.Context(), probe, metav1.GetOptions{})
	testcluster.Eventually(f, 20*time.Second, func() error {
		seen, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.ObjectRef.Name == probe })
		if err == nil && len(seen) == 0 {
			err = fmt.Errorf("the audit log lags behind")
		}
		return err
	})
	events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.User.Username == f.user && e.ObjectRef.Resource != "" })
	if err != nil {
		f.Fatal(err)
	}
	return events
}

func target(e controlplane.AuditEvent) string {
	gr := schema.GroupResource{Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource}
	return e.Verb + " " + strings.TrimSuffix(gr.String()+"/"+e.ObjectRef.Subresource, "/")
}

// check runs `rbac --check` as the ServiceAccount.
func (f *rbacFixture) check(args ...string) (code int, report rightsReport) {
	f.Helper()
	code, stdout, stderr := f.rectifier(append([]string{"rbac", "--check", "-o", "json", "--kubeconfig", f.kubeconfig}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		f.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	return code, report
}

// names gives missing rights as target does.
func (r rightsReport) names() []string {
	out := []string{}
	for _, m := range r.Missing {
		gr := schema.GroupResource{Group: m.Group, Resource: m.Resource}
		out = append(out, m.Verb+" "+strings.TrimSuffix(gr.String()+"/"+m.Subresource, "/"))
	}
	return out
}

// wantMissing waits until the server has taken note of a changed role, and what
// is missing is just this.
func (f *rbacFixture) wantMissing(wantCode int, want []string, args ...string) {
	f.Helper()
	testcluster.Eventually(f, 20*time.Second, func() error {
		code, report := f.check(args...)
		if diff := cmp.Diff(want, report.names()); diff != "" || code != wantCode {
			return fmt.Errorf("exit code %d, not %d; missing (-want +got):\n%s", code, wantCode, diff)
		}
		return nil
	})
}

func ruleFile(name, spec string) string {
	return "apiVersion: rectifier.dev/v1alpha1\nkind: Rule\nmetadata: {name: " + name + "}\nspec:\n  " +
		strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

const gadgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.NS.example}
spec:
  group: NS.example
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {
      spec: {type: object, properties: {size: {type: integer}}}, status: {type: object, properties: {phase: {type: string}, size: {type: integer}}}}}}
`

// kindsOfRules are rules that need every kind of right.
var kindsOfRules = []string{
	ruleFile("replicas", `
resource: {group: apps, version: v1, resource: deployments}
match: {namespaces: [NS]}
lookups:
- name: scalers
  resource: {group: autoscaling, version: v2, resource: horizontalpodautoscalers}
  namespace: ${object.metadata.namespace}
condition: object.spec.replicas != 2 && lookups.scalers.size() == 0
patch: {subresource: scale, merge: {spec: {replicas: 2}}}`),
	ruleFile("label", `
resource: {version: v1, resource: configmaps}
match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}, names: [drifted]}
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`),
	ruleFile("reports-only", `
resource: {version: v1, resource: services}
match: {namespaces: [NS]}
mode: Audit
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`),
	ruleFile("cluster-scoped", `
resource: {group: scheduling.k8s.io, version: v1, resource: priorityclasses}
match: {names: [NS]}
optOut: Forbidden
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`),
	ruleFile("structured", `
resource: {version: v1, resource: serviceaccounts}
match: {namespaces: [NS], names: [default-sa]}
patch: {applyConfiguration: {metadata: {labels: {fixed: "true"}}}}`),
	ruleFile("phase", `
resource: {group: NS.example, version: v1, resource: gadgets}
match: {namespaces: [NS]}
patches:
- {subresource: status, merge: {status: {phase: Ready}}}
- {subresource: scale, merge: {spec: {replicas: 3}}}`),
}

func (f *rbacFixture) createObjects() {
	f.Helper()
	f.create(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1"}]}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 1}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default-sa}}
---
` + gadgetCRD)
	gadgets := testcluster.Dynamic(f).Resource(schema.GroupVersionResource{Group: f.ns + ".example", Version: "v1", Resource: "gadgets"}).Namespace(f.ns)
	testcluster.Eventually(f, 20*time.Second, func() error {
		_, err := gadgets.Create(f.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": f.ns + ".example/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g"}, "spec": map[string]any{"size": int64(1)},
		}}, metav1.CreateOptions{})
		return err
	})
}

// With just the role that is printed, everything works and no request is
// refused; with one verb less, the check names that verb, and nothing else.
func TestTheRoleIsEnoughAndNotMore(t *testing.T) {
	f := newRBACFixture(t)
	dir := f.rules(kindsOfRules...)
	f.createObjects()
	rbacArgs := []string{"--rules", dir, "--builtin", "none", "--name", f.ns}
	f.create(f.must(append([]string{"rbac", "--service-account", f.ns + "/engine"}, rbacArgs...)...))
	f.wantMissing(exitFine, []string{}, rbacArgs...)

	f.must("run", "--rules", dir, "--builtin", "none", "--once", "--timeout", "1m", "--kubeconfig", f.kubeconfig)
	f.wantField(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, f.ns, "web", int64(2), "spec", "replicas")
	f.wantField(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, f.ns, "drifted", "true", "metadata", "labels", "fixed")
	f.wantField(schema.GroupVersionResource{Version: "v1", Resource: "services"}, f.ns, "web", nil, "metadata", "labels", "fixed")
	f.wantField(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, f.ns, "default-sa", "true", "metadata", "labels", "fixed")
	f.wantField(schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}, "", f.ns, "true", "metadata", "labels", "fixed")
	gadgets := schema.GroupVersionResource{Group: f.ns + ".example", Version: "v1", Resource: "gadgets"}
	f.wantField(gadgets, f.ns, "g", "Ready", "status", "phase")
	f.wantField(gadgets, f.ns, "g", int64(3), "spec", "size")

	sent := map[string]bool{}
	for _, e := range f.requests() {
		sent[target(e)] = true
		if e.ResponseStatus.Code == 403 {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
	role, err := f.admin.RbacV1().ClusterRoles().Get(t.Context(), f.ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range rightsOf(role) {
		// Lists are streamed by watches where the server can; an Event is
		// patched when it comes again.
		if !sent[right] && !strings.HasPrefix(right, "list ") && right != "patch events.events.k8s.io" {
			t.Errorf("granted, but never used: %s", right)
		}
	}
	for _, right := range rightsOf(role) {
		f.setRules(without(role.Rules, right))
		code := exitFindings
		if strings.Contains(right, "events.events.k8s.io") {
			code = exitFine
		}
		f.wantMissing(code, []string{right}, rbacArgs...)
	}
}

// setRules replaces what the ClusterRole of the test grants.
func (f *rbacFixture) setRules(rules []rbacv1.PolicyRule) {
	f.Helper()
	role, err := f.admin.RbacV1().ClusterRoles().Get(f.Context(), f.ns, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	role.Rules = rules
	if _, err := f.admin.RbacV1().ClusterRoles().Update(f.Context(), role, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// rightsOf lists what a role grants, a verb at a time.
func rightsOf(role *rbacv1.ClusterRole) []string {
	var out []string
	for _, p := range role.Rules {
		for _, verb := range p.Verbs {
			resource, subresource, _ := strings.Cut(p.Resources[0], "/")
			gr := schema.GroupResource{Group: p.APIGroups[0], Resource: resource}
			out = append(out, verb+" "+strings.TrimSuffix(gr.String()+"/"+subresource, "/"))
		}
	}
	return out
}

// without takes one right away.
func without(rules []rbacv1.PolicyRule, right string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, p := range rules {
		p.Verbs = slices.DeleteFunc(slices.Clone(p.Verbs), func(verb string) bool {
			return rightsOf(&rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{APIGroups: p.APIGroups, Resources: p.Resources, Verbs: []string{verb}}}})[0] == right
		})
		if len(p.Verbs) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// A Role in one namespace is enough for an engine that is limited to it: it asks
// for nothing beyond, but for its Namespace, which it can do without.
func TestRolesInNamespacesAreEnough(t *testing.T) {
	f := newRBACFixture(t)
	dir := f.rules(ruleFile("label", `
resource: {version: v1, resource: configmaps}
match: {namespaces: [NS], names: [drifted]}
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`), ruleFile("nodes", `
resource: {version: v1, resource: nodes}
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted}}`)
	common := []string{"--rules", dir, "--builtin", "none", "--namespace", f.ns}

	// What a Role cannot grant is told by both.
	code, _, stderr := f.rectifier(append([]string{"rbac"}, common...)...)
	if code != exitFindings || !strings.Contains(stderr, "rule nodes on v1/nodes: parked") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	common = append(common, "--rule", "label")
	f.create(f.must(append([]string{"rbac", "--service-account", f.ns + "/engine"}, common...)...))
	f.wantMissing(exitFine, []string{}, common...)

	f.must(append([]string{"run", "--once", "--timeout", "1m", "--kubeconfig", f.kubeconfig}, common...)...)
	f.wantField(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, f.ns, "drifted", "true", "metadata", "labels", "fixed")
	for _, e := range f.requests() {
		if e.ObjectRef.Resource == "namespaces" && (e.ObjectRef.Name == f.ns || strings.HasSuffix(e.RequestURI, "fieldSelector=metadata.name%3D"+f.ns)) {
			continue // whether it exists
		}
		if e.ObjectRef.Namespace != f.ns && e.ObjectRef.Resource != "selfsubjectaccessreviews" {
			t.Errorf("beyond the namespace: %s %s", e.Verb, e.RequestURI)
		}
		if e.ResponseStatus.Code == 403 {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
	}
}

// A cluster that is away is not one that grants nothing.
func TestTheCheckTellsThatTheClusterIsAway(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: x,
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: x, context: {cluster: c}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--namespace", "team-a"}, {"-o", "json"}} {
		var out, errs bytes.Buffer
		code := execute(t.Context(), append([]string{"rbac", "--check", "--kubeconfig", kubeconfig}, args...), streams{strings.NewReader(""), &out, &errs})
		if code != exitCluster || out.Len() > 0 || !strings.Contains(errs.String(), "ask the cluster for permissions") {
			t.Errorf("%s: exit code %d\n%s%s", args, code, &out, &errs)
		}
	}
}

// What --read-only prints is enough for what writes nothing.
func TestReadOnlyIsEnoughToLook(t *testing.T) {
	f := newRBACFixture(t)
	dir := f.rules(kindsOfRules...)
	f.createObjects()
	common := []string{"--rules", dir, "--builtin", "none"}
	f.create(f.must(append([]string{"rbac", "--read-only", "--name", f.ns, "--service-account", f.ns + "/engine"}, common...)...))
	f.wantMissing(exitFine, []string{}, append([]string{"--read-only"}, common...)...)
	for _, command := range [][]string{{"run", "--dry-run", "--once", "--timeout", "1m"}, {"diff", "--cluster"}} {
		if code, stdout, stderr := f.rectifier(append(append(command, "--kubeconfig", f.kubeconfig), common...)...); code != exitFindings {
			t.Errorf("%s: exit code %d\n%s%s", command, code, stdout, stderr)
		}
	}
	for _, e := range f.requests() {
		if e.ResponseStatus.Code == 403 || e.Verb == "patch" {
			t.Errorf("%s %s: %d", e.Verb, e.RequestURI, e.ResponseStatus.Code)
		}
	}
	f.wantField(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, f.ns, "drifted", nil, "metadata", "labels", "fixed")
}

// Who may list, watch and patch what a rule is about may run the rule. What else
// the engine would like is told, and is no finding.
func TestTheCheckAsksForNothingThatIsNotNeeded(t *testing.T) {
	f := newRBACFixture(t)
	args := []string{"--rules", f.rules(ruleFile("label", `
resource: {group: apps, version: v1, resource: deployments}
patch: {merge: {metadata: {labels: {fixed: "true"}}}}`)), "--builtin", "none"}
	f.wantMissing(exitFindings, []string{
		"list namespaces", "watch namespaces",
		"list customresourcedefinitions.apiextensions.k8s.io", "watch customresourcedefinitions.apiextensions.k8s.io",
		"list deployments.apps", "watch deployments.apps", "patch deployments.apps",
		"create events.events.k8s.io", "patch events.events.k8s.io",
	}, args...)
	code, stdout, stderr := f.rectifier(append([]string{"rbac", "--check", "--kubeconfig", f.kubeconfig}, args...)...)
	if want := "patch deployments.apps at cluster scope: needed by label\n"; code != exitFindings || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, and no %q in\n%s%s", code, want, stdout, stderr)
	}

	f.create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NS}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS}
subjects: [{kind: ServiceAccount, name: engine, namespace: NS}]
`)
	optional := []string{
		"list namespaces", "watch namespaces",
		"list customresourcedefinitions.apiextensions.k8s.io", "watch customresourcedefinitions.apiextensions.k8s.io",
		"create events.events.k8s.io", "patch events.events.k8s.io",
	}
	f.wantMissing(exitFine, optional, args...)

	// An administrator may ask for the ServiceAccount; it may not ask for others.
	as := append([]string{"rbac", "--check", "-o", "json", "--kubeconfig", f.cp.KubeconfigFile(), "--as", f.user}, args...)
	var report rightsReport
	if err := json.Unmarshal([]byte(f.must(as...)), &report); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(optional, report.names()); diff != "" {
		t.Errorf("asked by another (-want +got):\n%s", diff)
	}
	code, _, stderr = f.rectifier(append([]string{"rbac", "--check", "--kubeconfig", f.kubeconfig, "--as", "somebody"}, args...)...)
	if code != exitCluster || !strings.Contains(stderr, "cannot impersonate") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	code, stdout, _ = f.rectifier(append([]string{"rbac", "--check", "--kubeconfig", f.writeKubeconfig("wrong")}, args...)...)
	if code != exitCluster || stdout != "" {
		t.Errorf("without a valid token: exit code %d:\n%s", code, stdout)
	}
}
