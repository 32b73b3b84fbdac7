package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

var explainUsers atomic.Int64

// explainFixture is a namespace with a few objects, and a user who may read
// some of them, by a Role in it.
type explainFixture struct {
	*testing.T
	cp               *controlplane.ControlPlane
	ns, user, config string
	rules            string
}

const explainedObjects = `
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, annotations: {example.io/expected-replicas: "5"}}
  spec:
    replicas: 3
    selector: {matchLabels: {a: b}}
    template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
- apiVersion: v1
  kind: Secret
  metadata: {name: db}
  stringData: {password: hunter2}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings, annotations: {rectifier.dev/skip: skipped}}
  data: {a: b}
- apiVersion: v1
  kind: Pod
  metadata: {name: p}
  spec: {containers: [{name: c, image: i}]}
`

const explainingRules = `
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: no-status}
spec:
  resource: {version: v1, resource: configmaps}
  patch: {subresource: status, merge: {status: {a: "${object.data.a}"}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: pods}
spec:
  resource: {version: v1, resource: configmaps}
  lookups: [{name: pods, resource: {version: v1, resource: pods}, namespace: "${object.metadata.namespace}"}]
  condition: object.data.a == 'b' && lookups.pods.size() > 0
  patch: {merge: {data: {pods: "${string(lookups.pods.size())}"}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: secret}
spec:
  resource: {version: v1, resource: secrets}
  condition: object.data.password != 'eHg='
  patch: {merge: {data: {password: eHg=}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: skipped}
spec:
  resource: {version: v1, resource: configmaps}
  patch: {merge: {data: {c: d}}}
---
apiVersion: rectifier.dev/v1alpha1
kind: Rule
metadata: {name: unserved}
spec:
  resource: {version: v1, resource: configmaps}
  lookups: [{name: things, resource: {group: example.io, version: v1, resource: things}}]
  patch: {merge: {data: {e: f}}}
`

func newExplainFixture(t *testing.T, verbs map[string]string) *explainFixture {
	t.Helper()
	f := &explainFixture{T: t, cp: testcluster.Start(t), ns: testcluster.Namespace(t), user: fmt.Sprintf("explainer-%d", explainUsers.Add(1))}
	f.config, f.rules = filepath.Join(t.TempDir(), "kubeconfig"), filepath.Join(t.TempDir(), "rules.yaml")
	if err := f.cp.WriteKubeconfig(f.config, f.user); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.rules, []byte(explainingRules), 0o600); err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(f.cp.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	for resource, verbs := range verbs {
		name, group, _ := strings.Cut(resource, ".")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{name}, Verbs: strings.Fields(verbs)})
	}
	if _, err := admin.RbacV1().Roles(f.ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: f.user}}}
	if _, err := admin.RbacV1().RoleBindings(f.ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.create()
	testcluster.Eventually(t, 10*time.Second, func() error { // the rights take a moment
		if code, _, told := f.explain("deployments/web"); code != exitFine {
			return fmt.Errorf("exit code %d: %s", code, told)
		}
		return nil
	})
	return f
}

func (f *explainFixture) create() {
	f.Helper()
	catalog, err := gvr.NewCatalog()
	if err != nil {
		f.Fatal(err)
	}
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(explainedObjects), &objects); err != nil {
		f.Fatal(err)
	}
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		if _, err := testcluster.Dynamic(f).Resource(catalog.Info(u.GroupVersionKind())[0].Resource).Namespace(f.ns).Create(f.Context(), u, metav1.CreateOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

// explain runs the command as the user; NS stands for the namespace in what it
// prints.
func (f *explainFixture) explain(more ...string) (code int, out, told string) {
	f.Helper()
	args := slices.Concat([]string{"explain", "--kubeconfig", f.config, "--rules", f.rules, "--builtin", "expected-replicas", "-n", f.ns}, more)
	code, out, told = invoke(f.T, args...)
	tidy := strings.NewReplacer(f.ns, "NS", f.rules, "rules.yaml")
	return code, tidy.Replace(out), tidy.Replace(told)
}

func TestExplainLive(t *testing.T) {
	f := newExplainFixture(t, map[string]string{
		"deployments.apps": "get", "horizontalpodautoscalers.autoscaling": "list", "configmaps": "get list", "secrets": "get",
	})
	for _, tc := range []struct {
		args       []string
		code       int
		out, wrong string
	}{
		{[]string{"deploy", "web", "--rule", "expected-replicas"}, exitFine, `
Deployment NS/web
  note: the Namespace "NS" cannot be read, so opt-outs on it are not seen: get namespaces NS: Forbidden (HTTP 403)
  note: what a controller has reported is not known: list events.events.k8s.io in NS: Forbidden (HTTP 403)
  expected-replicas   Patch
    match                  yes
    lookups.autoscalers    [] (0 objects)   in namespace NS, spec.scaleTargetRef.kind=Deployment, spec.scaleTargetRef.name=web
`, ""},
		{[]string{"deploy", "web", "--rule", "expected-replicas", "--cost"}, exitFine, `
Deployment NS/web
  note: the Namespace "NS" cannot be read, so opt-outs on it are not seen: get namespaces NS: Forbidden (HTTP 403)
  note: what a controller has reported is not known: list events.events.k8s.io in NS: Forbidden (HTTP 403)
  expected-replicas   Patch
    evaluated only where   'example.io/expected-replicas' in object.metadata.annotations
    keeps of apps/v1/deployments, of this object 1`, ""},
		{[]string{"configmaps/settings"}, exitFindings, `
ConfigMap NS/settings
  note: the Namespace "NS" cannot be read, so opt-outs on it are not seen: get namespaces NS: Forbidden (HTTP 403)
  note: what a controller has reported is not known: list events.events.k8s.io in NS: Forbidden (HTTP 403)
  no-status   Parked   the resource has no status subresource
    match       yes
    patch       merge to status, 1 operation
      add /status   {"a":"b"}
  pods        Error   lookup pods of v1/pods is not known: list pods in NS: Forbidden (HTTP 403)
    match          yes
    lookups.pods   error: lookup pods of v1/pods is not known: list pods in NS: Forbidden (HTTP 403)   in namespace NS
    condition      error: lookup pods of v1/pods is not known: list pods in NS: Forbidden (HTTP 403)
      true    object.data.a == 'b'
      error   lookups.pods.size() > 0
        lookup pods of v1/pods is not known: list pods in NS: Forbidden (HTTP 403)   at rules.yaml:15:38
         15 |   condition: object.data.a == 'b' && lookups.pods.size() > 0
                                                   ^
  skipped     Skip   the object has the annotation rectifier.dev/skip
  unserved    Parked   it looks up example.io/v1/things, which is not available: not served by the cluster
    match            yes
    lookups.things   error: lookup things of example.io/v1/things is not known: example.io/v1/things: not served by the cluster   (not read)
    patch            merge, 1 operation
      add /data/e   "f"
`, ""},
		{[]string{"secrets/db", "cm/settings", "--rule", "secret"}, exitFine, `
Secret NS/db
  note: the Namespace "NS" cannot be read, so opt-outs on it are not seen: get namespaces NS: Forbidden (HTTP 403)
  note: what a controller has reported is not known: list events.events.k8s.io in NS: Forbidden (HTTP 403)
  secret   Patch
    match       yes
    condition   true
      true    object.data.password != 'eHg='
    patch       merge, 1 operation
      replace /data/password   *** → ***
    event       Rectified: changed by rule secret

ConfigMap NS/settings
  note: no rule is about objects of kind ConfigMap in v1
`, ""},
		{[]string{"deploy/nope"}, exitUsage, "", "rectifier: get deployments.apps NS/nope: not found\n"},
		{[]string{"deploy/nope", "cm/settings", "--rule", "secret"}, exitUsage, "ConfigMap NS/settings\n  note: no rule is about objects of kind ConfigMap in v1\n", "rectifier: get deployments.apps NS/nope: not found\n"},
		{[]string{"pods/p"}, exitCluster, "", "rectifier: get pods NS/p: Forbidden (HTTP 403)\nexplain needs the right to get the object; diff --cluster does with list and watch\n"},
		{[]string{"deploymnts/web"}, exitUsage, "", "rectifier: the cluster serves no resource \"deploymnts\" (did you mean \"deployments\"?)\n"},
		{[]string{"deployments.v2.apps/web"}, exitUsage, "", "rectifier: the cluster serves no resource \"deployments.v2.apps\" (did you mean \"deployments\"?)\n"},
		{[]string{"web"}, exitUsage, "", "rectifier: \"web\" names no object: write RESOURCE/NAME, such as deployments/web\n"},
	} {
		code, out, told := f.explain(tc.args...)
		if want := strings.TrimPrefix(tc.out, "\n"); code != tc.code || told != tc.wrong || !strings.HasPrefix(out, want) || want == "" && out != "" {
			t.Errorf("%q: exit code %d, want %d\n%s\n(-want +got)\n%s", tc.args, code, tc.code, told, cmp.Diff(want, out))
		}
		for _, format := range []string{"json", "yaml"} {
			if again, out, _ := f.explain(append(tc.args, "-o", format)...); again != tc.code || strings.Contains(out, "aHVudGVyMg") {
				t.Errorf("%q -o %s: exit code %d\n%s", tc.args, format, again, out)
			}
		}
	}
	f.onlyReads()
}

// onlyReads checks all requests of the user.
func (f *explainFixture) onlyReads() {
	f.Helper()
	invoke(f.T, "explain", "--kubeconfig", f.config, "--rules", f.rules, "--builtin", "none", "-n", f.ns, "configmaps/the-last-one")
	count := 0
	testcluster.Eventually(f, 10*time.Second, func() error {
		events, err := f.cp.AuditEvents(func(e *controlplane.AuditEvent) bool { return e.User.Username == f.user })
		if err == nil && !slices.ContainsFunc(events, func(e controlplane.AuditEvent) bool { return e.ObjectRef.Name == "the-last-one" }) {
			err = fmt.Errorf("the last of %d requests is not there", len(events))
		}
		count = len(events)
		for _, e := range events {
			if e.Verb != "get" && e.Verb != "list" {
				f.Errorf("it sends %s %s", e.Verb, e.RequestURI)
			}
		}
		return err
	})
	f.Logf("%d requests", count)
}

// What is told of a live object is what is told of the same object in a file.
func TestExplainLiveAndFilesSayTheSame(t *testing.T) {
	f := newExplainFixture(t, map[string]string{
		"deployments.apps": "get", "horizontalpodautoscalers.autoscaling": "list", "configmaps": "get", "pods": "list", "secrets": "get",
	})
	catalog, err := gvr.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var files []string
	for kind, name := range map[string]string{"Deployment": "web", "ConfigMap": "settings", "Secret": "db", "Pod": "p"} {
		gvk := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": map[bool]string{true: "apps/v1", false: "v1"}[kind == "Deployment"], "kind": kind}}).GroupVersionKind()
		u, err := testcluster.Dynamic(t).Resource(catalog.Info(gvk)[0].Resource).Namespace(f.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u.SetManagedFields(nil)
		data, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, kind+".json"))
		write(t, files[len(files)-1], data)
	}
	now := "2026-01-01T00:00:00Z"
	told := func(out string) map[string]any {
		var report explainReport
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		all := map[string]any{}
		for _, o := range report.Objects {
			for _, r := range o.Rules {
				if r.Outcome != parked {
					all[o.Kind+" "+r.Rule] = r
				}
			}
		}
		return all
	}
	_, live, _ := f.explain("deploy/web", "cm/settings", "secrets/db", "-o", "json", "--now", now)
	args := []string{"explain", "--rules", f.rules, "--builtin", "expected-replicas", "-o", "json", "--now", now}
	for _, file := range files {
		args = append(args, "-f", file)
	}
	_, offline, _ := invoke(t, args...)
	offline = strings.NewReplacer(f.ns, "NS", f.rules, "rules.yaml").Replace(offline)
	want := told(live)
	got := told(offline)
	for key := range got {
		if want[key] == nil { // parked in the cluster; a file knows of no cluster
			delete(got, key)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(explainedRule{}, explainedPart{}, explainedVariable{})); diff != "" || len(want) < 4 {
		t.Errorf("%d rules (-live +files)\n%s", len(want), diff)
	}
}

func TestExplainCompletes(t *testing.T) {
	f := newExplainFixture(t, map[string]string{"deployments.apps": "get list", "horizontalpodautoscalers.autoscaling": "list"})
	for _, tc := range []struct {
		args []string
		want []string // must be there; none: nothing may be
	}{
		{[]string{"dep"}, []string{"deployments/", ":6"}},
		{[]string{"deployments/"}, []string{"deployments/web", ":4"}},
		{[]string{"deploy/"}, []string{"deploy/web", ":4"}},
		{[]string{"deploy", ""}, []string{"web", ":4"}},
		{[]string{"secrets/"}, nil}, // may not be listed
		{[]string{"nothing/"}, nil},
		{[]string{"-f", "x.yaml", "deploy/"}, nil},
	} {
		args := slices.Concat([]string{"__complete", "explain", "--kubeconfig", f.config, "-n", f.ns}, tc.args)
		code, out, _ := invoke(t, args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if tc.want == nil && !slices.Equal(lines, []string{":4"}) || code != exitFine {
			t.Errorf("%q: exit code %d\n%s", tc.args, code, out)
		}
		for _, want := range tc.want {
			if !slices.Contains(lines, want) {
				t.Errorf("%q: no %s in\n%s", tc.args, want, out)
			}
		}
	}
	// Where there is no cluster, there is silence.
	code, out, told := invoke(t, "__complete", "explain", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "dep")
	if code != exitFine || strings.TrimSpace(out) != ":4" || strings.Contains(told, "error") {
		t.Errorf("exit code %d: %s%s", code, out, told)
	}
}

func TestExplainOfAClusterThatDoesNotAnswer(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, config, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}`))
	code, out, told := invoke(t, "explain", "--builtin", "expected-replicas", "--kubeconfig", config, "deploy/web")
	if code != exitCluster || out != "" || !strings.HasPrefix(told, "rectifier: read what the cluster serves: ") || strings.Count(told, "\n") != 1 {
		t.Errorf("exit code %d\n%s%s", code, out, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := execute(ctx, []string{"explain", "--builtin", "expected-replicas", "--kubeconfig", config, "deploy/web"}, streams{strings.NewReader(""), &strings.Builder{}, &strings.Builder{}}); code != exitCluster {
		t.Errorf("interrupted: exit code %d", code)
	}
}
