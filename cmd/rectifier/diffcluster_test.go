package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/rectifier-dev/rectifier/gvr"
	"github.com/rectifier-dev/rectifier/internal/controlplane"
	"github.com/rectifier-dev/rectifier/internal/controlplane/testcluster"
)

// diffFixture is a namespace, a user of the test's own with nothing but the
// rights that it gets, and rules; NS stands for the namespace.
type diffFixture struct {
	*testing.T
	cp         *controlplane.ControlPlane
	admin      *kubernetes.Clientset
	ns, user   string
	kubeconfig string
	rules      string // their folder
}

var diffUsers atomic.Int64

func newDiffFixture(t *testing.T, rights []rbacv1.PolicyRule, rules ...string) *diffFixture {
	t.Helper()
	f := &diffFixture{T: t, cp: testcluster.Start(t), ns: testcluster.Namespace(t), user: fmt.Sprintf("differ-%d", diffUsers.Add(1))}
	dir := t.TempDir()
	f.kubeconfig, f.rules = filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "rules")
	for i, rule := range rules {
		write(t, fmt.Sprintf("%s/%d.yaml", f.rules, i), []byte(strings.ReplaceAll(rule, "NS", f.ns)))
	}
	if err := f.cp.WriteKubeconfig(f.kubeconfig, f.user, "differs"); err != nil {
		t.Fatal(err)
	}
	var err error
	if f.admin, err = kubernetes.NewForConfig(f.cp.AdminConfig()); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.ns}, Rules: rights}
	if _, err := f.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: f.ns},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: f.user}},
	}
	if _, err := f.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// may is the right to read resources, and to do more with them.
func may(group string, resources []string, more ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: append([]string{"list", "watch"}, more...)}
}

func (f *diffFixture) create(objects ...string) {
	f.Helper()
	catalog, err := gvr.NewCatalog()
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range objects {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			f.Fatal(err)
		}
		client := testcluster.Dynamic(f).Resource(catalog.Info(u.GroupVersionKind())[0].Resource)
		if _, err := client.Namespace(f.ns).Create(f.Context(), u, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *diffFixture) diff(more ...string) (code int, out, told string) {
	f.Helper()
	code, out, told = invoke(f.T, slices.Concat([]string{"diff", "--cluster", "--kubeconfig", f.kubeconfig, "--rules", f.rules, "--builtin", "none"}, more)...)
	tidy := strings.NewReplacer(f.ns, "NS")
	return code, tidy.Replace(out), tidy.Replace(told)
}

// requests are those of the user so far, but for reads of resources and of what
// there is.
func (f *diffFixture) requests() (reads int, others []string) {
	f.Helper()
	var events []controlplane.AuditEvent
	// A request of the user's own afterwards, to be sure that none is missing.
	invoke(f.T, "diff", "--cluster", "--kubeconfig", f.kubeconfig, "--rules", f.rules, "--builtin", "none", "-n", f.ns)
	testcluster.Eventually(f, 10*time.Second, func() (err error) {
		events, err = f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.User.Username == f.user })
		if err == nil && !slices.ContainsFunc(events, func(e controlplane.AuditEvent) bool { return e.ObjectRef.Namespace == f.ns && e.Verb != "patch" }) {
			err = fmt.Errorf("%d requests, the last one is not there", len(events))
		}
		return err
	})
	for _, e := range events {
		if slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			reads++
		} else {
			others = append(others, e.Verb+" "+e.RequestURI)
		}
	}
	return reads, others
}

// labelRule is a rule that labels objects of a resource.
func labelRule(name, resource, label string) string {
	return fmt.Sprintf(`apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: %s}
spec:
  resource: {version: v1, resource: %s}
  match: {namespaces: [NS]}
  patch: {merge: {metadata: {labels: {%s}}}}
`, name, resource, label)
}

// The fields that the server gave an object differ from run to run.
var serverFields = regexp.MustCompile(`(?m)^ +(creationTimestamp|resourceVersion|uid): .*\n`)

func TestDiffLiveOnlyReads(t *testing.T) {
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces"})},
		labelRule("label", "configmaps", "team: shop"), strings.Replace(labelRule("more", "configmaps", "more: x"), "patch:", "condition: object.metadata.?labels.?team.orValue('') == 'shop'\n  patch:", 1))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: v}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {team: shop, more: x}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {rectifier.dev/skip: "*"}}}`)
	code, out, told := f.diff()
	if code != exitFindings {
		t.Errorf("exit code %d", code)
	}
	want := `--- live/ConfigMap NS/b
+++ fixed/ConfigMap NS/b
@@ -4,6 +4,9 @@
 kind: ConfigMap
 metadata:
+  labels:
+    more: x
+    team: shop
   name: b
   namespace: NS
`
	if diff := cmp.Diff(want, serverFields.ReplaceAllString(out, "")); diff != "" {
		t.Errorf("(-want +got)\n%s\n%s", diff, out)
	}
	for _, line := range []string{"live: ConfigMap NS/b: label: changed by rule label", "live: ConfigMap NS/b: more: changed by rule more", ", 2 matched, 1 would change, 0 failures"} {
		if !strings.Contains(told, line) {
			t.Errorf("it does not say %q:\n%s", line, told)
		}
	}
	// Each format tells of the same object, with the same exit code.
	for _, format := range []string{"json", "yaml"} {
		first, out, _ := f.diff("-o", format)
		second, again, _ := f.diff("-o", format)
		if first != code || second != code || !strings.Contains(out, "/metadata/labels") || strings.Contains(out, "NS/a") {
			t.Errorf("-o %s: exit codes %d and %d\n%s", format, first, second, out)
		}
		if diff := cmp.Diff(out, again); diff != "" {
			t.Errorf("-o %s, a second time:\n%s", format, diff)
		}
	}
	if reads, others := f.requests(); len(others) > 0 || reads == 0 {
		t.Errorf("%d reads, and %q", reads, others)
	}
}

func TestDiffLiveOfOneNamespace(t *testing.T) {
	f := newDiffFixture(t, nil, labelRule("label", "configmaps", "team: shop"))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{may("", []string{"configmaps"})}}
	if _, err := f.admin.RbacV1().Roles(f.ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "reader"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: f.user}}}
	if _, err := f.admin.RbacV1().RoleBindings(f.ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	code, out, told := f.diff("--namespace", f.ns)
	if code != exitFindings || !strings.Contains(out, "+    team: shop") {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
	if code, out, told := f.diff(); code != exitCluster || out != "" || !strings.Contains(told, "v1/configmaps: may not list configmaps at cluster scope") {
		t.Errorf("of the whole cluster: exit code %d\n%s%s", code, out, told)
	}
}

// What may not be read is listed, and the rest is shown.
func TestDiffLiveWithoutAPermission(t *testing.T) {
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces"})},
		labelRule("label", "configmaps", "team: shop"), labelRule("services", "services", "team: shop"),
		strings.Replace(labelRule("looks-up", "configmaps", "x: z"), "match:", "lookups: [{name: s, resource: {version: v1, resource: secrets}}]\n  condition: lookups.s.size() > 0\n  match:", 1))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
	code, out, told := f.diff()
	if code != exitCluster || !strings.Contains(out, "+    team: shop") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	for _, line := range []string{"v1/services: may not list services at cluster scope; parked: services", "rule looks-up on v1/configmaps: parked: it looks up v1/secrets"} {
		if !strings.Contains(told, line) {
			t.Errorf("it does not say %q:\n%s", line, told)
		}
	}
	// And what is not there at all is a finding, as in run --once.
	f = newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces"})}, labelRule("label", "configmaps", "team: shop"), labelRule("widgets", "widgets", "a: b"))
	if code, _, told := f.diff(); code != exitFindings || !strings.Contains(told, "v1/widgets") {
		t.Errorf("exit code %d\n%s", code, told)
	}
}

func TestDiffLiveSelectsObjects(t *testing.T) {
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces", "services"})},
		labelRule("label", "configmaps", "team: shop"), labelRule("services", "services", "team: shop"))
	f.create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`)
	header := regexp.MustCompile(`(?m)^--- live/(.*)$`)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "ConfigMap NS/a, ConfigMap NS/b, Service NS/a"},
		{[]string{"configmaps"}, "ConfigMap NS/a, ConfigMap NS/b"},
		{[]string{"ConfigMap/b"}, "ConfigMap NS/b"},
		{[]string{"cm/a", "svc"}, "ConfigMap NS/a, Service NS/a"},
		{[]string{"service/a", "configmaps.v1/b"}, "ConfigMap NS/b, Service NS/a"},
	} {
		_, out, told := f.diff(append(tc.args, "-n", f.ns)...)
		var got []string
		for _, m := range header.FindAllStringSubmatch(out, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%q: shows %q, want %q\n%s", tc.args, got, tc.want, told)
		}
	}
	if code, _, told := f.diff("configmap5"); code != exitUsage || !strings.Contains(told, `no rule is about "configmap5" (did you mean "configmaps"?): the rules are about configmaps, services`) {
		t.Errorf("one that no rule is about: exit code %d\n%s", code, told)
	}
	if code, _, told := f.diff("configmaps/nobody", "-n", f.ns); code != exitUsage || !strings.Contains(told, "not in the cluster: configmaps/nobody") {
		t.Errorf("one that is not there: exit code %d\n%s", code, told)
	}
}

const secretYAML = `{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"password":"czNjcjN0"}}', own: czNjcjN0, stays: 'db://s3cr3t@host'}}, data: {password: czNjcjN0, old: czNjcjN0, kept: czNjcjN0}}`

// secretFixture has a Secret that rules change, one is refused, and a ConfigMap
// that one copies it to.
func secretFixture(t *testing.T) *diffFixture {
	t.Helper()
	set := strings.Replace(labelRule("set", "secrets", "x"), "{metadata: {labels: {x}}}", "{stringData: {password: new-s3cr3t}, data: {old: null}}", 1)
	refused := labelRule("refused", "secrets", "bad: '///'")
	copied := strings.NewReplacer("match:", "lookups: [{name: s, resource: {version: v1, resource: secrets}, namespace: NS}]\n  match:", "{metadata: {labels: {x}}}", "{data: {copy: '${lookups.s[0].data.password}'}}").Replace(labelRule("copied", "configmaps", "x"))
	uncopied := strings.Replace(labelRule("uncopied", "secrets", "x"), "{metadata: {labels: {x}}}}", "{metadata: {annotations: {own: null}}}}\n  event: {message: 'it was ${object.metadata.annotations.own}'}", 1)
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces", "secrets"}, "patch")}, set, refused, copied, uncopied)
	f.create(secretYAML, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	return f
}

// What one rule has copied out of a Secret, another one that copies it on does not
// show: neither as a value, nor in its message, nor in an error.
func TestDiffLiveShowsNoCopiesOfCopies(t *testing.T) {
	copied := strings.NewReplacer("match:", "lookups: [{name: s, resource: {version: v1, resource: secrets}, namespace: NS}]\n  match:", "{metadata: {labels: {x}}}", "{data: {copy: '${lookups.s[0].data.password}'}}").Replace(labelRule("copied", "configmaps", "x"))
	again := strings.Replace(labelRule("z-again", "configmaps", "x"), "{metadata: {labels: {x}}}}", "{metadata: {annotations: {again: '${object.data.copy}'}}}}\n  event: {message: 'it is ${object.data.copy}'}", 1)
	fails := strings.Replace(labelRule("z-fails", "configmaps", "x: x"), "match:", "condition: int(object.data.copy) > 0\n  match:", 1)
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"configmaps", "namespaces", "secrets"}, "patch")}, copied, again, fails)
	f.create(secretYAML, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {copy: czNjcjN0}}`)
	for _, args := range [][]string{{}, {"-o", "json"}, {"--server-dry-run"}} {
		_, out, told := f.diff(args...)
		// What is unchanged in the ConfigMap is its own: who compares it has read it.
		got := strings.Replace(out+told, "\n   copy: czNjcjN0\n", "\n", 1)
		if strings.Contains(got, "czNj") || !strings.Contains(got, "changed by rule z-again") || !strings.Contains(got, "evaluate the condition: it failed") {
			t.Errorf("%q: it holds the copy, or does not tell of the rules:\n%s", args, got)
		}
	}
}

// SEC-01: not at the highest verbosity either, and not if the server refuses and
// quotes the object.
func TestDiffLiveShowsNoSecret(t *testing.T) {
	f := secretFixture(t)
	for _, args := range [][]string{{}, {"-v", "9"}, {"-o", "json"}, {"-o", "yaml"}, {"--server-dry-run"}, {"--server-dry-run", "-v", "9"}, {"--server-dry-run", "-o", "json", "-v", "9"}} {
		code, out, told := f.diff(args...)
		if code != exitFindings || !strings.Contains(out, "***") {
			t.Errorf("%q: exit code %d\n%s%s", args, code, out, told)
		}
		for _, secret := range []string{"czNjcjN0", "s3cr3t", "bmV3LXMzY3IzdA"} {
			if strings.Contains(out, secret) {
				t.Errorf("%q: the output holds %s:\n%s", args, secret, out)
			}
			if i := strings.Index(told, secret); i >= 0 {
				t.Errorf("%q: standard error holds %s: …%s…", args, secret, told[max(0, i-200):min(len(told), i+200)])
			}
		}
	}
	// Nor does run, which logs its requests.
	_, out, told := invoke(t, "run", "--once", "-v", "9", "--kubeconfig", f.kubeconfig, "--builtin", "none", "--rules", f.rules)
	for _, secret := range []string{"czNjcjN0", "s3cr3t", "bmV3LXMzY3IzdA"} {
		if i := strings.Index(out+told, secret); i >= 0 || !strings.Contains(told, "Rule failed") {
			t.Errorf("the log of run holds %s, or is no log: %s", secret, told)
		}
	}
}

// What is shown of a change of a Secret.
func TestDiffLiveOfASecret(t *testing.T) {
	f := secretFixture(t)
	_, out, told := f.diff("--server-dry-run")
	for _, line := range []string{
		"+  password: '*** (10 bytes, changed)'", "-  old: '*** (6 bytes)'", "+  copy: '*** (8 bytes)'",
		"-    own: '*** (8 bytes)'", "     stays: '*** (16 bytes)'",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("it does not show %q:\n%s", line, out)
		}
	}
	if !strings.Contains(told, "live: Secret NS/s: rule refused: the API server refuses the change: Invalid (metadata.labels: FieldValueInvalid)") {
		t.Errorf("it does not say what the server refuses:\n%s", told)
	}
}

// The server's say: what it refuses, and what it makes of the rest.
func TestDiffServerDryRun(t *testing.T) {
	ports := `apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: ports}
spec:
  resource: {version: v1, resource: services}
  match: {namespaces: [NS]}
  patch: {merge: {spec: {ports: [{port: 8080}]}}}
`
	f := newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"services", "namespaces"}, "patch")}, ports,
		labelRule("bad", "services", "bad: '///'"), labelRule("good", "services", "good: x"))
	f.create(`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}`)
	code, out, told := f.diff("--server-dry-run")
	if code != exitFindings {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{"+    good: x", "-  - port: 80", "+  - port: 8080", "     protocol: TCP", "-    targetPort: 80", "+    targetPort: 8080"} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("it does not show %q:\n%s", line, out)
		}
	}
	for _, field := range []string{"generation", "resourceVersion", "managedFields", "bad"} {
		if regexp.MustCompile(`(?m)^[+-].*` + field).MatchString(out) {
			t.Errorf("%s is shown as a change:\n%s", field, out)
		}
	}
	for _, line := range []string{
		"live: Service NS/s: rule bad: the API server refuses the change: Invalid (metadata.labels: FieldValueInvalid)\n",
		"live: Service NS/s: the API server makes something else of it: add /spec/ports/0/protocol, add /spec/ports/0/targetPort\n",
		"1 would change, 1 failure\n",
	} {
		if !strings.Contains(told, line) {
			t.Errorf("it does not say %q:\n%s", line, told)
		}
	}
	if u, err := f.admin.CoreV1().Services(f.ns).Get(t.Context(), "s", metav1.GetOptions{}); err != nil || u.Spec.Ports[0].Port != 80 || len(u.Labels) > 0 {
		t.Errorf("the Service was changed: %v, %v", u, err)
	}
	_, others := f.requests()
	for _, request := range others {
		if !strings.HasPrefix(request, "patch ") || !strings.Contains(request, "dryRun=All") {
			t.Errorf("a request without dryRun: %s", request)
		}
	}
	if len(others) == 0 {
		t.Error("the server was not asked")
	}

	// Without the permission to patch, the prediction is shown and the exit code says it.
	f = newDiffFixture(t, []rbacv1.PolicyRule{may("", []string{"services", "namespaces"})}, ports)
	f.create(`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}`)
	code, out, told = f.diff("--server-dry-run")
	if code != exitCluster || !strings.Contains(out, "+  - port: 8080\n") || !strings.Contains(told, "not allowed to patch v1/services") {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
}

func TestDiffOfAClusterThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/rule.yaml", []byte(labelRule("label", "configmaps", "a: b")))
	write(t, dir+"/kubeconfig", []byte(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
`))
	code, out, told := invoke(t, "diff", "--cluster", "--kubeconfig", dir+"/kubeconfig", "--rules", dir+"/rule.yaml", "--timeout", "1s", "-o", "json")
	if code != exitCluster || !strings.Contains(out, `"objects": []`) || !strings.Contains(told, "the cluster could not be reached or refused") {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
}
